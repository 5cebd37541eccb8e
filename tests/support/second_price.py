"""Nouns of a made-up market of pools where all winners of an auction pay the highest losing bid."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import msgspec
from hypothesis import strategies as st

from agent.domain.fleet import Fleet, MarketView
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.interruption import Cause
from agent.domain.market.market_rules import MarketRules, Places, PricePaid, Settlement
from agent.domain.market.offer import Offer
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.slot import Slot
from strategies.patient import Patient, PatientParams
from tests.support import builders

NAME = "uniform"
RULES = MarketRules(
    places=Places.POOLS,
    price_paid=PricePaid.SECOND_PRICE,
    auction_every=timedelta(minutes=2),
    notice=timedelta(minutes=5),
    settlement=Settlement.ARREARS,
)
LIMITS = frozenset({NAME})
TUNED = {"patient": builders.tuned(Patient(), PatientParams())}


def pool(number: int = 1, **changes: Any) -> Offer:
    """Build a pool of the built offer's cards: $0.20 wins, and there is nothing on demand."""
    values: dict[str, Any] = {
        "market": NAME,
        "host_id": f"pool/{number}",
        "ask": None,
        "price_paid": builders.per_hour("0.20"),
        "traffic_down_micros_per_gb": 0,
        "traffic_up_micros_per_gb": 0,
    }
    return builders.offer(number, **{**values, **changes})


def unknown(number: int = 1, **changes: Any) -> Offer:
    """Build a pool of which nobody can say which bid would win."""
    return pool(number, **{"floor": None, "price_paid": None, "is_price_unknown": True, **changes})


def lease(number: int = 1, **changes: Any) -> Lease:
    """Build a lease that has run for an hour at $0.22 under a limit of $0.90."""
    values: dict[str, Any] = {
        "lease_id": f"{NAME}-{number}",
        "market": NAME,
        "host_id": f"pool/{number}",
        "bid_limit": builders.per_hour("0.90"),
        "ask": None,
        "read_back_at": builders.ago(minutes=58),
    }
    return builders.lease(number, **{**values, **changes})


def row(number: int = 1, **changes: Any) -> Instance:
    """Build the instance of the built lease of the same number."""
    values: dict[str, Any] = {"market": NAME, "host_id": f"pool/{number}", "limit": builders.per_hour("0.90")}
    return builders.instance(number, **{**values, **changes})


def view(**changes: Any) -> MarketView:
    """Build a fresh view of the market, whose account has no credit because it pays later."""
    return builders.view(**{"market": NAME, "rules": RULES, "credit": None, **changes})


def fleet(*, offers: Iterable[Offer] = (), rows: Iterable[Instance] = (), **changes: Any) -> Fleet:
    """Build a fleet on that market alone, if `markets` are not given."""
    markets = {NAME: view(offers=tuple(offers), instances=tuple(rows))}
    return builders.fleet(**{"markets": markets, **changes})


def waiting(number: int = 1, **changes: Any) -> Lease:
    """Build a lease whose bid was never allocated and waits for an auction."""
    values = {"state": LeaseState.PAUSED, "has_run": False, "state_since": builders.ago(minutes=3)}
    return lease(number, **{**values, **changes})


dollars = st.integers(1, 200).map(lambda cents: builders.per_hour(f"{cents / 100:.2f}"))
"""Prices and limits in cents, up to $2.00."""


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    """Build a fleet of three slots under auctions: pools of any price, and slots that run, wait, are lost or empty."""
    offers = [draw(st.sampled_from([pool, unknown]))(number) for number in range(1, 5)]
    floors = [msgspec.structs.replace(each, floor=draw(dollars)) if each.floor else each for each in offers]
    leases, rows = [], []
    for index in range(3):
        for number in draw(st.sampled_from([(), (2 * index + 11,), (2 * index + 11, 2 * index + 12)])):
            kind = draw(st.sampled_from(["runs", "waits", "lost", "parked"]))
            limit, place = draw(dollars), {"slot": Slot("train", index), "opened_at": builders.ago(minutes=90 - number)}
            rate = min(limit, draw(dollars))
            made = waiting if kind == "waits" else lease
            state = {} if kind == "runs" else {"state": LeaseState.PAUSED, "paused_by_us": kind == "parked"}
            lost = {"interrupted_by": Cause.OUTBID} if kind in {"lost", "parked"} else {}
            leases.append(made(number, bid_limit=limit, gpu_rate=rate, **place, **state, **lost))
            shown = {"runs": InstanceState.RUNNING, "waits": InstanceState.PENDING}.get(kind, InstanceState.PAUSED)
            rows.append(row(number, limit=limit, gpu_rate=rate, state=shown))
    work = builders.workload(slots=3, max_price=draw(dollars), value_per_hour=draw(st.none() | dollars))
    return fleet(offers=floors, rows=rows, leases=tuple(leases), workloads=(work,))
