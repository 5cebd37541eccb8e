"""A guarded lease that is adopted after its ledger was lost: its guard is heard again once its folder is known."""

import asyncio
import dataclasses
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agent.decide.operators import guard_runs, reload
from agent.domain.record.guard_run import GuardRun
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.slot import Slot
from agent.domain.work import run_claim
from agent.domain.work.guard_terms import Accept, GuardTerms
from agent.domain.work.order import Order
from agent.domain.work.run_claim import KeptRun, RunClaim
from agent.domain.work.workload import WorkloadKind
from agent.ledger import offline, storage
from agent.web.reading import slot_grounds
from tests.support import builders, engines, s3_server, store_proxy
from tests.support.s3_server import SECRET, S3Server
from tests.support.s3_servers import Store
from tests.support.world import FLEET, HOURS_POLL, POLL, START, Rehearsed, rehearsed, work


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


async def lose(world: Rehearsed) -> None:
    """Let the daemon lose its ledger, but not its fleet id."""
    await world.close()
    engines.lose(world.config.ledger)
    world.is_checked = False  # earlier charges are in the month's seed, not under a lease
    await world.open()


@asynccontextmanager
async def guarded(folder: Path, server: S3Server, poll: timedelta = POLL) -> AsyncIterator[Rehearsed]:
    terms = GuardTerms(("/w",), bucket=server.place(), deadman=timedelta(hours=6), accept=Accept.REJECT)
    made = work(kind=WorkloadKind.BATCH, command="python train.py", guard=terms)
    async with rehearsed(folder, workloads=(made,), credential=lambda _: SECRET, poll=poll) as world:
        yield world


async def test_the_guard_of_an_adopted_lease_is_recognised_by_its_beat_and_heard(tmp_path: Path) -> None:
    with s3_server.served() as server:
        async with guarded(tmp_path, server) as world:
            rent = (await world.until_running()).intent_id
            await beat(server, 3, rent)
            # The result of its check days ago is no reason to release a working lease.
            await put(server, 3, f"acceptance-{rent}.json", lease=rent, tool="ok", gpu_count=0)
            await lose(world)
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


@pytest.mark.only_sqlite
async def test_a_restored_ledger_goes_on_with_the_run_that_a_person_began_after_the_backup(tmp_path: Path) -> None:
    """It went on from the results that `gpubid retry` had thrown away."""
    with s3_server.served() as server:
        async with guarded(tmp_path, server) as world:
            assert (await world.until_running()).guard_run == 1
            for verb in ("drain", "release"):
                await world.app.say(Order(verb, "train"), "me")
            await world.until(lambda: not world.leases(), 10)
            await world.close()
            place, copy = world.config.ledger, tmp_path / "copy.sqlite"
            shutil.copy(place, copy)
            await put(server, 2, "latest.json", sequence=2)
            engines.lose(place)
            shutil.copy(copy, place)
            offline.mark_restored(storage.of(place), world.clock.now())
            world.is_checked = False
            await world.open()
            await world.app.say(Order("resume", "train"), "me")
            assert (await world.until_running()).guard_run == 2
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
                await lose(world)
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


async def claim(server: S3Server, run: int, spec: str) -> None:
    """Claim a run as the daemon did whose ledger was lost."""
    claimed = run_claim.written(GuardRun(Slot("train", 0), run, "train", spec, START - timedelta(days=3)))
    await asyncio.to_thread(server.put, f"train/{FLEET}/train/0/{run}/run.json", claimed)


@pytest.mark.parametrize("is_changed", [False, True])
@pytest.mark.parametrize("number", [1, 3])
async def test_a_run_of_another_spec_is_not_continued_after_a_lost_ledger(
    tmp_path: Path, number: int, *, is_changed: bool
) -> None:
    with s3_server.served() as server:
        async with guarded(tmp_path, server) as world:
            spec = "another" if is_changed else reload.spec_digest(world.scene.workloads[0])
            await put(server, number, "latest.json", sequence=2)
            await claim(server, number, spec)
            assert (await world.until_running()).guard_run == number + is_changed
            begun = await world.events("workload.run_begun")
            assert [event.reason.endswith("of another image, GPU or disk") for event in begun] == (
                [True] if is_changed else [False] * (number > 1)
            )


async def test_the_run_of_an_adopted_lease_of_another_spec_is_its_last(tmp_path: Path) -> None:
    with s3_server.served() as server:
        async with guarded(tmp_path, server) as world:
            rent = (await world.until_running()).intent_id
            await asyncio.to_thread(server.get, f"train/{FLEET}/train/0/1/run.json")
            await beat(server, 1, rent)
            changed = dataclasses.replace(world.scene.workloads[0], image="ubuntu:24.04")
            world.config = dataclasses.replace(world.config, workloads=(changed,))
            await lose(world)
            assert (await searched(world)).guard_run == 1
            runs = world.app.ledger.recollection(world.clock.now()).guard_runs
            assert [run.run for run in runs] == [1, 2]


async def test_a_slot_of_a_lost_ledger_whose_last_run_is_done_does_no_work_again(tmp_path: Path) -> None:
    with s3_server.served() as server:
        async with guarded(tmp_path, server) as world:
            await put(server, 3, "end.json", lease="old", code=0, done=True)
            await claim(server, 3, "another")
            seen = await world.cycle(minutes=5)
            assert not world.contracts()
            (done,) = await world.events("workload.done")
            assert done.reason.endswith("nothing was rented for it; `gpubid retry train/0` does the work again")
            (kept,) = slot_grounds.of(seen.fleet, world.scene.workloads[0], Slot("train", 0))["kept_by"]
            assert (kept["what"], "`gpubid retry train/0`" in kept["after"]) == ("done:slot:train/0", True)
            await world.app.say(Order("retry", "train/0"), "me")
            assert (await world.until_running()).guard_run == 4


@pytest.mark.parametrize("number", [1, 3])
async def test_a_slot_of_a_lost_ledger_finds_its_last_run_under_the_workloads_old_name(
    tmp_path: Path, number: int
) -> None:
    with s3_server.served() as server:
        terms = GuardTerms(("/w",), bucket=server.place())
        made = work("fit", was="train", kind=WorkloadKind.BATCH, command="python train.py", guard=terms)
        async with rehearsed(tmp_path, workloads=(made,), credential=lambda _: SECRET) as world:
            await put(server, number, "latest.json", sequence=2)
            lease = await world.until_running()
            assert (lease.guard_run, lease.slot) == (number, Slot("fit", 0))
            told = json.loads(world.contract().env["GPUBID_GUARD"])
            assert (told["bucket"]["root"], told["manifest_exists"]) == (f"train/{FLEET}/train/0/{number}", True)
            await world.restart()
            runs = world.app.ledger.recollection(world.clock.now()).guard_runs
            assert guard_runs.last(runs)[Slot("fit", 0)].name == "train"
            assert not [name for name in await asyncio.to_thread(server.names) if f"/{FLEET}/fit/" in name]


NOW = builders.NOW
OURS, ORDERED = (GuardRun(Slot("train", 0), number, "train", "spec", NOW) for number in (1, 2))
ANOTHER = RunClaim(1, "another", NOW - timedelta(days=3))
SAME = RunClaim(1, "spec", NOW - timedelta(days=3))


@pytest.mark.parametrize(
    ("present", "kept", "taken"),
    [
        (OURS, None, None),
        (OURS, KeptRun(1), None),
        (OURS, KeptRun(1, RunClaim(1, "spec", NOW)), None),
        (OURS, KeptRun(1, SAME), None),
        (OURS, KeptRun(1, ANOTHER), 2),
        (OURS, KeptRun(1, ANOTHER, "exit code 0"), 1),
        (OURS, KeptRun(3), 3),
        (OURS, KeptRun(3, SAME), 3),
        (OURS, KeptRun(3, ANOTHER), 4),
        (OURS, KeptRun(3, ANOTHER, "exit code 0"), 3),
        (ORDERED, KeptRun(1, ANOTHER), None),
        (ORDERED, KeptRun(2), None),
        (ORDERED, KeptRun(2, RunClaim(1, "spec", NOW)), None),
        (ORDERED, KeptRun(2, SAME, "exit code 0"), 3),
        (ORDERED, KeptRun(3), 4),
        (OURS, KeptRun(1, name="old"), 1),
        (OURS, KeptRun(1, ANOTHER, name="old"), 2),
        (ORDERED, KeptRun(2, name="old"), 3),
    ],
)
def test_a_run_without_a_lease_gives_way_to_another_ledgers(
    present: GuardRun, kept: KeptRun | None, taken: int | None
) -> None:
    found = guard_runs.beyond(present, kept, NOW)
    assert (None if found is None else found.run.run) == taken
    if found is not None and kept is not None and kept.claim is not None and found.run.run == kept.number:
        assert kept.claim.is_of(found.run), "the next rent must know it again"


@pytest.mark.parametrize(
    ("present", "kept", "taken"),
    [
        (OURS, KeptRun(1, SAME), None),
        (ORDERED, KeptRun(2, SAME), None),
        (ORDERED, KeptRun(2, SAME, "exit code 0"), 2),
        (OURS, KeptRun(2, SAME), 2),
        (OURS, KeptRun(2, SAME, "exit code 0"), 2),
        (ORDERED, KeptRun(3, SAME), 3),
        (ORDERED, KeptRun(3, ANOTHER), 4),
    ],
)
def test_a_run_that_worked_before_a_backup_gives_way_to_one_that_was_begun_after_it(
    present: GuardRun, kept: KeptRun, taken: int | None
) -> None:
    """`gpubid retry` had thrown its results away; after a restore the work went on from them."""
    found = guard_runs.beyond(present, kept, NOW, goes_on=True)
    assert (None if found is None else (found.run.run, found.finished)) == (taken and (taken, kept.finished))


@pytest.mark.parametrize(("spec", "is_by_file"), [("other", True), ("spec", False)])
def test_a_run_of_another_spec_than_the_one_before_was_begun_by_a_changed_file(spec: str, *, is_by_file: bool) -> None:
    before = dataclasses.replace(OURS, spec_digest=spec)
    assert guard_runs.is_by_file(ORDERED, (before, ORDERED)) is is_by_file
    assert not guard_runs.is_by_file(OURS, (OURS, ORDERED))


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
                await lose(world)
                held = await searched(world, 2)
            assert (held.guard_run, held.intent_id, held.state) == (None, "", LeaseState.RUNNING)
            assert "1" in await signed(world, server)
            assert not await world.events("workload.done", "workload.held")
            said = "2, train/0/5 have its beat" if runs else "none of its first 64 runs has its beat"
            (told,) = [line for line in lines if line["event"] == "guard.unfound"]
            assert told["reason"].endswith(said)


@pytest.mark.nightly
async def test_a_lease_whose_run_is_not_found_counts_as_one_without_signs_of_life(tmp_path: Path) -> None:
    with s3_server.served() as server:
        async with guarded(tmp_path, server, HOURS_POLL) as world:
            rent = (await world.until_running()).intent_id
            await beat(server, 65, rent)
            await lose(world)
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
            await lose(world)
            assert (await searched(world, 1)).guard_run is None
            key.append(SECRET)
            assert (await searched(world)).guard_run == 2
