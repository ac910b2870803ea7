"""Who waits for room, in which order, and who is refused.  Only `desk` waits; the rest is pure."""
