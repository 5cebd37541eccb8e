"""The last answers of demands, also where a question does not end."""

import asyncio
import dataclasses
import datetime as dt

import pytest

from agent.clock import SteppedClock
from agent.domain.slot_demand import Demand, DemandFrom
from agent.observe.demand import demand_reader, demand_sources
from agent.observe.demand.demand_reader import DemandReader
from tests.support import builders

TERMS = Demand(0, DemandFrom.COMMAND, command=("count",))
POLL = dt.timedelta(seconds=15)


async def test_a_program_that_cannot_be_ended_is_no_answer_and_gets_no_second_one_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One on a file server that hung froze its demand, and the last answer counted on without a word."""
    begun = []

    async def stuck(_: Demand) -> int:
        begun.append(1)
        await asyncio.Event().wait()
        return 0

    monkeypatch.setattr(demand_sources, "tasks", stuck)
    clock = SteppedClock(builders.NOW)
    reader = DemandReader(clock, asyncio.create_task)
    works = (builders.workload(demand=TERMS),)
    reader.look(works, POLL)
    await asyncio.sleep(0)
    clock.advance(3600)
    reader.look(works, POLL)
    assert not list(reader.notices()), "a simulated hour is no real second"
    monkeypatch.setattr(demand_reader, "STUCK_SECONDS", 0.0)
    for terms in (TERMS, dataclasses.replace(TERMS, least=1)):
        reader.look((builders.workload(demand=terms),), POLL)
        (notice,) = reader.notices()
        assert "the question does not end" in notice.sentence, "also after a reload"
    assert begun == [1]
    await reader.close()


@pytest.mark.parametrize(
    ("poll", "apart", "is_steady"), [(15, 30, True), (15, 121, False), (300, 301, True), (300, 901, False)]
)
async def test_a_long_poll_is_no_gap_between_answers(
    poll: int, apart: int, is_steady: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a poll of five minutes idle slots billed for ever, since each answer seemed to follow a gap."""

    async def none(_: Demand) -> int:
        return 0

    monkeypatch.setattr(demand_sources, "tasks", none)
    clock = SteppedClock(builders.NOW)
    reader = DemandReader(clock, asyncio.create_task)
    works = (builders.workload(demand=TERMS),)
    for _ in range(4):
        reader.look(works, dt.timedelta(seconds=poll))
        await reader.settle()
        clock.advance(apart)
    report = reader.reports["train"]
    assert report.read_at is not None
    assert report.since is not None
    assert (report.read_at - report.since).total_seconds() == (3 * apart if is_steady else 0)
