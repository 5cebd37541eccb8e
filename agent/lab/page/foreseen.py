"""Whether losses and returns of capacity were foreseen, over a folder of traces."""

from collections.abc import Sequence

from agent.lab import survival
from agent.lab.page import lasting
from agent.lab.page.html import Plot
from agent.lab.traces import Trace

SIDES = {True: "capacity that is there", False: "capacity that is away"}


def plot(traces: Sequence[Trace], name: str) -> Plot | None:
    """Return the picture, or nothing where capacity never changed."""
    found = []
    for of_capacity, what in SIDES.items():
        seen = [spell for trace in traces for spell in _spells(trace, of_capacity=of_capacity)]
        if seen:
            found.append(lasting.Lasting(what, survival.kaplan_meier(seen)))
    return lasting.plot(found, "nothing yet", name)


def _spells(trace: Trace, *, of_capacity: bool) -> list[survival.Spell]:
    return survival.spells(trace.available > 0, trace.gap_seconds / 3600, of_capacity=of_capacity)
