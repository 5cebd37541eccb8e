"""The region of a pool, by its name, and the cost of moving a checkpoint between two pools.

Names are zones of AWS (us-east-1a) or GCP (us-east4-a), with or without "_GPU_COUNT" behind; every other name is a
place of its own.
"""

import re
from collections.abc import Sequence

import numpy as np

from agent.lab.jobs.job_terms import Grid

_ZONE = re.compile(r"([a-z]+(?:-[a-z]+)+-?\d+)-?[a-z]")


def region(pool: str) -> str:
    """Return the region of a pool's zone."""
    match = _ZONE.fullmatch(pool.partition("_")[0])
    return match[1] if match else pool


def egress(pools: Sequence[str], gigabytes: float, price: float) -> Grid:
    """Return the dollars of moving a checkpoint for each pair: free within a region, `price` $/GB between regions."""
    regions = [region(pool) for pool in pools]
    apart = np.array([[here != there for there in regions] for here in regions], dtype=np.float64)
    return apart * gigabytes * price
