"""Services with probes, and work that may hang, in the disasters."""
