"""The simulated engine: vLLM's OpenAI surface over a child process with one shared step clock.

Deterministic in text and acceptance; needs neither vLLM, torch nor Ray.
"""
