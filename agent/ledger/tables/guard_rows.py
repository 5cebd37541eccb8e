"""The conversion of slots' runs and guards' measurements between the domain and their tables."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from agent.domain.market.market_notice import NoticeGiven
from agent.domain.record.guard_figures import GuardFigures
from agent.domain.record.guard_run import GuardRun
from agent.domain.record.host_check import HostCheck
from agent.domain.record.lease import LeaseState
from agent.domain.record.work_done import LastNumber
from agent.domain.slot import Slot
from agent.domain.work.sign_of_life import KeptSign
from agent.ledger import portable
from agent.ledger.tables import schema

RUNS = sa.select(schema.guard_runs)
BEGUN = sa.insert(schema.guard_runs)
TAKEN = portable.stored(schema.guard_runs)
MOST_GUARD_FIGURES = 512
"""The number of ended leases whose figures are remembered: older figures say little about the present work."""
MOST_NOTICES = 1_000
_NOTICES = schema.guard_notices
LAST_NOTICES = sa.select(_NOTICES).order_by(_NOTICES.c.told_at.desc()).limit(MOST_NOTICES)
NOTICED = portable.kept(_NOTICES)
_FIGURES = schema.guard_figures
_ENDED = ~sa.exists().where(schema.leases.c.lease_id == _FIGURES.c.lease_id, schema.leases.c.state != LeaseState.ENDED)
LAST_FIGURES = sa.select(_FIGURES).where(_ENDED).order_by(_FIGURES.c.told_at.desc()).limit(MOST_GUARD_FIGURES)
OPEN_FIGURES = sa.select(_FIGURES).where(~_ENDED)
LAST_NUMBERS = portable.with_largest(
    sa.select(_FIGURES.c.workload, _FIGURES.c.slot, _FIGURES.c.run, _FIGURES.c.progress, schema.guard_runs.c.name)
    .outerjoin_from(
        _FIGURES,
        schema.guard_runs,
        sa.and_(*(schema.guard_runs.c[name] == _FIGURES.c[name] for name in ("workload", "slot", "run"))),
    )
    .where(_FIGURES.c.progress.is_not(None)),
    _FIGURES.c.told_at,
    by=(_FIGURES.c.workload, _FIGURES.c.slot, _FIGURES.c.run),
)
MEASURED = portable.stored(_FIGURES)
MOST_CHECKS = 512
"""The number of ended leases whose checks are remembered. Hosts change owners and cards, so older checks say little."""
_CHECKS = schema.host_checks
_OPEN = sa.exists().where(schema.leases.c.lease_id == _CHECKS.c.lease_id, schema.leases.c.state != LeaseState.ENDED)
LAST_CHECKS = sa.select(_CHECKS).where(~_OPEN).order_by(_CHECKS.c.checked_at.desc()).limit(MOST_CHECKS)
OPEN_CHECKS = sa.select(_CHECKS).where(_OPEN)
CHECKED = portable.stored(_CHECKS)
_SIGNS = schema.signs_of_life
SIGNS = sa.select(_SIGNS)
SIGNED = portable.stored(_SIGNS)
_SIGN_KEY = ("endpoint", "bucket", "prefix", "folder")
UNSIGNED = sa.delete(_SIGNS).where(*(_SIGNS.c[name] == sa.bindparam(f"this_{name}") for name in _SIGN_KEY))


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


def figures_row(figures: GuardFigures) -> dict[str, Any]:
    """Return the columns of a guard's figures."""
    columns = {each.name: getattr(figures, each.name) for each in dataclasses.fields(figures)}
    return {**columns, "workload": figures.slot.workload, "slot": figures.slot.index}


def figures_of(columns: Mapping[str, Any]) -> GuardFigures:
    """Return the figures of a row."""
    place = Slot(columns["workload"], columns["slot"])
    rest = {name: value for name, value in columns.items() if name not in {"workload", "slot"}}
    return GuardFigures(slot=place, **rest)


def number_of(columns: Mapping[str, Any]) -> LastNumber:
    """Return the last number of a slot's run."""
    is_renamed = columns["name"] not in {None, columns["workload"]}
    return LastNumber(columns["workload"], columns["slot"], columns["run"], columns["progress"], is_renamed)


def notice_of(columns: Mapping[str, Any]) -> NoticeGiven:
    """Return the notice of a row."""
    return NoticeGiven(**columns)


def check_of(columns: Mapping[str, Any]) -> HostCheck:
    """Return the check of a row."""
    return HostCheck(**columns)


def sign_of(columns: Mapping[str, Any]) -> KeptSign:
    """Return the sign of a row."""
    return KeptSign(**columns)


def sign_key(sign: KeptSign) -> dict[str, str]:
    """Return the parameters by which `UNSIGNED` finds the row of a sign."""
    return {f"this_{name}": getattr(sign, name) for name in _SIGN_KEY}
