"""Runs of slots between the domain and their table."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from agent.domain.record.guard_run import GuardRun
from agent.domain.slot import Slot
from agent.ledger.tables import schema

RUNS = sa.select(schema.guard_runs)
BEGUN = sa.insert(schema.guard_runs)


def row(run: GuardRun) -> dict[str, Any]:
    """Return the columns of a run."""
    return {
        "workload": run.slot.workload,
        "slot": run.slot.index,
        "run": run.run,
        "name": run.name,
        "spec_digest": run.spec_digest,
        "begun_at": run.begun_at,
    }


def run_of(columns: Mapping[str, Any]) -> GuardRun:
    """Return the run of a row."""
    place = Slot(columns["workload"], columns["slot"])
    return GuardRun(place, columns["run"], columns["name"], columns["spec_digest"], columns["begun_at"])
