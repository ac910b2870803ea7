"""`twinpool demo`: a mixed load against a running service, what it measured, and a verdict per tier."""
