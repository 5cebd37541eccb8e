"""The HTTP endpoint of the daemon."""
