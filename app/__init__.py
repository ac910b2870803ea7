"""What a request meets: ingress, tiers, routing, relay, command line."""
