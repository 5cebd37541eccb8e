"""What the ledger must and may have, by the market's own record of when each rate began.

1. The ledger has at least what the market charged for the GPUs of an instance, up to when the ledger has metered it.
2. Between two looks it may count the highest rate that the market charged between them, and no more. A price below a
   bid of ours counts at the bid until it is proven (rule 21).
3. A listing is a look if somebody led who could record it: what happens while nobody leads is seen by the next leader.
4. A stop that our own request made is no interruption, whoever leads by then.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

MARGIN_DOLLARS = 0.002
"""Half a minute at a quarter of a dollar an hour: the boxes' clocks differ from the market's, and an instance that a
listing lacks is metered until its release is sent again."""
RECORDED_SECONDS = 60.0
"""A look so long before a blow may not be recorded any more: two seconds of ours, which a busy machine may need."""
SENT_SECONDS = 60.0
"""A rent counts from when it was sent; a slow market makes the contract so much later at most."""
SEEN_SECONDS = 60.0
"""The boxes' clocks differ from the market's by less."""
REACTED_SECONDS = 1.0
"""A request stops a GPU within so long."""
_HOUR_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Stretch:
    """A span in which the market charged the GPUs of an instance at one rate, in Unix seconds."""

    instance: str
    begin: float
    end: float
    dollars_per_hour: float


def charged(turns: Iterable[Mapping[str, Any]], until: float) -> list[Stretch]:
    """Return the stretches of every instance up to a time, by instance and begin."""
    of_each: dict[str, list[tuple[float, float]]] = {}
    for turn in turns:
        of_each.setdefault(str(turn["contract_id"]), []).append((float(turn["at"]), float(turn["gpu"])))
    return [
        Stretch(instance, begin, end, rate)
        for instance, its in of_each.items()
        for (begin, rate), (end, _) in itertools.pairwise([*its, (until, 0.0)])
        if rate > 0.0 and end > begin
    ]


def looks(calls: Iterable[Mapping[str, Any]], gaps: Sequence[tuple[float, float]]) -> list[float]:
    """Return the times of the listings that somebody could record, in order."""
    listings = [
        float(call["time"])
        for call in calls
        if call["method"] == "GET" and call["path"].endswith("/v1/instances/") and call["status"] == 200
    ]
    return sorted(at for at in listings if not any(begin - RECORDED_SECONDS <= at <= end for begin, end in gaps))


def least_dollars(stretches: Iterable[Stretch], metered: Mapping[str, float]) -> dict[str, float]:
    """Return what the market charged for each instance until it was last metered: for ever if it has no such time."""
    least: dict[str, float] = {}
    for each in stretches:
        end = min(each.end, metered.get(each.instance, each.end))
        dollars = each.dollars_per_hour * max(0.0, end - each.begin) / _HOUR_SECONDS
        least[each.instance] = least.get(each.instance, 0.0) + dollars
    return least


def at_bids(stretches: Iterable[Stretch], bids: Mapping[str, Sequence[tuple[float, float]]]) -> list[Stretch]:
    """Return the stretches at our last bid before each one's end, where that is higher than what the market charged.

    `bids` has when each raise was sent and its dollars an hour, by instance.
    """
    return [
        replace(each, dollars_per_hour=max(each.dollars_per_hour, _last_bid(bids.get(each.instance, ()), each.end)))
        for each in stretches
    ]


def _last_bid(bids: Iterable[tuple[float, float]], until: float) -> float:
    return max(((sent, bid) for sent, bid in bids if sent <= until), default=(0.0, 0.0))[1]


def most_dollars(
    stretches: Iterable[Stretch], seen: Sequence[float], created: Mapping[str, float], until: float
) -> dict[str, float]:
    """Return what the ledger may have for each instance at most, by the looks and the times of the rents."""
    most: dict[str, float] = {}
    for instance, group in itertools.groupby(stretches, lambda each: each.instance):
        its, began = list(group), created[instance] - SENT_SECONDS
        times = [began, *(at for at in seen if began < at < until), until]
        most[instance] = sum(
            (end - begin) / _HOUR_SECONDS * _highest(its, begin, end) for begin, end in itertools.pairwise(times)
        )
    return most


def _highest(its: Iterable[Stretch], begin: float, end: float) -> float:
    return max((each.dollars_per_hour for each in its if each.begin < end and each.end > begin), default=0.0)


def misspent(spent: Mapping[str, float], least: Mapping[str, float], most: Mapping[str, float]) -> list[str]:
    """Return the instances for whose GPUs the ledger has too little or too much, as sentences; all are in dollars."""
    found = []
    for instance in sorted({*spent, *least, *most}):
        ledger, low, high = (each.get(instance, 0.0) for each in (spent, least, most))
        if not low - MARGIN_DOLLARS <= ledger <= high + MARGIN_DOLLARS:
            found.append(f"GPUs of {instance}: the ledger has ${ledger:.4f}, not ${low:.4f} to ${high:.4f}")
    return found


def own_stops(
    stretches: Sequence[Stretch], calls: Iterable[Mapping[str, Any]], losses: Iterable[tuple[str, float]]
) -> list[str]:
    """Return the interruptions that were stops of ours, as sentences; a loss is an instance and when it was seen."""
    begins = {(each.instance, each.begin) for each in stretches}
    stops: dict[str, list[float]] = {}
    for each in stretches:
        if (each.instance, each.end) not in begins:
            stops.setdefault(each.instance, []).append(each.end)
    requests = [
        (str(call["path"]).rstrip("/").rpartition("/")[2], float(call["time"]))
        for call in calls
        if call["method"] in {"PUT", "DELETE"} and "request_logs" not in call["path"]
    ]
    found = []
    for instance, seen_at in losses:
        stop = max((at for at in stops.get(instance, ()) if at <= seen_at + SEEN_SECONDS), default=None)
        if stop is not None and any(of == instance and abs(at - stop) <= REACTED_SECONDS for of, at in requests):
            found.append(f"the stop of {instance} at {stop:.1f} counts as an interruption: we asked for it")
    return found
