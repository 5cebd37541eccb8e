"""The note of a dead man's switch: it counts for a silence of this stretch in which no daemon lived, for no other."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from agent.decide.reconcile.guards import guard_switch
from agent.domain.market.interruption import Cause
from agent.domain.record.lease import Lease
from agent.domain.work import kept_terms
from agent.domain.work.guard_report import GuardReport, GuardSwitch
from agent.domain.work.guard_terms import GuardTerms
from tests.support import builders

NOW = builders.NOW
AWAY = timedelta(hours=8)
LAST = NOW - AWAY
"""The last sign of life; a daemon that died then had metered the lease a moment before."""
WORK = builders.guarded()


def rented(deadman: timedelta | None = timedelta(hours=6), **changes: Any) -> Lease:
    """Return a lease that a daemon left eight hours ago."""
    assert isinstance(WORK.guard, GuardTerms)
    work = replace(WORK, guard=replace(WORK.guard, deadman=deadman))
    values = {
        "guard_run": 1,
        "run_since": NOW - timedelta(hours=20),
        "accrued_until": LAST - timedelta(minutes=2),
        **changes,
    }
    return kept_terms.recorded(builders.lease(**values), work)


def explains(held: Lease, *, last: datetime | None = LAST, hours: float = 6.0, lease: str = "") -> bool:
    written = None if last is None else int(last.timestamp())
    note = GuardSwitch(version=1, lease=lease or held.intent_id, silent_seconds=hours * 3600, written=written)
    reports = {held.intent_id: GuardReport(NOW, switch=note)}
    found = guard_switch.of(builders.fleet(workloads=(WORK,), leases=(held,), guard_reports=reports), held)
    assert found is None or (found[0], found[1].rule) == (Cause.EXTERNAL_STOP, "deadman")
    return found is not None


def test_a_silence_as_long_as_the_switch_after_the_last_sign_explains_the_stop() -> None:
    assert explains(rented())
    assert explains(rented(), hours=7.9)
    for terms in (None, '{"is_batch":false,"endpoint":"e","bucket":"b","prefix":"p","done_codes":[0]}'):
        assert explains(msgspec.structs.replace(rented(), guard_terms=terms), hours=1.0), "nobody recorded its switch"


@pytest.mark.parametrize("since", [timedelta(), timedelta(minutes=5), timedelta(hours=7)])
def test_a_note_that_a_daemon_contradicts_which_metered_the_lease_meanwhile_explains_nothing(since: timedelta) -> None:
    assert not explains(rented(accrued_until=NOW - since))


@pytest.mark.parametrize(
    "note",
    [
        {"hours": 5.9},
        {"hours": 0.0},
        {"hours": 8.1},
        {"last": datetime.fromtimestamp(2**33, LAST.tzinfo), "hours": 0.0},
        {"last": datetime.fromtimestamp(2**33, LAST.tzinfo)},
        {"last": NOW - timedelta(hours=30)},
        {"last": None},
        {"lease": "another"},
    ],
    ids=["too short", "none", "not over yet", "2242", "2242 and long", "before this stretch", "no sign", "another"],
)
def test_a_note_of_another_time_or_lease_explains_nothing(note: dict[str, Any]) -> None:
    assert not explains(rented(), **note)


def test_without_a_switch_or_a_guard_at_the_rent_nothing_is_explained() -> None:
    assert not explains(rented(None))
    assert not explains(rented(guard_run=None))
