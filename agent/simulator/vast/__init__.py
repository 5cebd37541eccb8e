"""The simulated Vast.ai: its hosts, its auction, its contracts."""
