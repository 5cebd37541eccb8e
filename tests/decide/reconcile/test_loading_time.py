"""How long a first start has loaded: silences of its host end no count, and a dark market adds nothing to it."""

import dataclasses
from collections.abc import Iterable
from datetime import timedelta

import pytest

from agent.decide import slot_releases
from agent.decide.facts import LeaseChanged
from agent.decide.reconcile import loading_time
from agent.decide.reconcile.pass_memory import Memory
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.record.lease import Bills, Lease, LeaseState
from tests.support import builders
from tests.support.listings import NOW, POLL, all_seen, world

Look = tuple[int, Instance | None]
"""The number of a poll, and what its listing showed."""
LOADS = builders.instance(state=InstanceState.LOADING)
SILENT = builders.instance(state=InstanceState.OFFLINE)
FRESH = builders.lease(state=LeaseState.STARTING, state_since=NOW, opened_at=NOW, bills=Bills.DISK)
WORK = builders.workload(image_gb=5.0)
MINUTE = int(timedelta(minutes=1) / POLL)
STEADY = tuple((at, LOADS) for at in range(1, 60 * MINUTE))
SILENCES = {
    "a silent host": (SILENT,) * MINUTE,
    "a host that is not listed": (None,) * MINUTE,
    "both in turn": (SILENT, SILENT, None, None, SILENT, SILENT, None, None),
}


def overdue(looks: Iterable[Look], held: Lease = FRESH, poll: timedelta = POLL) -> tuple[int, int] | None:
    """Return the look at which the start counted as overdue, and how many had shown it loading, if it did."""
    memory, loaded = Memory(), 0
    for at, row in looks:
        rows = () if row is None else (row,)
        result = all_seen((held,), *rows, at=at, memory=memory, work=WORK, poll=poll)
        if result.suspects:
            # A cycle looks again at once.
            memory = dataclasses.replace(result.memory, last_seen=memory.last_seen)
            result = all_seen((held,), *rows, at=at, memory=memory, work=WORK, poll=poll)
        memory = result.memory
        held = next((fact.after for fact in result.facts if isinstance(fact, LeaseChanged)), held)
        loaded += row is LOADS
        if slot_releases.is_overdue(world((held,), *rows, at=at, work=WORK), held, WORK):
            return at, loaded
    return None


def loaded_until_overdue(looks: Iterable[Look], held: Lease = FRESH) -> timedelta | None:
    """Return for how long listings showed the lease loading before its start counted as overdue, if it did."""
    found = overdue(looks, held)
    return found[1] * POLL if found is not None else None


@pytest.mark.parametrize("silence", SILENCES.values(), ids=SILENCES)
def test_loading_adds_up_over_silences(silence: tuple[Instance | None, ...]) -> None:
    """A host that went silent every few minutes loaded for ever: each return began the count anew."""
    steady, spell = loaded_until_overdue(STEADY), (LOADS,) * (4 * MINUTE)
    rows = [row for _ in range(20) for row in (*spell, *silence)]
    flapping = loaded_until_overdue(enumerate(rows, 1))
    assert steady is not None
    assert flapping is not None
    # Two looks settle when a silence begins and ends, so each may count for one look more or less.
    spells = flapping / timedelta(minutes=4)
    assert abs(flapping - steady) <= spells * POLL


DARK = int(timedelta(hours=3) / POLL)
BEFORE = 10 * MINUTE


@pytest.mark.parametrize("after", [(), (SILENT, SILENT), (None, None)], ids=["loads", "silent after", "missing after"])
@pytest.mark.parametrize("before", [(), (SILENT, SILENT), (None, None)], ids=["loads", "silent", "missing"])
def test_of_a_dark_market_five_minutes_at_most_count_against_a_host(
    before: tuple[Instance | None, ...], after: tuple[Instance | None, ...]
) -> None:
    """Whatever the last listing before it showed, and the first one after it."""
    steady = loaded_until_overdue(STEADY)
    assert steady is not None
    head = [*enumerate((LOADS,) * BEFORE, 1), *enumerate(before, BEFORE + 1)]
    tail = enumerate((*after, *(LOADS,) * 60 * MINUTE), len(head) + DARK)
    loaded = loaded_until_overdue([*head, *tail])
    assert loaded is not None
    assert -3 * POLL <= steady - loaded <= loading_time.UNLISTED + 3 * POLL


@pytest.mark.parametrize(
    ("poll", "every"),
    [(timedelta(minutes=10), timedelta(minutes=10)), (POLL, timedelta(minutes=6)), (POLL, timedelta(minutes=20))],
    ids=["the slowest poll", "a market listed in bursts", "one listed three times an hour"],
)
def test_a_stuck_start_is_overdue_however_seldom_its_market_is_listed(poll: timedelta, every: timedelta) -> None:
    steady = loaded_until_overdue(STEADY)
    looks = [(at * int(every / POLL), LOADS) for at in range(1, 30)]
    late = overdue(looks, poll=poll)
    assert steady is not None
    assert late is not None
    counted = min(every, max(loading_time.UNLISTED, 3 * poll))
    assert steady <= late[1] * counted < steady + 2 * counted


def test_what_stopped_loads_anew() -> None:
    began = NOW - timedelta(hours=1)
    held = builders.lease(state=LeaseState.PAUSED, has_run=False, state_since=began, accrued_until=began)
    steady = loaded_until_overdue(STEADY)
    assert steady is not None
    again = loaded_until_overdue(STEADY, held)
    assert again is not None
    assert timedelta() <= again - steady <= 2 * POLL
