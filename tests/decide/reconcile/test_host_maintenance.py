"""Announced maintenance: recorded once, no rent on that host meanwhile, and a loss that names its notice."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from agent.decide.facts import LeaseChanged
from agent.decide.reconcile import host_maintenance, reconcile
from agent.decide.reconcile.pass_memory import Memory
from agent.domain.fleet import Fleet
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.interruption import MarketEvent, MarketEventKind
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease
from tests.decide import test_explain
from tests.support import builders

NOW = builders.NOW
HOUR = timedelta(hours=1)
RUNS = builders.lease()


def notice(**changes: Any) -> MarketEvent:
    """Build the notice that a host announced maintenance, read as a market tells it."""
    return builders.event(MarketEventKind.MAINTENANCE, at=builders.ago(minutes=1), **changes)


def world(lease: Lease, *notices: MarketEvent, row: Instance | None = None, **changes: Any) -> Fleet:
    view = builders.view(instances=(row or builders.instance(),), notices=notices)
    return builders.fleet(leases=(lease,), markets={"vast": view}, **changes)


def announced(lease: Lease, *notices: MarketEvent, **changes: Any) -> list[LeaseChanged]:
    facts = reconcile.reconcile(world(lease, *notices, **changes), Memory()).facts
    changed = (fact for fact in facts if isinstance(fact, LeaseChanged))
    return [fact for fact in changed if fact.kind is EventKind.LEASE_MAINTENANCE]


def test_a_notice_is_recorded_once_with_the_cooldown_of_its_host_and_ends_nothing() -> None:
    """The person who lifts that cooldown is not overruled by the same notice."""
    (fact,) = announced(RUNS, notice())
    assert (fact.before, fact.after.state, fact.after.maintenance_told_at) == (RUNS, RUNS.state, NOW)
    assert fact.cooldown is not None
    assert (fact.cooldown.key, fact.cooldown.until) == ("vast/h1", NOW + host_maintenance.UNDATED)
    assert announced(fact.after, notice()) == []
    (again,) = announced(msgspec.structs.replace(fact.after, maintenance_told_at=builders.ago(hours=2)), notice())
    assert again.after.maintenance_told_at == NOW, "it was announced again"
    assert announced(RUNS, notice(instance_id="9")) == []
    assert announced(RUNS, builders.event("offline")) == []


@pytest.mark.parametrize(("begins", "ends", "cools"), [(1, 3, 3), (1, None, 25), (3, 5, None), (-1, 1, 1)])
def test_a_host_is_not_rented_while_its_maintenance_begins_within_the_time_that_workloads_need(
    begins: int, ends: int | None, cools: int | None
) -> None:
    until = NOW + ends * HOUR if ends is not None else None
    dated = notice(begins_at=NOW + begins * HOUR, ends_at=until)
    (fact,) = announced(RUNS, dated)
    assert (fact.cooldown.until if fact.cooldown else None) == (NOW + cools * HOUR if cools is not None else None)
    # A market that lists it as a fact tells it with a new time after each start.
    assert announced(fact.after, read_later(dated)) == []
    later = replace(dated, at=NOW, begins_at=NOW + 4 * HOUR)
    (moved,) = announced(fact.after, dated, later)
    assert moved.after.maintenance_begins_at == NOW + 4 * HOUR


def read_later(event: MarketEvent) -> MarketEvent:
    """Return the same announcement, read later."""
    return replace(event, at=NOW + HOUR)


def test_the_pool_that_a_pod_was_rented_from_is_rented_on() -> None:
    (fact,) = announced(msgspec.structs.replace(RUNS, host_id="pool/SECURE/A40/EU"), notice())
    assert fact.cooldown is None


def test_explain_says_that_the_host_announced_maintenance() -> None:
    (fact,) = announced(RUNS, notice())
    assert fact.cooldown is not None
    empty = builders.fleet(markets=test_explain.market(builders.offer(1)), cooldowns=(fact.cooldown,))
    told = test_explain.explained(empty)
    assert told.candidates == ()
    (refused,) = told.refused
    sentence = "is in cooldown after an announcement of maintenance, read at 2026-11-20 12:00 UTC without a date"
    assert (refused.why.code, refused.why.sentence) == ("cooldown", sentence)


@pytest.mark.parametrize(
    ("told", "is_named"),
    [
        ({"maintenance_told_at": builders.ago(hours=2)}, True),
        ({"maintenance_told_at": builders.ago(hours=25)}, False),
        ({"maintenance_told_at": builders.ago(hours=40), "maintenance_begins_at": builders.ago(minutes=2)}, True),
        ({"maintenance_told_at": builders.ago(hours=2), "maintenance_begins_at": NOW + HOUR}, False),
        ({"maintenance_told_at": builders.ago(days=9), "maintenance_begins_at": builders.ago(days=3)}, False),
        ({}, False),
    ],
    ids=["without a date", "long ago", "as announced", "before it begins", "long over", "never announced"],
)
def test_the_loss_is_recorded_with_its_notice(told: dict[str, Any], *, is_named: bool) -> None:
    held, row = msgspec.structs.replace(RUNS, **told), builders.instance(state=InstanceState.OFFLINE)
    first = reconcile.reconcile(world(held, row=row), Memory())
    facts = reconcile.reconcile(world(held, row=row), first.memory).facts
    (lost,) = (fact for fact in facts if isinstance(fact, LeaseChanged))
    assert lost.kind is EventKind.LEASE_INTERRUPTED
    assert lost.evidence is not None
    assert lost.evidence.rule == ("maintenance" if is_named else "host_state")
    assert ("it announced maintenance, read at" in lost.evidence.sentence) is is_named
