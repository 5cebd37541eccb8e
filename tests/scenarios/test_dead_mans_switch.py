"""A guard that ended its instance while no daemon ran: the cause is found, no host is blamed, the slot is filled again.

The bucket answers in the process. The test writes the guard's files there; tests/guard tests the guard itself.
"""

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from agent.cli import run
from agent.decide.strategy import Params, Proposal, View
from agent.domain.market.interruption import Cause
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.guard_terms import GuardTerms
from agent.domain.work.order import Order
from agent.domain.work.workload import WorkloadKind
from agent.guard.deadman import deadman_switch
from agent.guard.deadman.deadman_switch import DeadmanSwitch
from strategies.patient import Patient, PatientParams
from tests.support import played_bucket
from tests.support.s3_server import SECRET, S3Server
from tests.support.world import FLEET, MINUTE, Rehearsed, Scene, rehearsed, strategies, work

FOLDER = f"train/{FLEET}/train/0/1"
AFTER = timedelta(hours=6)
AWAY_SECONDS = 7 * 3600.0


@pytest.fixture
def server() -> Iterator[S3Server]:
    with played_bucket.played() as running:
        yield running


@asynccontextmanager
async def switched(
    folder: Path, server: S3Server, key: list[str], after: timedelta | None = AFTER, **changes: Any
) -> AsyncIterator[Rehearsed]:
    """Run a world whose workload has a switch; the last entry of `key` is the bucket's key."""
    terms = GuardTerms(("/w",), bucket=server.place(), deadman=after)
    guarded = work(kind=WorkloadKind.BATCH, command="python train.py", guard=terms)
    scene = Scene(workloads=(guarded,), credential=lambda _: key[-1], poll=MINUTE)
    async with rehearsed(folder, scene, **changes) as world:
        yield world


async def sign(world: Rehearsed, server: S3Server) -> dict[str, Any]:
    """Return the present sign of life; the writing that is under way is waited for."""
    await world.app.signs.spread(world.app.rules.workloads)
    return dict(json.loads(await asyncio.to_thread(server.get, f"{FOLDER}/alive.json")))


async def fire(world: Rehearsed, server: S3Server, held: Lease, **changes: Any) -> None:
    """Let the daemon be away, or only cut off if it `lives`, and the guard end its instance meanwhile."""
    written = (await sign(world, server))["written"]
    lives = changes.pop("lives", False)
    if not lives:
        await world.close()
    away = changes.pop("while_away", lambda: None)
    away()
    world.clock.advance(AWAY_SECONDS)
    world.market.advance_to(world.clock.time())
    (world.market.destroy if changes.get("destroys") else world.market.stop)(int(held.instance_id))
    note = {"version": 1, "lease": held.intent_id, "silent_seconds": AFTER.total_seconds(), "written": written}
    body = json.dumps({**note, "manifest": None, "destroys": False, **changes}).encode()
    await asyncio.to_thread(server.put, f"{FOLDER}/deadman-{held.intent_id}.json", body)
    if not lives:
        await world.open()


async def test_what_a_switch_stopped_runs_again_once_the_daemon_is_back(tmp_path: Path, server: S3Server) -> None:
    async with switched(tmp_path, server, [SECRET]) as world:
        lease = await world.until_running()
        await fire(world, server, lease)
        await world.cycle(minutes=5)
        assert (world.lease().lease_id, world.lease().state) == (lease.lease_id, LeaseState.RUNNING)
        (lost,) = await world.events("lease.interrupted")
        assert (lost.cause, lost.rule) == (Cause.EXTERNAL_STOP, "deadman")
        assert "its guard ended it after 6.0 h without a sign of life" in lost.evidence
        assert not await world.events("workload.held")
        assert world.lease().end_reason == ""


@pytest.mark.parametrize("destroys", [False, True], ids=["stopped", "destroyed"])
async def test_what_a_switch_ended_is_not_judged_before_its_bucket_answers(
    tmp_path: Path, server: S3Server, *, destroys: bool
) -> None:
    key = [SECRET]
    async with switched(tmp_path, server, key) as world:
        lease = await world.until_running()
        await fire(world, server, lease, destroys=destroys, while_away=lambda: key.append("no key at all"))
        await world.cycle(minutes=6)
        assert not await world.events("workload.held", "lease.interrupted")
        assert len(world.contracts()) == 1
        key.append(SECRET)
        await world.cycle(minutes=3)
        (lost,) = await world.events("lease.interrupted")
        assert (lost.cause, lost.rule) == (Cause.EXTERNAL_STOP, "deadman")
        assert not await world.events("workload.held")


@pytest.mark.parametrize(("destroys", "minutes"), [(False, 0), (True, 4)], ids=["stopped", "destroyed"])
async def test_what_was_read_before_a_daemon_was_cut_off_does_not_judge_what_its_switch_ended_then(
    tmp_path: Path, server: S3Server, minutes: float, *, destroys: bool
) -> None:
    key = [SECRET]
    async with switched(tmp_path, server, key) as world:
        lease = await world.until_running()
        await world.cycle(minutes=6)
        await fire(world, server, lease, lives=True, destroys=destroys, while_away=lambda: key.append("no key at all"))
        await world.cycle(minutes)
        assert not await world.events("workload.held", "lease.interrupted")
        key.append(SECRET)
        await world.cycle(minutes=3)
        (lost,) = await world.events("lease.interrupted")
        assert (lost.cause, lost.rule) == (Cause.EXTERNAL_STOP, "deadman")
        assert not await world.events("workload.held")


@pytest.mark.parametrize(("destroys", "cause"), [(True, Cause.HOST_GONE), (False, Cause.UNKNOWN)])
async def test_the_ten_minutes_of_an_ended_instance_do_not_begin_anew_at_a_start(
    tmp_path: Path, server: S3Server, cause: Cause, *, destroys: bool
) -> None:
    key = [SECRET]
    async with switched(tmp_path, server, key) as world:
        lease = await world.until_running()
        await fire(world, server, lease, destroys=destroys, while_away=lambda: key.append("no key at all"))
        for _ in range(3):
            assert not await world.events("lease.interrupted")
            await world.cycle(minutes=4)
            await world.restart()
        (lost,) = await world.events("lease.interrupted")
        assert lost.cause is cause


async def test_a_stop_is_judged_after_ten_minutes_also_where_its_bucket_stays_away(
    tmp_path: Path, server: S3Server
) -> None:
    key = [SECRET]
    async with switched(tmp_path, server, key) as world:
        lease = await world.until_running()
        await fire(world, server, lease, while_away=lambda: key.append("no key at all"))
        await world.cycle(minutes=12)
        (held,) = await world.events("workload.held")
        assert "without evidence of the market or its host" in held.reason


async def test_what_a_switch_destroyed_is_filled_again_and_no_host_is_blamed(tmp_path: Path, server: S3Server) -> None:
    async with switched(tmp_path, server, [SECRET]) as world:
        lease = await world.until_running()
        await fire(world, server, lease, destroys=True)
        await world.cycle(minutes=6)
        await world.until_running()
        assert world.lease().lease_id != lease.lease_id
        (lost,) = await world.events("lease.interrupted")
        assert (lost.cause, lost.rule) == (Cause.EXTERNAL_STOP, "deadman")
        assert not await world.events("workload.held", "alert.market_fault")
        assert not [rest for rest in world.app.ledger.recollection(world.clock.now()).cooldowns if "host" in str(rest)]


@pytest.mark.parametrize(
    "changes", [{"written": None}, {"lease": "another"}, {"written": 1_000_000_000}, {"version": 2}], ids=str
)
async def test_a_note_that_is_not_of_this_stretch_explains_no_stop(
    tmp_path: Path, server: S3Server, changes: dict[str, Any]
) -> None:
    async with switched(tmp_path, server, [SECRET]) as world:
        lease = await world.until_running()
        await fire(world, server, lease, **changes)
        await world.cycle(minutes=5)
        assert await world.events("workload.held")


async def test_signs_are_written_while_the_daemon_lives_and_say_how_long_it_is_away(
    tmp_path: Path, server: S3Server, capsys: pytest.CaptureFixture[str]
) -> None:
    async with switched(tmp_path, server, [SECRET]) as world:
        await world.until_running()
        first = await sign(world, server)
        assert first["absent_seconds"] == 0
        await world.cycle(minutes=12)
        second = await sign(world, server)
        assert second["written"] > first["written"]
        told, _ = await world.app.say(Order("absent", "fleet:all", timedelta(hours=20)), "ops")
        assert told.endswith("; 1 of 1 dead man's switch(es) can read it in their buckets")
        assert (await sign(world, server))["absent_seconds"] == 20 * 3600
        ((slot, at, ending),) = world.app.signs.fires()
        assert (str(slot), ending) == ("train/0", "stops")
        assert at is not None
        assert at - world.clock.now() == timedelta(hours=20)
        run._print_billing(world.app, "stopped")
        said = f"gpubid:   train/0: its guard stops it at {at:%Y-%m-%d %H:%M} UTC or soon after, unless a daemon runs"
        assert said in capsys.readouterr().out
        await world.restart(after_seconds=3600)
        await world.cycle()
        assert 18 * 3600 < (await sign(world, server))["absent_seconds"] < 19 * 3600 + 1
        await world.app.say(Order("absent", "fleet:all"), "ops")
        assert (await sign(world, server))["absent_seconds"] == 0
        ((_, at, _),) = world.app.signs.fires()
        assert at is not None
        assert at - world.clock.now() == AFTER


async def test_a_sign_that_cannot_be_written_is_told_after_a_quarter_of_the_time(
    tmp_path: Path, server: S3Server
) -> None:
    key = [SECRET]
    async with switched(tmp_path, server, key) as world:
        await world.until_running()
        await sign(world, server)
        key.append("no key at all")
        await world.cycle(minutes=80)
        assert not await world.events("alert.sign_unwritten")
        # A daemon that starts again does not count from its start.
        await world.restart()
        await world.cycle(minutes=20)
        (told,) = await world.events("alert.sign_unwritten")
        assert "the guard of train/0 has had no sign of life for 1 h 3" in told.reason
        assert "after 6 h without one it ends the instance" in told.reason
        key.append(SECRET)
        await world.cycle(minutes=2)
        await sign(world, server)
        assert world.app.signs.alerts() == ()


class Fickle:
    """Decides as patient does until it is broken."""

    params: ClassVar[type[Params]] = PatientParams
    is_broken = False

    def propose(self, view: View, params: Any) -> Sequence[Proposal]:
        if self.is_broken:
            raise RuntimeError("broken")
        return Patient().propose(view, params)


async def fail(world: Rehearsed, minutes: float) -> None:
    """Run passes that fail, at the pace of the daemon."""
    for _ in range(int(minutes * 4)):
        with pytest.raises(RuntimeError, match="broken"):
            await world.app.cycle()
        await asyncio.gather(*world.app.signs._running.values())
        world.clock.advance(15.0)
        world.market.advance_to(world.clock.time())


async def written(server: S3Server) -> int:
    return int(json.loads(await asyncio.to_thread(server.get, f"{FOLDER}/alive.json"))["written"])


async def test_a_daemon_whose_passes_fail_lets_the_switch_fire_and_says_so_before(
    tmp_path: Path, server: S3Server
) -> None:
    fickle = Fickle()
    tuned = {"patient": dataclasses.replace(strategies()["patient"], strategy=fickle)}
    async with switched(tmp_path, server, [SECRET], tuned=tuned) as world:
        await world.until_running()
        await sign(world, server)
        await world.cycle()
        good = world.clock.now()
        fickle.is_broken = True
        await fail(world, 80)
        assert not await world.events("alert.sign_unwritten")
        await fail(world, 20)
        (told,) = await world.events("alert.sign_unwritten")
        assert "no pass of this daemon has succeeded for 1 h 3" in told.reason
        assert "from 3 h on it writes no sign of life" in told.reason
        assert "6 h after the last one the guard of train/0 ends its instance" in told.reason
        await fail(world, 90)
        last = await written(server)
        assert timedelta(hours=2, minutes=40) < timedelta(seconds=last - good.timestamp()) <= AFTER / 2
        # A person's word is spread, and a start is no sign of life.
        told_to, _ = await world.app.say(Order("absent", "fleet:all", timedelta(hours=1)), "ops")
        assert told_to.endswith("; 1 of 1 dead man's switch(es) can read it in their buckets")
        assert (spread := await written(server)) > last
        await world.restart()
        await fail(world, 5)
        assert await written(server) == spread
        fickle.is_broken = False
        await world.cycle(minutes=1)
        await asyncio.gather(*world.app.signs._running.values())
        assert await written(server) > spread
        assert world.app.signs.alerts() == ()


async def test_a_container_whose_file_has_no_switch_any_more_reads_signs_all_the_same(
    tmp_path: Path, server: S3Server
) -> None:
    async with switched(tmp_path, server, [SECRET], None) as world:
        await world.until_running()
        first = await sign(world, server)
        await world.cycle(minutes=12)
        assert (await sign(world, server))["written"] > first["written"]
        assert world.app.signs.fires() == ()
        told, _ = await world.app.say(Order("absent", "fleet:all", timedelta(hours=1)), "ops")
        assert told.endswith("; 0 of 0 dead man's switch(es) can read it in their buckets")


def change(world: Rehearsed, after: timedelta | None, *, destroy: bool = False) -> None:
    """Give the program, also at its next starts, a file with another switch."""
    (before,) = world.config.workloads
    assert before.guard is not None
    terms = dataclasses.replace(before.guard, deadman=after, destroy=destroy)
    world.config = dataclasses.replace(world.config, workloads=(dataclasses.replace(before, guard=terms),))
    world.app.reload(world.config, world.scene.tuned)


@pytest.mark.parametrize(("after", "destroy"), [(None, False), (timedelta(hours=24), True)], ids=["never", "24h"])
async def test_a_container_keeps_the_switch_of_its_rent_whatever_the_file_says_today(
    tmp_path: Path, server: S3Server, after: timedelta | None, *, destroy: bool
) -> None:
    key = [SECRET]
    async with switched(tmp_path, server, key) as world:
        lease = await world.until_running()
        change(world, after, destroy=destroy)
        await world.restart()
        await world.cycle()
        await sign(world, server)
        ((slot, at, ending),) = world.app.signs.fires()
        assert at is not None
        assert (str(slot), at - world.clock.now() <= AFTER, ending) == ("train/0", True, "stops")
        told, _ = await world.app.say(Order("absent", "fleet:all", timedelta(hours=1)), "ops")
        assert told.endswith("; 1 of 1 dead man's switch(es) can read it in their buckets")
        key.append("no key at all")
        await world.cycle(minutes=100)
        (alert,) = await world.events("alert.sign_unwritten")
        assert "after 6 h without one it ends the instance" in alert.reason
        key.append(SECRET)
        await world.cycle(minutes=2)
        await fire(world, server, lease)
        await world.cycle(minutes=5)
        (lost,) = await world.events("lease.interrupted")
        assert (lost.cause, lost.rule) == (Cause.EXTERNAL_STOP, "deadman")
        assert not await world.events("workload.held")


async def test_a_silence_shorter_than_the_switch_of_the_rent_explains_no_stop(tmp_path: Path, server: S3Server) -> None:
    async with switched(tmp_path, server, [SECRET]) as world:
        lease = await world.until_running()
        change(world, timedelta(hours=1))
        await fire(world, server, lease, silent_seconds=2 * 3600.0)
        await world.cycle(minutes=5)
        assert await world.events("workload.held")


async def test_a_note_of_a_guard_that_was_told_of_no_switch_explains_no_stop(tmp_path: Path, server: S3Server) -> None:
    async with switched(tmp_path, server, [SECRET], None) as world:
        lease = await world.until_running()
        change(world, AFTER)
        await fire(world, server, lease)
        await world.cycle(minutes=5)
        assert await world.events("workload.held")


async def test_the_guards_own_switch_reads_what_the_daemon_writes(tmp_path: Path, server: S3Server) -> None:
    async with switched(tmp_path, server, [SECRET]) as world:
        await world.until_running()
        counted = DeadmanSwitch(AFTER.total_seconds())

        async def listen(now: float, tag: str) -> None:
            counted.answered(now, deadman_switch.read_sign(await sign(world, server), tag))

        await listen(0.0, "a")
        for minute in range(1, 361):
            counted.answered(60.0 * minute, None)
        assert counted.is_due
        await world.cycle(minutes=12)
        await listen(60.0 * 361, "b")
        assert not counted.is_due
        assert counted.written == (await sign(world, server))["written"]
