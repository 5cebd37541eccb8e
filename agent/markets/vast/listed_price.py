"""The discount that a deposit buys for an on-demand instance: the price of its GPUs after the discount.

Whether `dph_base` contains the discount is not documented. Two figures of a row name it: its share (`credit_discount`)
and the discounted total of the running instance (`search`). The higher price of both readings counts. If one of them is
missing, no discount counts.
"""

import msgspec


class Running(msgspec.Struct):
    """The price of an instance while it runs, dollars per hour, disk included."""

    diskHour: float | None = None  # noqa: N815 - the vendor's spelling
    discountedTotalPerHour: float | None = None  # noqa: N815 - as above


def gpu_rate(listed: float | None, discount: float | None, running: Running | None) -> float | None:
    """Return dollars per hour for the GPUs: `listed`, less the discount of a deposit."""
    if listed is None or discount is None or running is None or not 0.0 < discount < 1.0:
        return listed
    total, disk = running.discountedTotalPerHour, running.diskHour
    # A comparison with NaN is false.
    if total is None or disk is None or not 0.0 <= disk <= total:
        return listed
    return min(listed, max(total - disk, listed * (1.0 - discount)))
