"""The whole service in virtual time: real routing, admission and decisions over simulated engines."""
