"""Vast.ai in the box: its hosts, its auction, its contracts."""
