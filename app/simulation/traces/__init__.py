"""Traces: when requests come and how long they are; read from files or made, then joined and scaled."""
