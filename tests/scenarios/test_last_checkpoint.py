"""Our own endings wait for a last checkpoint: where a guard answers, a real one over a trainer and a real bucket."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.domain.record import hold
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.guard_terms import GuardTerms
from agent.domain.work.order import Order
from agent.ledger.ledger_errors import LedgerError
from tests.support import guarded, played_bucket, s3_server, spending, trainer
from tests.support.guarded import Guarded, Instance
from tests.support.s3_server import SECRET, S3Server
from tests.support.world import FLEET, POLL, Rehearsed, rehearsed, work

ROOT = f"train/{FLEET}/train/0/1"
WITHIN = timedelta(seconds=8)


@pytest.fixture
def server() -> Iterator[S3Server]:
    with played_bucket.played() as running:
        yield running


@pytest.fixture
def served() -> Iterator[S3Server]:
    with s3_server.served() as running:
        yield running


@contextlib.asynccontextmanager
async def fleet(folder: Path, server: S3Server, within: timedelta = WITHIN) -> AsyncIterator[Rehearsed]:
    terms = GuardTerms(("/w",), bucket=server.place(), final_within=within)
    guards = work(command="python train.py", guard=terms)
    async with rehearsed(folder, workloads=(guards,), credential=lambda _: SECRET, poll=POLL) as world:
        yield world


@contextlib.contextmanager
def real_guard(folder: Path, server: S3Server, lease: str) -> Iterator[Guarded]:
    """Run a guard over a trainer that ends by itself in no test, as the container of a lease has it."""
    key_id, _, secret = SECRET.partition(":")
    bucket = {"endpoint": server.url, "region": "us-east-1", "name": server.bucket, "root": ROOT}
    instance = Instance(folder)
    with instance.started(
        *trainer.command(instance.work),
        env={"GPUBID_BUCKET_KEY_ID": key_id, "GPUBID_BUCKET_SECRET": secret},
        lease=lease,
        bucket=bucket,
        complete="state.json",
        interval_seconds=86_400,
    ) as guard:
        guard.phase("running")
        yield guard


async def say(server: S3Server, lease: Lease, **changes: Any) -> None:
    """Put a beat for the guard of a lease."""
    told = {"version": 1, "sequence": 1, "lease": lease.intent_id, "phase": "running", **changes}
    await asyncio.to_thread(server.put, f"{ROOT}/beat-{lease.intent_id}.json", json.dumps(told).encode())


async def working(world: Rehearsed, server: S3Server | None = None) -> Lease:
    """Run until a lease runs and its guard was heard; without a guard of its own a beat is put for it."""
    lease = await world.until_running()
    if server is not None:
        await say(server, lease)
    await heard(world, lease)
    return world.lease()


async def heard(world: Rehearsed, lease: Lease) -> None:
    def is_heard() -> bool:
        report = world.app._guard_reader.reports.get(lease.intent_id)
        return report is not None and report.beat is not None

    await world.until(is_heard, 60)


async def hold_slot(world: Rehearsed) -> None:
    """Let the daemon itself end a running lease: a held slot is paused."""
    async with world.app.ledger.transaction() as tx:
        tx.add_expiring(OperatorHold(Word.HELD, hold.of_slot(world.lease().slot), world.clock.now(), "look"))


async def ordered(world: Rehearsed, server: S3Server) -> dict[str, Any]:
    """Return the order in the bucket, after pending writes there."""
    await asyncio.gather(*world.app._orders._running.values())
    path = f"{ROOT}/order.json"
    is_there = path in await asyncio.to_thread(server.names)
    return dict(json.loads(await asyncio.to_thread(server.get, path))) if is_there else {}


async def pauses(world: Rehearsed) -> int:
    return len(await world.intents(IntentKind.PAUSE))


async def test_a_pause_of_ours_waits_until_the_guard_has_carried_a_last_checkpoint(
    tmp_path: Path, served: S3Server
) -> None:
    (tmp_path / "ledger").mkdir()
    async with fleet(tmp_path / "ledger", served) as world:
        lease = await world.until_running()
        with real_guard(tmp_path / "disk", served, lease.intent_id) as guard:
            await heard(world, lease)
            assert not any("ckpt/" in name for name in await asyncio.to_thread(served.names))
            # A cycle writes no order while the folder is still being read.
            assert await ordered(world, served) == {}
            await hold_slot(world)
            await world.cycle()
            order = await ordered(world, served)
            assert (order["quiet"], order["lease"]) == (True, lease.intent_id)
            assert await pauses(world) == 0
            assert world.lease().checkpoint_asked_at is not None

            def is_answered() -> bool:
                return any(each["answered"] == order["checkpoint"] for each in guard.beats())

            await asyncio.to_thread(guarded.until, is_answered, "an answer", guard.text)
            await world.until(lambda: world.lease().state is LeaseState.PAUSED, 5)
            (event,) = await world.events("lease.paused")
            names = await asyncio.to_thread(served.names)
        assert await pauses(world) == 1
        assert f"{ROOT}/latest.json" in names
        (asked,) = [each for each in world.plans if each.asked]
        assert asked.asked[0].order == order["checkpoint"]
        assert event.at - asked.now <= WITHIN + world.config.poll


async def test_without_an_answer_it_waits_for_final_within_and_a_poll_and_asks_once(
    tmp_path: Path, server: S3Server
) -> None:
    async with fleet(tmp_path, server) as world:
        await working(world, server)
        await hold_slot(world)
        began = world.clock.now()
        await world.cycle()
        first = await ordered(world, server)
        await world.until(lambda: world.lease().state is LeaseState.PAUSED, 5)
        (pause,) = await world.intents(IntentKind.PAUSE)
        assert WITHIN <= pause.recorded_at - began <= WITHIN + world.config.poll
        assert (await ordered(world, server))["checkpoint"] == first["checkpoint"]
        assert first["checkpoint"]


async def test_a_restart_in_the_middle_neither_forgets_the_question_nor_asks_again(
    tmp_path: Path, server: S3Server
) -> None:
    within = timedelta(minutes=1)
    async with fleet(tmp_path, server, within) as world:
        lease = await working(world, server)
        await hold_slot(world)
        began = world.clock.now()
        # Its order is not written before the restart.
        world.app._orders._secret = lambda _: "refused"
        await world.cycle()
        asked = world.lease().checkpoint_asked_at
        assert asked is not None
        assert await ordered(world, server) == {}
        await world.restart()
        written = world.clock.now()
        await world.cycle()
        assert await pauses(world) == 0
        assert world.lease().checkpoint_asked_at == asked
        assert (await ordered(world, server))["checkpoint"] == f"{lease.intent_id}-{int(asked.timestamp())}"
        await world.until(lambda: world.lease().state is LeaseState.PAUSED, 5)
        (pause,) = await world.intents(IntentKind.PAUSE)
        assert pause.recorded_at - written <= within + world.config.poll
        assert pause.recorded_at - began <= within + 2 * world.config.poll


async def test_a_bucket_that_goes_away_delays_nothing_further(tmp_path: Path, server: S3Server) -> None:
    async with fleet(tmp_path, server) as world:
        await working(world, server)
        world.app._orders._secret = world.app._guard_reader._secret = lambda _: "refused"
        await hold_slot(world)
        began = world.clock.now()
        await world.until(lambda: world.lease().state is LeaseState.PAUSED, 5)
        (pause,) = await world.intents(IntentKind.PAUSE)
        assert pause.recorded_at - began <= WITHIN + world.config.poll


@pytest.mark.parametrize("verb", ["kill", "pause", "release"])
async def test_what_a_person_ends_does_not_wait(tmp_path: Path, server: S3Server, verb: str) -> None:
    async with fleet(tmp_path, server) as world:
        await working(world, server)
        if verb == "kill":
            await spending.kill(world.app)
        else:
            await world.app.say(Order(verb, "train/0"), "ops")
        assert [each for each in world.live() if each.status == "running"] == []
        await world.cycle()
        assert await ordered(world, server) == {}


async def test_an_ending_that_is_given_up_takes_its_order_back(tmp_path: Path, server: S3Server) -> None:
    async with fleet(tmp_path, server) as world:
        lease = await working(world, server)
        await hold_slot(world)
        await world.cycle()
        assert (await ordered(world, server))["quiet"] is True
        await world.app.say(Order("resume", "train/0"), "ops")
        await world.until(lambda: not world.app._orders._running, 5)
        await world.cycle(minutes=1)
        order = await ordered(world, server)
        assert (order["checkpoint"], order["quiet"], order["lease"]) == (None, False, lease.intent_id)
        assert world.lease().state is LeaseState.RUNNING
        assert await pauses(world) == 0


async def test_an_ending_that_is_wanted_again_asks_anew_and_takes_no_old_answer(
    tmp_path: Path, server: S3Server
) -> None:
    within = timedelta(minutes=1)
    async with fleet(tmp_path, server, within) as world:
        lease = await working(world, server)
        await hold_slot(world)
        await world.cycle()
        first = (await ordered(world, server))["checkpoint"]
        await world.app.say(Order("resume", "train/0"), "ops")
        await say(server, lease, sequence=2, answered=first)
        await world.cycle(minutes=2)
        assert world.lease().checkpoint_asked_at is None
        assert (await ordered(world, server))["checkpoint"] is None
        assert await pauses(world) == 0
        await say(server, lease, sequence=3, answered=first)
        await world.cycle(minutes=1)
        await hold_slot(world)
        began = world.clock.now()
        await world.cycle()
        assert (await ordered(world, server))["checkpoint"] not in {None, first}
        await world.until(lambda: world.lease().state is LeaseState.PAUSED, 5)
        (pause,) = await world.intents(IntentKind.PAUSE)
        assert within <= pause.recorded_at - began <= within + world.config.poll


@pytest.mark.nightly
async def test_an_ending_that_its_market_refuses_lets_the_guard_go_on(tmp_path: Path, server: S3Server) -> None:
    async with fleet(tmp_path, server) as world:
        lease = await working(world, server)
        world.weather("server_error_before", route="PUT /instances")
        await hold_slot(world)
        await world.cycle(minutes=1)
        assert (await ordered(world, server))["quiet"] is True
        assert await pauses(world) > 0
        await world.cycle(minutes=2)
        order = await ordered(world, server)
        assert (order["checkpoint"], order["quiet"], order["lease"]) == (None, False, lease.intent_id)
        tried = await pauses(world)
        await world.cycle(minutes=90)
        assert (await ordered(world, server)) == order
        assert (world.lease().state, await pauses(world) > tried) == (LeaseState.RUNNING, True)
        world.still()
        await world.until(lambda: world.lease().state is LeaseState.PAUSED, 15)


async def test_an_order_that_stands_from_before_a_restart_is_taken_back_too(tmp_path: Path, server: S3Server) -> None:
    async with fleet(tmp_path, server) as world:
        lease = await working(world, server)
        note = {"version": 1, "written_sequence": 1, "checkpoint": "x", "quiet": True, "lease": lease.intent_id}
        await asyncio.to_thread(server.put, f"{ROOT}/order.json", json.dumps(note).encode())
        await world.restart()
        for _ in range(3):
            await world.cycle(minutes=0.1)
            order = await ordered(world, server)
        assert (order["checkpoint"], order["quiet"]) == (None, False)


async def test_where_the_ledger_cannot_be_written_nothing_waits(tmp_path: Path, server: S3Server) -> None:
    async with fleet(tmp_path, server) as world:
        await working(world, server)
        await hold_slot(world)
        world.refuse_rows("decisions")
        with pytest.raises(LedgerError):
            await world.app.cycle()
        assert [each for each in world.live() if each.status == "running"] == []
        world.accept_rows()
        await world.cycle()
        assert world.lease().checkpoint_asked_at is None
