"""The check of a host at each start of its container: what its GPUs are, and whether they work."""
