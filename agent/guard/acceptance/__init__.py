"""The check of a host at each start of its container: its GPUs, and whether they work."""
