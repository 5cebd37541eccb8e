"""Quiet markets for tests, in which nothing happens except the test's own actions."""

import dataclasses
import typing

from agent.simulator.climate import Climate, Demand
from agent.simulator.vast.model import Contract, NoticeKind, RentTerms, Slice
from agent.simulator.vast.world import World

START = 1_790_000_000.0
QUIET = Climate(
    name="quiet",
    hosts=40,
    demand=Demand(arrivals=0.0, taken=0.0, fight_back=0.0),
    price_walks_per_day=0.0,
    failures=0.0,
    pull_failure_probability=0.0,
    resume_lag_seconds=(10.0, 10.0),
)


def world(seed: int = 7, *, start: float = START, credit: float | None = None, **changes: typing.Any) -> World:
    """Build a quiet market, with changes to its climate."""
    return World(dataclasses.replace(QUIET, **changes), seed=seed, start=start, credit=credit)


def a_slice(market: World, gpus: int = 1, *, siblings: bool = False) -> Slice:
    """Return a free slice with a floor well below the ask, on a host with more slices if `siblings`."""
    for slice_ in market.listed():
        others = [other for other in market.slices.values() if other.machine_id == slice_.machine_id and other.gpus]
        floor = market.true_floor(slice_)
        lasts = slice_.host.end_time > market.now + 30 * 86_400
        is_cheap = bool(floor) and (floor or 0.0) < min(0.7 * market.ask(slice_), 0.35)
        if slice_.num_gpus == gpus and is_cheap and lasts and (not siblings or len(others) > 1):
            return slice_
    raise AssertionError("the market has no such slice; choose another seed")


def rent(
    market: World,
    slice_: Slice,
    over_floor: float = 1.2,
    *,
    cancel_unavailable: bool | None = None,
    **terms: typing.Any,
) -> Contract:
    """Rent a slice with a bid over its floor."""
    floor = market.true_floor(slice_)
    assert floor is not None
    asked = RentTerms(**{"disk_gb": 20.0, "image": "alpine:latest", "label": "test", **terms})
    return market.create(slice_.offer_id, asked, bid=floor * over_floor, cancel_unavailable=cancel_unavailable)


def run(market: World, contract: Contract) -> Contract:
    """Let time pass until the container of a contract runs."""
    for _ in range(200):
        if contract.running_since is not None:
            return contract
        market.advance_to(market.now + 30.0)
    raise AssertionError(f"it never ran: {contract}")


def kinds(market: World) -> list[NoticeKind]:
    return [notice.kind for notice in market.inbox]


def shown(contract: Contract) -> tuple[object, ...]:
    """Return the visible state of a contract."""
    return contract.container, contract.holds_gpu, contract.is_intended, contract.is_queued, contract.is_offline
