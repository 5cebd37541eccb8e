"""A guard's measurements, from its beat in a bucket to the ledger, and the work that an outbid then takes."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from agent.domain.record.guard_figures import GuardFigures
from agent.domain.record.lease import Lease
from agent.domain.work.guard_terms import GuardTerms
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from agent.web.reading import report_columns, spend_reports
from tests.support import played_bucket
from tests.support.s3_server import SECRET, S3Server
from tests.support.world import FLEET, Rehearsed, rehearsed, work


async def say(server: S3Server, lease: Lease, sequence: int, **figures: Any) -> None:
    beat = {"version": 1, "sequence": sequence, "lease": lease.intent_id, "phase": "running", **figures}
    path = f"train/{FLEET}/train/0/1/beat-{lease.intent_id}.json"
    await asyncio.to_thread(server.put, path, json.dumps(beat).encode())


def known(world: Rehearsed) -> GuardFigures:
    (found,) = world.app.ledger.recollection(world.clock.now()).guard_figures.values()
    return found


async def test_measured_figures_reach_the_ledger_and_an_interruption_counts_by_them(tmp_path: Path) -> None:
    with played_bucket.played() as server:
        promise = Checkpoint(interval=timedelta(hours=2), restore=timedelta(), place=CheckpointPlace.REMOTE)
        guarded = work(command="python train.py", guard=GuardTerms(("/w",), bucket=server.place()), checkpoint=promise)
        async with rehearsed(tmp_path, workloads=(guarded,), credential=lambda _: SECRET) as world:
            lease = await world.until_running()
            await say(server, lease, 1, progress=1)
            await world.cycle(minutes=3)
            assert (known(world).manifest, known(world).progress) == ("", 1.0)
            measured = {"upload_seconds": 20, "upload_lag_seconds": 25, "checkpoint_bytes": 1_000_000}
            await say(server, lease, 2, manifest="ckpt/00000001-a.json", progress=2, restore_seconds=1e9, **measured)
            await world.cycle(minutes=3)
            kept_at = known(world).kept_at
            assert kept_at is not None
            assert (known(world).upload_seconds, known(world).restore_seconds) == (20.0, None)
            await world.cycle(minutes=10)
            await world.restart()
            assert known(world).kept_at == kept_at
            world.rival(world.contract().slice.machine_id, bid=lease.gpu_rate.dollars * 3)
            await world.until(lambda: any(held.interrupted_by for held in world.leases()), 5)
            reader = await world.app.ledger.reader()
            (lost_work,) = await reader.lost_work(None, None)
            assert lost_work.is_measured
            # Twelve minutes and no more: by the interval of the file all of the stretch would be lost.
            assert timedelta(microseconds=lost_work.lost) == lost_work.at - kept_at
            assert timedelta(minutes=9) < lost_work.at - kept_at < timedelta(minutes=16)
            report = await spend_reports.answer(reader, "/spend", {"by": "day"}, world.clock.now())
            told = next(note for note in report_columns.notes(report) if "measured" in note)
            assert told.startswith("lost work of 1 of 1 interruptions is measured by guards: 0.")


async def test_a_checkpoint_that_came_just_before_the_loss_is_counted_as_kept(tmp_path: Path) -> None:
    with played_bucket.played() as server:
        promise = Checkpoint(interval=timedelta(hours=2), restore=timedelta(), place=CheckpointPlace.REMOTE)
        guarded = work(command="python train.py", guard=GuardTerms(("/w",), bucket=server.place()), checkpoint=promise)
        async with rehearsed(tmp_path, workloads=(guarded,), credential=lambda _: SECRET) as world:
            lease = await world.until_running()
            await say(server, lease, 1)
            await world.cycle(minutes=30)
            world.clock.advance(20)
            await say(server, lease, 2, manifest="ckpt/00000001-a.json", upload_lag_seconds=5)
            world.rival(world.contract().slice.machine_id, bid=lease.gpu_rate.dollars * 3)
            await world.until(lambda: any(held.interrupted_by for held in world.leases()), 5)
            reader = await world.app.ledger.reader()
            (lost_work,) = await reader.lost_work(None, None)
            assert lost_work.is_measured
            assert timedelta(microseconds=lost_work.lost) < timedelta(minutes=1)


async def test_an_outbid_instance_that_comes_back_tells_what_notice_it_got(tmp_path: Path) -> None:
    with played_bucket.played() as server:
        # Its disk may be the only copy, so it waits for the same host.
        terms = GuardTerms(("/w",), bucket=server.place())
        on_disk = Checkpoint(place=CheckpointPlace.DISK)
        guarded = work(command="python train.py", guard=terms, checkpoint=on_disk, may_lose_disk=False)
        async with rehearsed(tmp_path, workloads=(guarded,), credential=lambda _: SECRET) as world:
            lease = await world.until_running()
            await say(server, lease, 1)
            await world.cycle(minutes=3)
            machine = world.contract().slice.machine_id
            rival = world.rival(machine, bid=lease.gpu_rate.dollars * 50)
            await world.until(lambda: any(held.interrupted_by for held in world.leases()), 5)
            await world.cycle(minutes=2)
            world.market.remove_rival(rival)
            await world.until(lambda: world.lease().runs == 2, 60)
            await say(server, lease, 2, notice={"sigterm_seen": True, "seconds": 9.5})
            await world.cycle(minutes=3)
            await say(server, lease, 3, notice={"sigterm_seen": True, "seconds": 9.5}, progress=1)
            await world.cycle(minutes=3)
            await world.restart()
            (given,) = world.app.ledger.recollection(world.clock.now()).guard_notices
            assert (given.lease_id, given.market, given.sigterm_seen, given.seconds) == (
                lease.lease_id,
                "vast",
                True,
                9.5,
            )
            reader = await world.app.ledger.reader()
            assert await reader.notices() == [given]
