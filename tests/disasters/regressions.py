"""Fixes that are removed again, one defect each. The engine is proven by finding every one of them.

A defect is put back in the place where it was: the functions that hold it off are replaced while the block runs.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any
from unittest import mock

import msgspec

from agent.decide.facts import InstanceFound
from agent.decide.reconcile import absence, agreed_rate, orphans, ownership
from agent.decide.reconcile.pass_memory import Memory
from agent.domain.fleet import Fleet, MarketView
from agent.domain.market.instance import Instance
from agent.domain.record.lease import Lease
from agent.markets import pace


def _named_is_ours() -> Iterator[Any]:
    """An instance that a reply named counts as ours without a look (defect 1 of the first section)."""

    def settle(fleet: Fleet, _: Memory) -> ownership.Ownership:
        leases = tuple(
            held
            if held.proven_at is not None or not held.is_open
            else msgspec.structs.replace(held, proven_at=fleet.now)
            for held in fleet.leases
        )
        return ownership.Ownership(leases, (), {}, frozenset(), frozenset())

    yield mock.patch.object(ownership, "settle", settle)
    yield mock.patch.object(ownership, "why_untouched", return_value="")


def _verdict_once() -> Iterator[Any]:
    """A verdict on an unknown instance is found in one look alone, and lost with it (defect 2)."""
    find = orphans.find

    def once(fleet: Fleet, view: MarketView, *rest: Any) -> orphans.OrphanFindings:
        found = find(fleet, view, *rest)
        facts = tuple(
            fact
            for fact in found.facts
            if not isinstance(fact, InstanceFound)
            or found.sightings.get(f"{view.market}/{fact.instance.instance_id}") == orphans.LOOKS
        )
        return dataclasses.replace(found, facts=facts)

    yield mock.patch.object(orphans, "find", once)


def _long_silence() -> Iterator[Any]:
    """One answer closes every lane for as long as it says, up to a day, also for endings (defect 3)."""

    def close(self: pace.Pace, lane: str, until: datetime | None, *, door: str = "") -> datetime:
        queue, now, monotonic = self._queue(lane), self._clock.now(), self._clock.monotonic()
        wanted = until if until is not None else now + timedelta(seconds=queue.lane.penalty)
        wanted = min(max(wanted, now), now + pace.LONGEST_PENALTY)
        queue.close(door, monotonic + (wanted - now).total_seconds(), monotonic)
        return wanted

    yield mock.patch.object(pace.Pace, "close", close)


def _listed_price() -> Iterator[Any]:
    """Time is metered at whatever price the market lists (defect 7)."""

    def settle(_f: Fleet, _v: MarketView, held: Lease, row: Instance, _p: datetime) -> agreed_rate.Rated:
        return agreed_rate.Rated(held, row)

    yield mock.patch.object(agreed_rate, "settle", settle)


def _releases_are_faults() -> Iterator[Any]:
    """Own releases that vanish together are the market's fault, and one killed in mid-reply is undone (defect 8)."""
    yield mock.patch.object(absence, "_may_vanish", lambda held: not absence._is_released(held))
    yield mock.patch.object(absence, "release_in_doubt", return_value=None)


REGRESSIONS: Mapping[str, Callable[[], Iterator[Any]]] = {
    "1.1": _named_is_ours,
    "1.2": _verdict_once,
    "1.3": _long_silence,
    "1.7": _listed_price,
    "1.8": _releases_are_faults,
}


@contextlib.contextmanager
def taken_out(name: str) -> Iterator[None]:
    """Run without the fix of a defect."""
    with contextlib.ExitStack() as patches:
        for patch in REGRESSIONS[name]():
            patches.enter_context(patch)
        yield
