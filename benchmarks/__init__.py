"""Measurements of twinpool against other ways to the same engines; each writes `results/NAME.json`."""
