"""The HTTP surface of the simulated server."""
