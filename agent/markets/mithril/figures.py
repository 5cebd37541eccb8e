"""Figures that money depends on and the market does not report, each marked as assumed or with its source."""

MOST_SCRIPT = 10_000
"""Characters of a start script. Source: the vendor's page on startup scripts and its program flow-compute 3.28.2."""

RELIABILITY = 0.995
"""Share of uptime. Assumed: as RunPod's data centres."""
INET_MBPS = 1000.0
"""Megabits a second, down and up. Assumed."""
HOURS_A_MONTH = 720
"""As on the other markets; the market does not publish the price of a disk at all."""
MB_PER_GB = 1024
