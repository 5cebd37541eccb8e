"""A pure check of the market's own log of requests against the ledger's intents: nothing was ordered twice."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_RENT = re.compile(r"/asks/(\w+)/?$")
_REBID = re.compile(r"/instances/bid_price/(\w+)/?$")
_TURN = re.compile(r"/instances/(\w+)/?$")
_TURNS = frozenset({"resume", "pause"})


@dataclass(frozen=True, slots=True)
class Ordered:
    """An intent as the ledger has it: its kind, the offer of a rent or the instance of another, and whether it left."""

    intent_id: str
    kind: str
    offer_id: str
    instance_id: str
    is_sent: bool


def wrong(
    calls: Iterable[Mapping[str, Any]], contracts: Iterable[Mapping[str, Any]], intents: Iterable[Ordered]
) -> list[str]:
    """Return what was ordered without an intent of its own, as sentences.

    1. At most one rent a label: no two contracts have one, and each label names a rent that was sent.
    2. At most one paying request an intent: an offer got no more rents, an instance no more bids, and no more starts
       and stops, than intents for it were sent. A start and a stop have one path in the log.
    """
    known = list(intents)
    sent = Counter(_place(each) for each in known if each.is_sent)
    arrived = Counter(place for call in calls if (place := _asked(call)) is not None)
    found = [
        f"{count} requests to {kind} {of}, for {sent[kind, of]} intents that were sent"
        for (kind, of), count in sorted(arrived.items())
        if count > sent[kind, of]
    ]
    rents = {each.intent_id for each in known if each.kind == "rent" and each.is_sent}
    labels = Counter(str(row["label"]) for row in contracts if str(row["label"]).startswith("gpubid"))
    found += [f"{count} contracts have the label {label}" for label, count in labels.items() if count > 1]
    found += [f"no rent was sent for the label {label}" for label in labels if _intent_of(label) not in rents]
    return found


def misspent(
    charged: Mapping[str, Mapping[str, float]], spent: Mapping[str, Mapping[str, float]], unseen_dollars: float = 0.0
) -> list[str]:
    """Return which part of the spend is wrong, as sentences; both are in dollars by instance and part.

    The ledger may have more of the GPU part by `unseen_dollars`: what stopped while nobody led is metered until a look.
    """
    found = []
    for part in ("gpu", "disk", "bandwidth"):
        market, ledger = (sum(each[part] for each in side.values()) for side in (charged, spent))
        margin = max(0.02, 0.02 * market)
        if market - margin <= ledger <= market + margin + (unseen_dollars if part == "gpu" else 0.0):
            continue
        more = {each: spent.get(each, {}).get(part, 0.0) - row[part] for each, row in charged.items()}
        rows = ", ".join(f"{each} {by:+.4f}" for each, by in more.items() if abs(by) > 0.005)
        found.append(f"{part}: the ledger has ${ledger:.4f}, the market charged ${market:.4f}: {rows}")
    return found


def late(calls: Iterable[Mapping[str, Any]], intents: Iterable[Ordered]) -> list[str]:
    """Return the writes for which none of these intents was sent, as sentences: somebody sent them who may not."""
    sent = {_place(each) for each in intents if each.is_sent}
    places = [place for call in calls if (place := _asked(call)) is not None]
    return [
        f"a request to {kind} {of} arrived, for an intent of before" for kind, of in places if (kind, of) not in sent
    ]


def _intent_of(label: str) -> str:
    found = re.search(r"[:-]([0-9a-f]{16})(?:$|[:-])", label)
    return found[1] if found is not None else ""


def _place(intent: Ordered) -> tuple[str, str]:
    if intent.kind == "rent":
        return "rent", intent.offer_id
    return ("turn" if intent.kind in _TURNS else intent.kind), intent.instance_id


def _asked(call: Mapping[str, Any]) -> tuple[str, str] | None:
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
