"""What was ordered, leased or charged wrongly in a round, from its evidence alone."""

from collections.abc import Iterable, Mapping
from typing import Any

from tests.failovers import history, stretches, unjournaled
from tests.failovers.history import Ordered
from tests.support.programs import WRITES

LOSS = "lease.interrupted"


def wrong(evidence: Mapping[str, Any]) -> list[str]:
    """Return everything that is wrong, as sentences."""
    truth, tables = evidence["truth"], evidence["tables"]
    writes = [call for call in truth["calls"] if call["method"] in WRITES]
    sent = [*orders(tables["intents"]), *without_ledger(evidence)]
    its = stretches.charged(evidence["turns"], truth["now"])
    losses = [(_instance(each["lease_id"]), each["seen_at"] / 1e6) for each in tables["events"] if each["kind"] == LOSS]
    return [
        *history.wrong(writes, truth["contracts"], sent),
        *_misspent(evidence, its),
        *stretches.own_stops(its, writes, losses),
    ]


def orders(intents: Iterable[Mapping[str, Any]]) -> list[Ordered]:
    """Return the intents of a ledger as orders."""
    return [
        Ordered(
            intent_id=row["intent_id"],
            kind=row["kind"],
            offer_id=row["offer_id"],
            instance_id=row["instance_id"],
            sent_seconds=None if row["sent_at"] is None else row["sent_at"] / 1e6,
        )
        for row in intents
    ]


def without_ledger(evidence: Mapping[str, Any]) -> list[Ordered]:
    """Return the orders that went on without the ledger."""
    return [order for daemon in evidence["logs"] for order in unjournaled.orders(daemon["lines"])]


def _misspent(evidence: Mapping[str, Any], its: list[stretches.Stretch]) -> list[str]:
    truth, tables = evidence["truth"], evidence["tables"]
    rows, contracts = tables["spend"], truth["contracts"]
    created = {str(row["id"]): float(row["created"]) for row in contracts}
    metered = {row["instance_id"]: row["accrued_until"] / 1e6 for row in tables["leases"] if row["state"] != "ended"}
    gpus: dict[str, float] = {}
    for row in rows:
        gpus[_instance(row["lease_id"])] = gpus.get(_instance(row["lease_id"]), 0.0) + row["gpu"] / 1e6
    seen = stretches.looks(truth["calls"], evidence["gaps"])
    most = stretches.most_dollars(stretches.at_bids(its, _bids(tables["intents"])), seen, created, truth["now"])
    other = {
        name: (sum(row[column] for row in rows) / 1e6, sum(row["charged"][name] for row in contracts))
        for name, column in (("disk", "disk"), ("bandwidth", "traffic"))
    }
    return stretches.misspent(gpus, stretches.least_dollars(its, metered), most) + history.misspent(other)


def _bids(intents: Iterable[Mapping[str, Any]]) -> dict[str, list[tuple[float, float]]]:
    bids: dict[str, list[tuple[float, float]]] = {}
    for row in intents:
        if row["kind"] == "rebid" and row["sent_at"] is not None:
            bids.setdefault(row["instance_id"], []).append((row["sent_at"] / 1e6, row["price"] / 1e6))
    return bids


def _instance(lease: str) -> str:
    return lease.partition("-")[2]
