"""Proxies in front of services: their servers follow the leases. gpubid passes no request on itself."""
