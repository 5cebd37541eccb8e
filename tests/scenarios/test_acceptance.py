"""A host that is not as rented: the lease ends as a failed start, its host is blamed, and another is rented.

The bucket answers in the process. The test writes the guard's files there; tests/guard tests the guard itself.
"""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.cli.watch import explain as explain_verb
from agent.cycle import Pass
from agent.decide import explain
from agent.domain.market.offer import Offer
from agent.domain.record.lease import Lease
from agent.domain.work.guard_terms import Accept, GuardTerms
from agent.domain.work.workload import Workload
from agent.web.reading import learned_json
from tests.support import played_bucket
from tests.support.s3_server import SECRET, S3Server
from tests.support.world import FLEET, Rehearsed, rehearsed, work

FOLDER = f"train/{FLEET}/train/0/1"


@pytest.fixture
def server() -> Iterator[S3Server]:
    with played_bucket.played() as running:
        yield running


def checked(server: S3Server, accept: Accept) -> Workload:
    return work(command="python train.py", guard=GuardTerms(("/w",), bucket=server.place(), accept=accept))


async def note(server: S3Server, held: Lease, **changes: Any) -> None:
    """Write the report of a guard on a host with the rented model and number of GPUs, with changes."""
    gpu = {"name": f"NVIDIA GeForce {held.gpu}", "memory_mb": 24_564.0, "uncorrected_errors": None}
    found = {"version": 1, "lease": held.intent_id, "tool": "ok", "gpu_count": held.gpus, "gpus": [gpu] * held.gpus}
    body = json.dumps(found | changes).encode()
    await asyncio.to_thread(server.put, f"{FOLDER}/acceptance-{held.intent_id}.json", body)


def failed_starts(world: Rehearsed, held: Lease) -> float:
    known = world.app.ledger.recollection(world.clock.now()).hosts_on(held.market)
    record = known.get(held.host_id)
    return record.starts_failed if record is not None else 0.0


async def test_a_lying_host_is_given_up_and_blamed_and_another_one_is_rented(tmp_path: Path, server: S3Server) -> None:
    async with rehearsed(tmp_path, workloads=(checked(server, Accept.REJECT),), credential=lambda _: SECRET) as world:
        first = await world.until_running()
        await note(server, first, gpus=[{"name": "NVIDIA GeForce GTX 1070"}])
        await world.until(lambda: all(lease.host_id != first.host_id for lease in world.leases()), 10)
        second = await world.until_running()
        assert second.host_id != first.host_id
        (event,) = await world.events("lease.not_ready")
        assert event.reason == f"not_as_rented: its GPU is NVIDIA GeForce GTX 1070 and not {first.gpu}"
        assert failed_starts(world, first) > 0.9
        assert failed_starts(world, second) == 0.0
        cooling = world.app.ledger.recollection(world.clock.now()).cooldowns
        assert str(first.host) in {rest.key for rest in cooling}
        assert not await world.events("alert.not_as_rented", "workload.held")
        kept = world.app.ledger.recollection(world.clock.now()).host_checks[first.lease_id]
        assert (kept.seen_gpu, kept.gpu) == ("NVIDIA GeForce GTX 1070", first.gpu)
        await note(server, second)
        await world.cycle(minutes=30)
        assert world.lease().lease_id == second.lease_id


async def test_a_lying_host_is_only_told_where_the_file_says_so(tmp_path: Path, server: S3Server) -> None:
    async with rehearsed(tmp_path, workloads=(checked(server, Accept.TELL),), credential=lambda _: SECRET) as world:
        first = await world.until_running()
        await note(server, first, gpu_count=0)
        await world.cycle(minutes=30)
        assert world.lease().lease_id == first.lease_id
        (event,) = await world.events("alert.not_as_rented")
        said, fix = event.reason.split("; ")
        assert said.endswith(f"as its guard says: 0 of {first.gpus} GPUs are there")
        assert fix == "`gpubid release train/0` gives it up"
        assert failed_starts(world, first) == 0.0


async def test_a_word_that_comes_late_ends_no_lease_that_holds_work(tmp_path: Path, server: S3Server) -> None:
    async with rehearsed(tmp_path, workloads=(checked(server, Accept.REJECT),), credential=lambda _: SECRET) as world:
        first = await world.until_running()
        await world.cycle(minutes=20)
        await note(server, first, gpu_count=0)
        await world.cycle(minutes=20)
        assert world.lease().lease_id == first.lease_id
        assert len(await world.events("alert.not_as_rented")) == 1


async def test_a_host_that_lies_everywhere_costs_a_bounded_number_of_starts(tmp_path: Path, server: S3Server) -> None:
    wanted = replace(checked(server, Accept.REJECT), max_failed_starts=3)
    async with rehearsed(tmp_path, workloads=(wanted,), credential=lambda _: SECRET) as world:
        for _ in range(3):
            await note(server, await world.until_running(), gpu_count=0)
            await world.until(lambda: not world.live(), 10)
        await world.cycle(minutes=60)
        assert len(world.contracts()) == 3
        (event,) = await world.events("workload.held")
        assert "3 starts failed within a day" in event.reason


def offers(done: Pass) -> dict[str, Offer]:
    """Return an offer of each host that a cycle asked for."""
    return {offer.host_id: offer for view in done.fleet.markets.values() for offer in view.offers}


async def test_what_is_measured_is_kept_ranks_hosts_and_is_shown(
    tmp_path: Path, server: S3Server, capsys: pytest.CaptureFixture[str]
) -> None:
    async with rehearsed(tmp_path, workloads=(checked(server, Accept.TELL),), credential=lambda _: SECRET) as world:
        rows = offers(await world.cycle())
        first = await world.until_running()
        await note(server, first, matmul_tflops=100.0, disk_write_mbps=800.0)
        await world.cycle(minutes=3)
        own = world.app.ledger.recollection(world.clock.now()).host_checks[first.lease_id]
        assert (own.matmul_tflops, own.disk_write_mbps, own.dlperf) == (100.0, 800.0, first.dlperf)
        slow, fast = [row for row in rows.values() if row.gpu == first.gpu and row.host != first.host][:2]
        each = first.gpus / first.dlperf
        async with world.app.ledger.transaction() as tx:
            for offer, share in ((slow, 0.6), (fast, 3.0)):
                speed = share * 100.0 * each * offer.dlperf / offer.gpus
                told = replace(own, lease_id=offer.host_id, host_id=offer.host_id, owner_id=offer.owner_id)
                tx.keep_host_check(replace(told, gpus=offer.gpus, dlperf=offer.dlperf, matmul_tflops=speed))
        await world.restart()
        world.weather("host_gone", machine_id=int(first.host_id))
        while not offers(done := await world.cycle()):
            assert world.clock.now() < own.checked_at + timedelta(hours=2)
        explained = explain.explain(done.fleet, done.plan, world.app.rules.workloads[0])
        told_by = {row["host"]: row["share_of_dlperf"] for row in explain.explanation_json(explained)["speeds"]}
        assert told_by[str(slow.host)] == pytest.approx(0.8)
        assert told_by[str(fast.host)] == 1.0
        explain_verb._print_now(explain.explanation_json(explained) | {"services": [], "clouds": []})
        printed = " ".join(capsys.readouterr().out.split())
        assert "measured speed (of its DLPerf) 0.8000" in printed.replace("│", " ").replace("  ", " ")
        assert f"measured by guards: host {slow.host} counts as 80% of the DLPerf that its market promises" in printed
        reader = await world.app.ledger.reader()
        shown = learned_json.learned(await reader.hosts(), [], world.clock.now(), (), await reader.host_checks())
        by_host = {row["host"]: row for market in shown["markets"] for row in market["speeds"]}
        assert by_host[slow.host_id]["share_of_dlperf"] == pytest.approx(0.8)
        assert (by_host[first.host_id]["matmul_tflops"], by_host[first.host_id]["checks"]) == (100.0, 1)
