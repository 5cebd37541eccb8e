"""The prices of an instance's GPUs and of its disk, from the figures of its row that show them.

Invariants:
1. In every recorded row `dph_total` is `dph_base` plus `storage_total_cost`, and `search` has both parts again. If two
   other figures contradict one and agree, they are believed: one wrong figure is no price.
2. Whether `dph_base` contains the discount that a deposit buys for an on-demand instance is not documented. Two figures
   name it: its share (`credit_discount`) and the discounted total of the running instance. The higher price of both
   readings counts. If one of them is missing, no discount counts.
"""

import msgspec

MOST = 100_000.0
"""Dollars per hour, or per gigabyte, above which a price is absurd."""
LEAST = 1e-6
"""Dollars per hour under which an offer's price would count as nothing: an order at it would pass every cap."""
STEP = 1e-4
"""Dollars per hour by which two figures of one price may differ: the market keeps four decimals."""


class Running(msgspec.Struct):
    """The price of an instance while it runs, dollars per hour."""

    gpuCostPerHour: float | None = None  # noqa: N815 - the vendor's spelling
    diskHour: float | None = None  # noqa: N815 - as above
    discountedTotalPerHour: float | None = None  # noqa: N815 - as above, disk included


def before_discount(
    base: float | None, total: float | None, disk: float | None, running: Running | None
) -> float | None:
    """Return dollars per hour for the GPUs: `base`, unless the other figures contradict it."""
    return _settled(base, _less(total, disk), None if running is None else running.gpuCostPerHour)


def disk_rate(base: float | None, total: float | None, disk: float | None, running: Running | None) -> float | None:
    """Return dollars per hour for the disk: `disk`, unless the other figures contradict it."""
    return _settled(disk, _less(total, base), None if running is None else running.diskHour)


def _less(total: float | None, part: float | None) -> float | None:
    return None if total is None or part is None else total - part


def _settled(told: float | None, rest: float | None, shown: float | None) -> float | None:
    # A comparison with NaN is false.
    if told is None or rest is None or shown is None or not 0.0 <= shown <= MOST:
        return told
    return shown if abs(rest - shown) <= STEP < abs(told - shown) else told


def gpu_rate(listed: float | None, discount: float | None, running: Running | None) -> float | None:
    """Return dollars per hour for the GPUs: `listed`, less the discount of a deposit."""
    if listed is None or discount is None or running is None or not 0.0 < discount < 1.0:
        return listed
    total, disk = running.discountedTotalPerHour, running.diskHour
    # A comparison with NaN is false.
    if total is None or disk is None or not 0.0 <= disk <= total:
        return listed
    return min(listed, max(total - disk, listed * (1.0 - discount)))
