"""A guarded lease that is adopted after its ledger was lost: its guard is heard again once its folder is known."""

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agent.decide.operators import guard_runs
from agent.domain.record.guard_run import GuardRun
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.slot import Slot
from agent.domain.work.guard_terms import Accept, GuardTerms
from agent.domain.work.workload import WorkloadKind
from agent.web.reading import slot_grounds
from tests.support import builders, s3_server, store_proxy
from tests.support.s3_server import SECRET, S3Server
from tests.support.s3_servers import Store
from tests.support.world import FLEET, Rehearsed, rehearsed, work


async def put(server: S3Server, run: int, name: str, **content: object) -> None:
    body = json.dumps({"version": 1, **content}).encode()
    await asyncio.to_thread(server.put, f"train/{FLEET}/train/0/{run}/{name}", body)


async def beat(server: S3Server, run: int, lease: str) -> None:
    await put(server, run, f"beat-{lease}.json", sequence=7, lease=lease, phase="running")


async def signed(world: Rehearsed, server: S3Server) -> set[str]:
    """Return the folders below the slot's that have a sign of life."""
    await asyncio.gather(*world.app.signs._running.values())
    names = await asyncio.to_thread(server.names)
    return {name.split("/")[-2] for name in names if name.endswith("/alive.json")}


async def searched(world: Rehearsed, minutes: float = 2) -> Lease:
    """Let the daemon search, and return the lease."""
    deadline = world.clock.monotonic() + minutes * 60
    while world.clock.monotonic() < deadline:
        await world.cycle()
        await asyncio.gather(*world.app._runs._running.values())
    return world.lease()


async def lose(world: Rehearsed, folder: Path) -> None:
    """Let the daemon lose its ledger, but not its fleet id."""
    await world.close()
    for path in folder.glob("ledger.sqlite*"):  # noqa: ASYNC240 - a folder of ours, at once
        if path.suffix != ".fleet":
            path.unlink()
    world.is_checked = False  # what was charged before is in the month's seed, not under a lease
    await world.open()


@asynccontextmanager
async def guarded(folder: Path, server: S3Server) -> AsyncIterator[Rehearsed]:
    terms = GuardTerms(("/w",), bucket=server.place(), deadman=timedelta(hours=6), accept=Accept.REJECT)
    made = work(kind=WorkloadKind.BATCH, command="python train.py", guard=terms)
    async with rehearsed(folder, workloads=(made,), credential=lambda _: SECRET) as world:
        yield world


async def test_the_guard_of_an_adopted_lease_is_recognised_by_its_beat_and_heard(tmp_path: Path) -> None:
    with s3_server.served() as server:
        async with guarded(tmp_path, server) as world:
            rent = (await world.until_running()).intent_id
            await beat(server, 3, rent)
            # What its check found days ago is no reason to let go of what it works on.
            await put(server, 3, f"acceptance-{rent}.json", lease=rent, tool="ok", gpu_count=0)
            await lose(world, tmp_path)
            held = await searched(world)
            assert (held.guard_run, held.intent_id, held.state) == (3, rent, LeaseState.RUNNING)
            runs = world.app.ledger.recollection(world.clock.now()).guard_runs
            assert {(run.slot, run.run) for run in runs} == {(Slot("train", 0), number) for number in (1, 3)}
            assert "3" in await signed(world, server)
            ((_, at, _),) = world.app.signs.fires()
            assert at is not None
            await put(server, 3, "end.json", lease=rent, code=0, done=True)
            await world.until(lambda: not world.live(), 10)
            assert await world.events("workload.done")
            assert len(world.contracts()) == 1


async def test_a_slot_of_a_lost_ledger_goes_on_with_the_last_run_in_its_bucket(tmp_path: Path) -> None:
    with s3_server.served() as server:
        async with guarded(tmp_path, server) as world:
            # The first run was done long ago, and a person ordered two more.
            await put(server, 1, "end.json", lease="old", code=0, done=True)
            await put(server, 1, "latest.json", sequence=9)
            await put(server, 3, "latest.json", sequence=2)
            held = await world.until_running()
            assert held.guard_run == 3
            assert not await world.events("workload.done")
            (begun,) = await world.events("workload.run_begun")
            assert begun.reason.endswith("which this ledger did not know: it goes on with that run")


@pytest.mark.parametrize("is_lost", [True, False])
async def test_only_after_a_lost_ledger_a_slot_waits_until_its_bucket_can_be_listed(
    tmp_path: Path, *, is_lost: bool
) -> None:
    with s3_server.served() as server, store_proxy.before(Store("moto", server.url)) as proxy:
        async with guarded(tmp_path, S3Server(proxy.url)) as world:
            proxy.fault = lambda _method, _path: 503
            if is_lost:
                await lose(world, tmp_path)
            await world.cycle(minutes=25)
            if not is_lost:
                assert world.lease().guard_run == 1
                return
            assert not world.contracts()
            (told,) = await world.events("alert.bucket_unlisted")
            assert "`gpubid resume train/0`" in told.reason
            assert world.app.seen is not None
            (kept,) = slot_grounds.of(world.app.seen.fleet, world.scene.workloads[0], Slot("train", 0))["kept_by"]
            assert kept["what"] == "slot:train/0"
            assert "run 1 would be paid work from zero: see `gpubid doctor`" in kept["after"]
            proxy.fault = lambda _method, _path: None
            await put(server, 3, "latest.json", sequence=2)
            assert (await world.until_running(30)).guard_run == 3


def test_a_run_that_was_ordered_begins_beyond_those_in_the_bucket() -> None:
    at = builders.NOW
    ordered = GuardRun(Slot("train", 0), 2, "train", "spec", at)
    assert guard_runs.beyond(ordered, 2, at) is None
    taken = guard_runs.beyond(ordered, 3, at)
    assert taken is not None
    assert taken[0].run == 4


@pytest.mark.parametrize("runs", [(), (2, 5)], ids=["none", "two"])
async def test_without_one_folder_that_has_its_beat_nothing_is_concluded(tmp_path: Path, runs: tuple[int, ...]) -> None:
    with s3_server.served() as server:
        async with guarded(tmp_path, server) as world:
            rent = (await world.until_running()).intent_id
            for run in runs:
                await beat(server, run, rent)
                await put(server, run, "end.json", lease=rent, code=0, done=True)
            await put(server, 4, f"beat-{rent}.json", sequence=1, lease="another", phase="running")
            with capture_logs() as lines:
                await lose(world, tmp_path)
                held = await searched(world, 2)
            assert (held.guard_run, held.intent_id, held.state) == (None, "", LeaseState.RUNNING)
            assert "1" in await signed(world, server)
            assert not await world.events("workload.done", "workload.held")
            said = "2, train/0/5 have its beat" if runs else "none of its first 64 runs has its beat"
            (told,) = [line for line in lines if line["event"] == "guard.unfound"]
            assert told["reason"].endswith(said)


async def test_a_lease_whose_run_is_not_found_counts_as_one_without_signs_of_life(tmp_path: Path) -> None:
    with s3_server.served() as server:
        async with guarded(tmp_path, server) as world:
            rent = (await world.until_running()).intent_id
            await beat(server, 65, rent)
            await lose(world, tmp_path)
            await searched(world, 3)
            assert "1" in await signed(world, server)
            assert world.app.signs.fires() == ((Slot("train", 0), None, "stops"),)
            assert (await world.app.signs.spread(world.app.rules.workloads)).startswith("0 of 1 dead man's switch(es)")
            assert not await world.events("alert.sign_unwritten")
            await world.cycle(minutes=91)
            (told,) = await world.events("alert.sign_unwritten")
            assert "and its run is not found in s3://" in told.reason
            assert 0.25 <= world.app.signs.silences()["train"] < 0.27


async def test_a_bucket_that_is_away_keeps_the_lease_as_it_is(tmp_path: Path) -> None:
    with s3_server.served() as server:
        key = [SECRET]
        async with guarded(tmp_path, server) as world:
            world.scene = dataclasses.replace(world.scene, credential=lambda _: key[-1])
            rent = (await world.until_running()).intent_id
            await beat(server, 2, rent)
            key.append("no key at all")
            await lose(world, tmp_path)
            assert (await searched(world, 1)).guard_run is None
            key.append(SECRET)
            assert (await searched(world)).guard_run == 2
