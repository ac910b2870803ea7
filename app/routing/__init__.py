"""Which pool and which replica serve a request, and why; pure and total.  Begin with `rule`."""
