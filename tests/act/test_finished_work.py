"""The work of a container that ended by itself: lost while its end is judged, and useful once it is done."""

from collections.abc import Sequence
from datetime import timedelta

import msgspec
import pytest

from agent.act import record
from agent.decide.accounting import meter
from agent.decide.facts import Fact, LeaseChanged, Marked
from agent.decide.reconcile import workload_end
from agent.domain.market.interruption import Cause
from agent.domain.record.account import Line
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.record.paid_time import Phases
from agent.ledger.tables.spend_rows import SpendKey
from tests.act.conftest import Desk
from tests.support import builders

HOUR = 3_600_000_000
MIDNIGHT = builders.NOW.replace(hour=0, minute=0, second=0, microsecond=0)


def over_midnight() -> tuple[LeaseChanged, Marked]:
    """Return the end of a container that ran for two hours over midnight, and the mark that its work is done."""
    before = builders.lease(run_since=MIDNIGHT - timedelta(hours=1))
    after = msgspec.structs.replace(
        before,
        state=LeaseState.EXITED,
        state_since=MIDNIGHT + timedelta(hours=1),
        run_since=None,
        interrupted_by=Cause.CONTAINER_EXIT,
    )
    days = ((MIDNIGHT - timedelta(hours=1)).date(), MIDNIGHT.date())
    charges = tuple(
        meter.Charge(before.lease_id, day, running_seconds=3600.0, phases=Phases(before.lease_id, day, useful=HOUR))
        for day in days
    )
    lost = tuple(meter.Charge(before.lease_id, day, phases=Phases(before.lease_id, day, spoiled=HOUR)) for day in days)
    end = LeaseChanged(before, after, EventKind.LEASE_EXITED, (*charges, *lost), Cause.CONTAINER_EXIT)
    return end, workload_end.done(builders.fleet(), after, "a line of its log")


async def lines(desk: Desk, *passes: Sequence[Fact]) -> dict[str, Line]:
    """Record the facts of each pass; return the lines of the lease by day."""
    async with desk.ledger.transaction() as tx:
        tx.open_lease(builders.lease())
    for facts in passes:
        await record.record(desk.ledger, builders.fleet(), facts)
    return {line.day.isoformat(): line for line in await (await desk.ledger.reader()).lines()}


@pytest.mark.parametrize("is_one_pass", [True, False])
async def test_work_that_was_done_when_its_container_ended_is_useful_and_no_interruption(
    desk: Desk, *, is_one_pass: bool
) -> None:
    end, done = over_midnight()
    of_day = await lines(desk, *([[end, done]] if is_one_pass else [[end], [done]]))
    assert [(line.useful, line.lost) for line in of_day.values()] == [(HOUR, 0), (HOUR, 0)]
    reader = await desk.ledger.reader()
    assert await reader.lost_work() == []
    host = desk.ledger.recollection(desk.clock.now()).hosts_on("vast")["h1"]
    assert host.interruptions == 0
    (spent,) = await reader.spend_by(SpendKey.LEASE)
    assert spent.useful_seconds == 7200.0


async def test_work_whose_end_is_not_judged_yet_stays_lost(desk: Desk) -> None:
    end, _ = over_midnight()
    of_day = await lines(desk, [end])
    assert [(line.useful, line.lost) for line in of_day.values()] == [(0, HOUR), (0, HOUR)]
    (loss,) = await (await desk.ledger.reader()).lost_work()
    assert (loss.cause, loss.lost) == (Cause.CONTAINER_EXIT, 2 * HOUR)


async def test_done_work_that_still_runs_moves_no_time(desk: Desk) -> None:
    held: Lease = builders.lease()
    of_day = await lines(desk, [workload_end.done(builders.fleet(), held, "a line of its log")])
    assert of_day == {}
