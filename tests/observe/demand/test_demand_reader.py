"""The last answers of demands, also where a question does not end."""

import asyncio
import dataclasses

import pytest

from agent.clock import SteppedClock
from agent.domain.slot_demand import Demand, DemandFrom
from agent.observe.demand import demand_reader, demand_sources
from agent.observe.demand.demand_reader import DemandReader
from tests.support import builders

TERMS = Demand(0, DemandFrom.COMMAND, command=("count",))


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
    reader.look(works)
    await asyncio.sleep(0)
    clock.advance(3600)
    reader.look(works)
    assert not list(reader.notices()), "a simulated hour is no real second"
    monkeypatch.setattr(demand_reader, "STUCK_SECONDS", 0.0)
    for terms in (TERMS, dataclasses.replace(TERMS, least=1)):
        reader.look((builders.workload(demand=terms),))
        (notice,) = reader.notices()
        assert "the question does not end" in notice.sentence, "also after a reload"
    assert begun == [1]
    await reader.close()
