"""Capacity decisions as a pure library: no Ray, no engine, no clock of its own."""
