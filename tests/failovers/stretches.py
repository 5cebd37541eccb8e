"""What the ledger may at most have for GPUs: the market's own stretches, each from the look before it to the look after.

1. A listing counts as a look if somebody led who could record it. What happened while nobody led is seen by the first
   look after that.
2. A stop that our own request made is a pause of ours, whoever leads: no interruption.
"""

import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

RECORDED_SECONDS = 60.0
"""A look so long before a blow may not be recorded any more: two seconds of ours, which a busy machine may need."""
SENT_SECONDS = 60.0
"""A rent counts from when it was sent; a slow market makes the contract so much later at most."""
REACTED_SECONDS = 1.0
"""A request stops a GPU within so long."""
_HOUR_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Stretch:
    """A span in which the market charged the GPUs of an instance at one rate."""

    instance: str
    begin: float
    end: float
    dollars_per_hour: float


def charged(turns: Iterable[Mapping[str, Any]], until: float) -> list[Stretch]:
    """Return the stretches of every instance up to a time, in seconds."""
    open_turns: dict[str, tuple[float, float]] = {}
    found: list[Stretch] = []

    def close(instance: str, at: float) -> None:
        since, rate = open_turns.pop(instance, (at, 0.0))
        if rate > 0.0 and at > since:
            found.append(Stretch(instance, since, at, rate))

    for turn in turns:
        instance, at = str(turn["contract_id"]), float(turn["at"])
        if open_turns.get(instance, (0.0, 0.0))[1] != turn["gpu"]:
            close(instance, at)
            open_turns[instance] = (at, float(turn["gpu"]))
    for instance in list(open_turns):
        close(instance, until)
    return found


def looks(calls: Iterable[Mapping[str, Any]], gaps: Sequence[tuple[float, float]]) -> list[float]:
    """Return the times of the listings that somebody could record, in order."""
    times = (
        float(call["time"])
        for call in calls
        if call["method"] == "GET" and call["path"].endswith("/v1/instances/") and call["status"] == 200
    )
    return sorted(time for time in times if not any(begin - RECORDED_SECONDS <= time <= end for begin, end in gaps))


def most_dollars(stretches: Iterable[Stretch], seen: Sequence[float], created: Mapping[str, float]) -> dict[str, float]:
    """Return what the ledger may have at most for the GPUs of each instance, in dollars."""
    most: dict[str, float] = {}
    for each in stretches:
        before, after = bisect.bisect_right(seen, each.begin), bisect.bisect_left(seen, each.end)
        begin = max(seen[before - 1] if before else 0.0, created[each.instance] - SENT_SECONDS)
        end = seen[after] if after < len(seen) else each.end
        dollars = each.dollars_per_hour * (end - begin) / _HOUR_SECONDS
        most[each.instance] = most.get(each.instance, 0.0) + dollars
    return most
