"""A small valid configuration, in which tests make one mistake at a time."""

GOOD = """\
[markets.vast]
simulated = "calm"

[limits]
max_price_per_instance_hour = 0.60
max_fleet_per_hour = 1.00
max_per_day = 12.00
max_per_month = 250.00
max_instances = 3

[workloads.train]
image = "pytorch/pytorch:latest"
max_price = 0.45
strategy = "patient"
"""

STRATEGIES = ("ondemand", "patient")


def changed(old: str, new: str) -> str:
    """Return the valid configuration with `old`, which it must contain, replaced by `new`."""
    assert GOOD.count(old) == 1, old
    return GOOD.replace(old, new)


def added(*lines: str) -> str:
    """Return the valid configuration with lines added to its workload. The first of them is line 15."""
    return GOOD + "".join(f"{line}\n" for line in lines)


def live(*lines: str) -> str:
    """Return the valid configuration with a live market. The first line of the market's table is line 2."""
    return changed('simulated = "calm"', "\n".join(lines))
