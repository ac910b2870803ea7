"""`twinpool bench`: what both engines cost and give, measured side by side, and what follows from it."""
