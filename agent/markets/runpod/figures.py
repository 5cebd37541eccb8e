"""Figures that money depends on and the market does not report: each with its source, or marked as assumed.

The market publishes prices and stock. It reports no benchmark, no reliability, no bandwidth, and no host before the
rent. So its offers have the figures below, and benchmarks of `card_benchmarks.py`. Figures measured on our own leases
outweigh them with time.
"""

from agent.markets.runpod import names

STORAGE_MICROS_PER_GB_MONTH = 200_000
"""0.20 dollars. While a pod runs, its container disk and its volume cost 0.10 each. While it is stopped, the volume
costs 0.20 and the container disk nothing. We rent both in the same size, so the rate is the same in every state.
Source: the market's pricing page, docs pods/pricing.mdx."""
CONTAINER_MICROS_PER_GB_MONTH = 100_000
VOLUME_MICROS_PER_GB_MONTH = 100_000
STOPPED_VOLUME_MICROS_PER_GB_MONTH = 200_000
HOURS_A_MONTH = 720
"""As on Vast.ai; the pricing page does not say."""

LEAST_VOLUME_GB = 10
"""The least size of a volume. Source: the v2 OpenAPI document."""

SECURE_RELIABILITY = 0.995
COMMUNITY_RELIABILITY = 0.97
"""Shares of uptime. Assumed: 12 offers of Vast.ai recorded 2026-07-27 advertise 0.964 to 0.9996, median 0.994. Secure
Cloud is in data centres and gets about their middle, Community Cloud their lower end."""

INET_MBPS = 800.0
"""Megabits a second down. Assumed: below the median of the same 12 offers, about 1,900."""


def reliability(pool: names.Pool) -> float:
    """Return the assumed reliability of hosts of a pool."""
    return SECURE_RELIABILITY if pool.cloud == "SECURE" else COMMUNITY_RELIABILITY
