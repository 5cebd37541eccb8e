"""How long a first start has loaded: silences of its host end no count, and a dark market adds nothing to it."""

from collections.abc import Iterable
from datetime import timedelta

import pytest

from agent.decide import slots
from agent.decide.facts import LeaseChanged
from agent.decide.reconcile.pass_memory import Memory
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.record.lease import Bills, Lease, LeaseState
from tests.support import builders
from tests.support.listings import NOW, POLL, all_seen, world

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


def loaded_until_overdue(looks: Iterable[tuple[int, Instance | None]], held: Lease = FRESH) -> timedelta | None:
    """Return for how long listings showed the lease loading before its start counted as overdue, if it did."""
    memory, loaded = Memory(), 0
    for at, row in looks:
        rows = () if row is None else (row,)
        result = all_seen((held,), *rows, at=at, memory=memory, work=WORK)
        memory = result.memory
        held = next((fact.after for fact in result.facts if isinstance(fact, LeaseChanged)), held)
        loaded += row is LOADS
        if slots.is_overdue(world((held,), *rows, at=at, work=WORK), held, WORK):
            return loaded * POLL
    return None


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


def test_a_dark_market_counts_against_no_host() -> None:
    steady, dark = loaded_until_overdue(STEADY), int(timedelta(hours=3) / POLL)
    assert steady is not None
    before = [(at, row) for at, row in STEADY if at <= 10 * MINUTE]
    after = [(at + dark, row) for at, row in STEADY if at > 10 * MINUTE]
    assert loaded_until_overdue(before + after) == steady + POLL


def test_what_stopped_loads_anew() -> None:
    began = NOW - timedelta(hours=1)
    held = builders.lease(state=LeaseState.PAUSED, has_run=False, state_since=began, accrued_until=began)
    steady = loaded_until_overdue(STEADY)
    assert steady is not None
    again = loaded_until_overdue(STEADY, held)
    assert again is not None
    assert timedelta() <= again - steady <= 2 * POLL
