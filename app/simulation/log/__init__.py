"""The records of a running service: what happened, and what another policy would have decided."""
