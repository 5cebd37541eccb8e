"""A guarded workload on a market: the settings in its container, its record in the ledger, and who else gets them."""

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog
from prometheus_client import CollectorRegistry

from agent.act.orders import changed_workloads
from agent.config import guard_archive
from agent.decide.operators import guard_runs, reload
from agent.domain.record.lease import LeaseState
from agent.domain.slot import Slot
from agent.domain.work import kept_terms
from agent.domain.work.deadline import Progress
from agent.domain.work.guard_terms import GuardTerms
from agent.domain.work.workload import Checkpoint, CheckpointPlace, OnChange, Workload, WorkloadKind
from agent.guard import guard_settings
from agent.guard.checkpoints.advised_interval import AdvisedInterval
from agent.ledger.tables.host_rows import Exposure
from agent.pass_metrics import Figures
from agent.telemetry.metric_updates import Metrics
from tests.support import played_bucket
from tests.support.s3_server import SECRET, S3Server
from tests.support.world import FLEET, Rehearsed, rehearsed, work


def guarded(server: S3Server, **changes: Any) -> Workload:
    return work(command="python train.py", guard=GuardTerms(("/w",), bucket=server.place()), **changes)


def told(world: Rehearsed) -> dict[str, object]:
    known: dict[str, object] = json.loads(world.contract().env["GPUBID_GUARD"])
    return known


async def test_its_container_gets_the_guard_and_nobody_else_the_key(tmp_path: Path) -> None:
    folder = tmp_path / "fleet"
    folder.mkdir()
    with played_bucket.played() as server:
        async with rehearsed(folder, workloads=(guarded(server),), credential=lambda _: SECRET) as world:
            with structlog.testing.capture_logs() as logged:
                lease = await world.until_running()
            environment = world.contract().env
            assert told(world)["lease"] == lease.intent_id
            assert told(world)["bucket"]["root"] == f"train/{FLEET}/train/0/1"  # type: ignore[index]
            assert told(world)["manifest_exists"] is False
            assert f"{environment['GPUBID_BUCKET_KEY_ID']}:{environment['GPUBID_BUCKET_SECRET']}" == SECRET
            assert lease.guard_run == 1
        digest = guard_archive.digest(guard_archive.packed())
        signs, names = f"train/{FLEET}/train/0/1/alive.json", server.names()
        assert [name for name in names if name != signs] == [
            "train/claim.json",
            f"train/{FLEET}/train/0/1/run.json",
            f"train/guard/{digest}.pyz",
        ]
        assert environment["GPUBID_GUARD_SHA256"] == digest
    kept = b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())
    secret = SECRET.partition(":")[2]
    assert secret.encode() not in kept
    assert secret not in str(logged)


async def test_a_lost_reply_and_a_restart_keep_the_run(tmp_path: Path) -> None:
    with played_bucket.played() as server:
        async with rehearsed(tmp_path, workloads=(guarded(server),), credential=lambda _: SECRET) as world:
            world.weather("reset", when="after", route="PUT /asks")
            await world.cycle()
            assert not world.leases()
            await world.restart()
            world.still()
            assert (await world.until_running()).guard_run == 1
            known = world.app.ledger.recollection(world.clock.now()).guard_runs
            assert [(run.slot, run.run) for run in known] == [(Slot("train", 0), 1)]


@pytest.mark.parametrize("is_renamed", [False, True])
async def test_the_next_lease_of_a_run_may_have_a_checkpoint_although_the_bucket_is_away(
    tmp_path: Path, *, is_renamed: bool
) -> None:
    with played_bucket.played() as server:
        first = guarded(server)
        async with rehearsed(tmp_path, workloads=(first,), credential=lambda _: SECRET) as world:
            await world.until_running()
            away = S3Server("http://127.0.0.1:9").place()
            changes: dict[str, Any] = {"name": "fit", "was": "train"} if is_renamed else {}
            again = work(command="python train.py", guard=GuardTerms(("/w",), bucket=away), **changes)
            world.app.rules = replace(world.app.rules, workloads=(again,))
            await world.cycle()
            world.weather("host_gone", machine_id=world.contract().slice.machine_id)
            await world.until(lambda: len(world.contracts()) > 1, 300)
            newest = json.loads(world.contracts()[-1].env["GPUBID_GUARD"])
            assert newest["manifest_exists"] is True
            assert newest["bucket"]["root"] == f"train/{FLEET}/train/0/1"
            known = world.app.ledger.recollection(world.clock.now()).guard_runs
            assert {run.run for run in guard_runs.last(known).values()} == {1}


async def test_a_done_code_ends_a_batch_whose_guard_is_asleep_and_nothing_else_does(tmp_path: Path) -> None:
    with played_bucket.played() as server:
        batch = guarded(server, kind=WorkloadKind.BATCH)
        async with rehearsed(tmp_path, workloads=(batch,), credential=lambda _: SECRET) as world:
            lease = await world.until_running()
            root = f"train/{FLEET}/train/0/1"
            beat = {"version": 1, "sequence": 1, "lease": lease.intent_id, "phase": "done"}
            end = {"version": 1, "lease": lease.intent_id, "code": 3, "done": False, "last_lines": []}
            await asyncio.to_thread(server.put, f"{root}/beat-{lease.intent_id}.json", json.dumps(beat).encode())
            await asyncio.to_thread(server.put, f"{root}/end.json", json.dumps(end).encode())
            for _ in range(3):
                await world.cycle(minutes=1.5)
            assert world.lease().is_live
            end.update(code=0, done=True)
            await asyncio.to_thread(server.put, f"{root}/end.json", json.dumps(end).encode())
            await world.until(lambda: not world.live(), 10)
            await world.cycle(minutes=30)
            assert [contract.ended is not None for contract in world.contracts()] == [True]
            (event,) = await world.events("workload.done")
            assert event.reason == "train/0 is done by exit code 0, as its guard reports"


async def test_a_code_that_only_the_guard_calls_done_pauses_its_instance_for_a_person(tmp_path: Path) -> None:
    with played_bucket.played() as server:
        batch = guarded(server, kind=WorkloadKind.BATCH)
        async with rehearsed(tmp_path, workloads=(batch,), credential=lambda _: SECRET) as world:
            lease = await world.until_running()
            end = {"version": 1, "lease": lease.intent_id, "code": 3, "done": True, "last_lines": []}
            path = f"train/{FLEET}/train/0/1/end.json"
            await asyncio.to_thread(server.put, path, json.dumps(end).encode())
            await world.until(lambda: not world.lease().is_live, 10)
            assert [contract.ended for contract in world.contracts()] == [None]
            (event,) = await world.events("workload.held")
            assert "its guard calls exit code 3 done, which is not among its done_codes" in event.reason
            assert not await world.events("workload.done")


async def test_a_run_that_begins_between_leases_is_told_once_and_a_rename_is_none(tmp_path: Path) -> None:
    with played_bucket.played() as server:
        first = guarded(server)
        async with rehearsed(tmp_path, workloads=(first,), credential=lambda _: SECRET) as world:
            changed = replace(first, image="ubuntu:24.04")
            for work in (first, changed, changed, replace(changed, name="fit", was="train")):
                world.clock.advance(1)
                await changed_workloads.record(world.app.ledger, (work,), world.clock.now())
                if work is first:
                    async with world.app.ledger.transaction() as tx:
                        tx.keep_progress(Progress("train", 9.0, world.clock.now(), world.clock.now()))
            (event,) = await world.events("workload.run_begun")
            assert event.reason == "train/0 begins run 2, without the checkpoints of run 1"
            assert world.app.ledger.recollection(world.clock.now()).progress["train"].hours == 0.0


async def test_a_file_that_changes_right_after_a_rent_is_not_taken_for_what_was_rented(tmp_path: Path) -> None:
    with played_bucket.played() as server:
        first = guarded(server, on_change=OnChange.MOVE)
        async with rehearsed(tmp_path, workloads=(first,), credential=lambda _: SECRET) as world:
            await world.until(lambda: bool(world.leases()), 5)
            changed = replace(first, image="ubuntu:24.04")
            world.config = replace(world.config, workloads=(changed,))
            await world.restart()
            await world.cycle()
            held = world.lease()
            assert (held.guard_run, held.spec_digest) == (1, reload.spec_digest(first))
            assert held.guard_terms == kept_terms.text(first)
            assert reload.moves(msgspec.structs.replace(held, state=LeaseState.RUNNING), changed)
            await world.until(lambda: {each.guard_run for each in world.leases()} == {2}, 120)
            assert world.contract().image == "ubuntu:24.04"
            assert world.lease().spec_digest == reload.spec_digest(changed)


async def test_a_rent_that_is_found_after_the_file_changed_has_the_terms_that_its_guard_was_told(
    tmp_path: Path,
) -> None:
    with played_bucket.played() as server:
        first = guarded(server)
        assert first.guard is not None
        async with rehearsed(tmp_path, workloads=(first,), credential=lambda _: SECRET) as world:
            # The market rents, and its answer is lost.
            world.weather("reset", when="after", route="PUT /asks", seconds=5)
            await world.until(lambda: bool(world.contracts()), 5)
            assert not world.leases()
            changed = replace(first, guard=replace(first.guard, done_codes=(0, 3), deadman=timedelta(hours=2)))
            world.config = replace(world.config, workloads=(changed,))
            await world.restart()
            await world.until(lambda: bool(world.leases()), 30)
            assert world.lease().guard_terms == kept_terms.text(first)


async def test_a_guard_that_falls_silent_is_told_once_and_its_lease_goes_on(tmp_path: Path) -> None:
    with played_bucket.played() as server:
        async with rehearsed(tmp_path, workloads=(guarded(server),), credential=lambda _: SECRET) as world:
            lease = await world.until_running()
            beat = {"version": 1, "sequence": 1, "lease": lease.intent_id, "phase": "running"}
            path = f"train/{FLEET}/train/0/1/beat-{lease.intent_id}.json"
            await asyncio.to_thread(server.put, path, json.dumps(beat).encode())
            registry = CollectorRegistry()
            figures = Figures(Metrics(registry, ["vast"], ["train"]))

            async def count(minutes: float) -> float | None:
                figures.see(world.app, await world.cycle(minutes))
                return registry.get_sample_value("gpubid_guards_silent", {"workload": "train"})

            assert await count(14) == 0.0
            assert not await world.events("alert.guard_silent")
            assert await count(10) == 1.0
            (told,) = await world.events("alert.guard_silent")
            assert "the guard of train/0" in told.reason
            assert world.lease().is_live
            # The alert is raised once, and the figure stays as long as the silence.
            assert await count(5) == 1.0
            await asyncio.to_thread(server.put, path, json.dumps({**beat, "sequence": 2}).encode())
            assert await count(3) == 0.0


@pytest.mark.parametrize("is_done", [True, False])
async def test_nothing_is_rented_for_a_run_that_the_bucket_says_is_done(tmp_path: Path, *, is_done: bool) -> None:
    with played_bucket.played() as server:
        end = {"version": 1, "lease": "gone", "code": 0 if is_done else 3, "done": True, "last_lines": []}
        await asyncio.to_thread(server.put, f"train/{FLEET}/train/0/1/end.json", json.dumps(end).encode())
        batch = guarded(server, kind=WorkloadKind.BATCH)
        async with rehearsed(tmp_path, workloads=(batch,), credential=lambda _: SECRET) as world:
            await world.cycle(minutes=10)
            assert len(world.contracts()) == (0 if is_done else 1)
            done = await world.events("workload.done")
            told = "train/0 is done by exit code 0, as its guard reports; nothing was rented for it"
            assert [event.reason for event in done] == [f"{told}; `gpubid retry train/0` does the work again"][
                : len(done)
            ]
            assert bool(done) is is_done
            await world.restart()
            await world.cycle(minutes=10)
            assert len(world.contracts()) == (0 if is_done else 1)


async def test_a_restart_with_an_edited_file_is_refused_by_the_terms_of_the_rent(tmp_path: Path) -> None:
    with played_bucket.played() as server:
        batch = guarded(server, kind=WorkloadKind.BATCH)
        async with rehearsed(tmp_path, workloads=(batch,), credential=lambda _: SECRET) as world:
            lease = await world.until_running()
            await world.restart()
            assert world.app.findings(world.config, is_start=True) == ()
            assert batch.guard is not None
            edited = replace(batch, guard=replace(batch.guard, done_codes=(3,)))
            (found,) = world.app.findings(replace(world.config, workloads=(edited,)), is_start=True)
            assert (found.code, found.is_refusal) == ("fewer_done_codes", True)
            assert f"the guard of {lease.lease_id} keeps the settings of its rent" in found.sentence


async def test_a_running_guard_is_advised_once_and_again_where_the_hazard_has_changed(tmp_path: Path) -> None:
    with played_bucket.played() as server:
        batch = guarded(server, checkpoint=Checkpoint(place=CheckpointPlace.REMOTE, takes=timedelta(seconds=10)))
        async with rehearsed(tmp_path, workloads=(batch,), credential=lambda _: SECRET) as world:
            lease = await world.until_running()
            path = f"train/{FLEET}/train/0/1/advice-{lease.intent_id}.json"
            await world.cycle(minutes=11)
            environment = world.contract().env
            made = AdvisedInterval(guard_settings.read(environment))
            given = [made.at(age) for age in (0.0, 86_400.0)]
            made.take(json.loads(server.get(path)))
            assert [made.at(age) for age in (0.0, 86_400.0)] == pytest.approx(given, rel=0.25)
            server.put(path, b"{}")
            await world.cycle(minutes=21)
            assert server.get(path) == b"{}", "nothing has changed"
            async with world.app.ledger.transaction() as tx:
                tx.add_host_exposure(Exposure("vast", lease.host_id, interruptions=50, at=world.clock.now()))
            await world.cycle(minutes=21)
            made.take(json.loads(server.get(path)))
            assert made.at(0.0) < 0.8 * given[0]
