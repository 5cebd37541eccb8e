"""Figures that money depends on and the server does not report, each marked as assumed."""

RELIABILITY = 0.995
"""Share of uptime. Assumed: as the data centres of RunPod and Mithril."""
INET_MBPS = 1000.0
"""Megabits a second, down and up. Assumed."""
MB_PER_GB = 1024
LEAST_DISK_GB = {"aws": 100, "azure": 30, "crusoe": 50, "gcp": 20, "nebius": 40, "oci": 50, "verda": 50}
"""The smallest disk of each cloud that makes disks of any size above it. Source: the code of dstack 0.22.5."""
LARGEST_DISK_GB = 8_000.0
"""The largest disk of a cloud that makes disks of any size. Assumed."""
MOST_DOLLARS_PER_HOUR = 100_000
"""Dollars per hour of one machine above which a price is absurd."""
