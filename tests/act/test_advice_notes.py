"""Notes of advice reach every guard, a few at a time, and a bucket that fails is tried again at the next look."""

import asyncio
from datetime import timedelta

from agent.act.guarding.advice_notes import EVERY_SECONDS, MOST_AT_ONCE, AdviceNotes
from agent.clock import SteppedClock
from agent.domain.record.lease import LeaseState
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from agent.observe.guard_reader import GuardTarget
from tests.support import builders, played_bucket
from tests.support.s3_server import SECRET

COUNT = 2 * MOST_AT_ONCE + 1


async def test_every_guard_gets_its_note_and_one_that_failed_at_the_next_look() -> None:
    work = builders.guarded(
        slots=COUNT, checkpoint=Checkpoint(place=CheckpointPlace.REMOTE, takes=timedelta(seconds=10))
    )
    leases = [
        builders.lease(number, slot=place, guard_run=1, state=LeaseState.RUNNING)
        for number, place in enumerate(work.places)
    ]
    fleet = builders.fleet(workloads=(work,), leases=tuple(leases))
    clock, secret = SteppedClock(builders.NOW), ["no key at all"]
    with played_bucket.played() as server:
        targets = [
            GuardTarget(lease.intent_id, server.place(), f"f1/train/{lease.slot.index}/1", is_urgent=False)
            for lease in leases
        ]
        notes = AdviceNotes(clock, asyncio.create_task, lambda _: secret[-1])

        async def looked() -> int:
            notes.look(fleet, targets)
            await asyncio.gather(*notes._running.values())
            return len(server.names())

        assert [await looked() for _ in range(4)] == [0, 0, 0, 0]
        secret.append(SECRET)
        assert await looked() == 0, "none is tried twice in one look"
        clock.advance(EVERY_SECONDS)
        assert [await looked() for _ in range(4)] == [MOST_AT_ONCE, 2 * MOST_AT_ONCE, COUNT, COUNT]
        assert server.names()[0] == f"train/f1/train/0/1/advice-{leases[0].intent_id}.json"
