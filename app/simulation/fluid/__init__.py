"""The service as a fluid: shares of requests, not requests, so that a thousand replicas take no longer."""
