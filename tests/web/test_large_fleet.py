"""What `status` and `fleet` show of a large fleet is put together in one pass, not in one pass for each slot."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.clock import SteppedClock
from agent.decide.limits.limits import Limits
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.decision import Reason
from agent.ledger.store import Ledger
from agent.ledger.tables.decisions import RecordedDecision
from agent.web.reading import status_json, verb_json
from tests.support import builders

NOW = builders.NOW
SLOTS = 40


class Counted(tuple[Any, ...]):  # noqa: SLOT001 - each kind counts for itself
    """A tuple that counts how often somebody goes through it."""

    passes = 0

    def __iter__(self) -> Iterator[Any]:
        type(self).passes += 1
        return super().__iter__()


class Leases(Counted):
    """The leases, counted for themselves."""


class Decisions(Counted):
    """The last decisions, counted for themselves."""

    def __reversed__(self) -> Iterator[Any]:
        type(self).passes += 1
        return iter(self[::-1])


def lease(index: int) -> Lease:
    state = LeaseState.RUNNING if index % 2 else LeaseState.PAUSED
    return builders.lease(index, slot=builders.slot("train", index), state=state)


@pytest.mark.parametrize("name", ["status", "fleet"])
async def test_leases_and_decisions_are_gone_through_once_and_not_for_each_slot(tmp_path: Path, name: str) -> None:
    ledger = await Ledger.open(tmp_path / "ledger.sqlite", clock=SteppedClock(NOW), fleet_id=builders.FLEET_ID)
    known = ledger.recollection(NOW)
    await ledger.close()
    passes = []
    for slots in (SLOTS, 2 * SLOTS):
        leases = Leases(lease(index) for index in range(slots))
        made = [
            RecordedDecision(NOW, builders.slot("train", index), "hold", Reason("waits", f"waits {index}"))
            for index in range(slots)
        ]
        decided, work = Decisions(made), builders.workload(slots=slots)
        Leases.passes = Decisions.passes = 0
        recollection = dataclasses.replace(known, leases=leases)
        if name == "status":
            shown = status_json.shown((work,), recollection, decided, NOW, (), Limits())
        else:
            shown = verb_json.fleet((work,), recollection, decided, NOW)
        passes.append((Leases.passes, Decisions.passes))
        assert [row["lease"] for row in shown["slots"]] == [f"vast-{index}" for index in range(slots)]
        assert [row["why"] for row in shown["slots"]] == [
            "" if index % 2 else f"hold: waits {index}" for index in range(slots)
        ]
    assert passes[0] == passes[1]
