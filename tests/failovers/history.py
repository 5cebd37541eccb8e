"""A pure check of the market's own log of requests against the orders: nothing was asked for twice."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_RENT = re.compile(r"/asks/(\w+)/?$")
_REBID = re.compile(r"/instances/bid_price/(\w+)/?$")
_TURN = re.compile(r"/instances/(\w+)/?$")
_TURNS = frozenset({"resume", "pause"})
EARLY_SECONDS = 60.0
"""The boxes' clocks differ from the market's by less: two seconds of ours."""
LATE_SECONDS = 150.0
"""A request that the market delays, after another one that it did not answer in time, arrives within so long."""
MARGIN_DOLLARS, MARGIN_SHARE = 0.005, 0.02
"""Disks and traffic are metered every five minutes."""
Place = tuple[str, str]
"""The kind of a request and its object. A start and a stop are of one kind."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """An order: its kind, the offer of a rent or the instance of another, and when it was sent, in Unix seconds.

    `sent_seconds` is None if it was never sent.
    """

    intent_id: str
    kind: str
    offer_id: str
    instance_id: str
    sent_seconds: float | None


def wrong(
    calls: Iterable[Mapping[str, Any]], contracts: Iterable[Mapping[str, Any]], orders: Iterable[Ordered]
) -> list[str]:
    """Return what was asked for without an order of its own, as sentences.

    1. At most one rent a label: no two contracts have one, and each label names a rent that was sent.
    2. At most one paying request, and one pause, an order: each arrives soon after its own order was written down as
       sent. A start and a stop have one path in the log.
    3. A release arrives after it was ordered, as often as the market needs it.
    """
    known = list(orders)
    found = [
        f"a request to {kind} {of} arrived at {time:.1f} without an order of its own, out of {of_it} that were sent"
        for (kind, of), time, of_it in _unordered(calls, known)
    ]
    rents = {each.intent_id for each in known if each.kind == "rent" and each.sent_seconds is not None}
    labels = Counter(str(row["label"]) for row in contracts if str(row["label"]).startswith("gpubid"))
    found += [f"{count} contracts have the label {label}" for label, count in labels.items() if count > 1]
    found += [f"no rent was sent for the label {label}" for label in labels if _intent_of(label) not in rents]
    return found


def _unordered(calls: Iterable[Mapping[str, Any]], known: Iterable[Ordered]) -> Iterator[tuple[Place, float, int]]:
    """Yield each request without an order of its own: its kind and object, its time, and how many orders it has."""
    sent: dict[Place, list[float]] = {}
    for each in known:
        if each.sent_seconds is not None:
            sent.setdefault(_place(each), []).append(each.sent_seconds)
    left = {place: sorted(times) for place, times in sent.items()}
    for call in sorted(calls, key=lambda each: float(each["time"])):
        place, time = _asked(call), float(call["time"])
        if place is not None and not _taken(left.get(place, []), place[0], time):
            yield place, time, len(sent.get(place, ()))


def _taken(times: list[float], kind: str, time: float) -> bool:
    """Take the order of a request out of those that are left. A release is asked for again until it is done."""
    if kind == "release":
        return bool(times) and times[0] - EARLY_SECONDS <= time
    while times and times[0] + LATE_SECONDS < time:
        times.pop(0)
    if not times or times[0] - EARLY_SECONDS > time:
        return False
    times.pop(0)
    return True


def misspent(parts: Mapping[str, tuple[float, float]]) -> list[str]:
    """Return which part of the spend differs, as sentences; each has the dollars of the ledger and of the market."""
    return [
        f"{part}: the ledger has ${ledger:.4f}, the market charged ${market:.4f}"
        for part, (ledger, market) in parts.items()
        if abs(ledger - market) > max(MARGIN_DOLLARS, MARGIN_SHARE * market)
    ]


def late(calls: Iterable[Mapping[str, Any]], intents: Iterable[Ordered]) -> list[str]:
    """Return the writes for which none of these intents was sent, as sentences: somebody sent them who may not."""
    sent = {_place(each) for each in intents if each.sent_seconds is not None}
    places = [place for call in calls if (place := _asked(call)) is not None]
    return [
        f"a request to {kind} {of} arrived, for an intent of before" for kind, of in places if (kind, of) not in sent
    ]


def _intent_of(label: str) -> str:
    found = re.search(r"[:-]([0-9a-f]{16})(?:$|[:-])", label)
    return found[1] if found is not None else ""


def _place(intent: Ordered) -> Place:
    if intent.kind == "rent":
        return "rent", intent.offer_id
    return ("turn" if intent.kind in _TURNS else intent.kind), intent.instance_id


def _asked(call: Mapping[str, Any]) -> Place | None:
    if call["method"] == "DELETE":
        gone = _TURN.search(call["path"])
        return None if gone is None else ("release", gone[1])
    if call["method"] != "PUT":
        return None
    for kind, pattern in (("rent", _RENT), ("rebid", _REBID), ("turn", _TURN)):
        found = pattern.search(call["path"])
        if found is not None:
            return kind, found[1]
    return None
