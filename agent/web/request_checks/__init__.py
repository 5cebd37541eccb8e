"""Checks before every route: the sender, the host name, the size and the rate of requests."""
