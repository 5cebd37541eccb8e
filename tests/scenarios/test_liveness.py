"""A service that was ready is probed on: one that stops answering is useless at once, restarted, and then moved."""

import dataclasses
import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import LeaseState
from agent.domain.work.order import Order
from agent.domain.work.ready_sign import Liveness, Readiness, ReadySign
from agent.domain.work.stall import OnStall, StallRule
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Workload, WorkloadKind
from agent.ledger.tables.spend_rows import SpendKey
from agent.web import discovery
from agent.web.reading import verb_json
from tests.support.world import MINUTE, POLL, Rehearsed, rehearsed, work

EVERY = dt.timedelta(seconds=30)


def serving(*told: tuple[str, str], place: CheckpointPlace = CheckpointPlace.NONE, **changes: Any) -> Workload:
    live = Liveness(EVERY, dt.timedelta(seconds=5), 2)
    ready = Readiness(ReadySign.HTTP, dt.timedelta(minutes=10), port=8000, path="/health", live=live)
    return work(ready=ready, ports=(8000,), environment=told, checkpoint=Checkpoint(place=place), **changes)


async def served(world: Rehearsed) -> None:
    await world.until(lambda: any(lease.ready_since for lease in world.leases()))


def services(world: Rehearsed) -> list[dict[str, Any]]:
    return discovery.services(world.leases(), world.scene.workloads)


async def useful_seconds(world: Rehearsed) -> float:
    reader = await world.app.ledger.reader()
    return sum(line.useful_seconds for line in await reader.spend_by(SpendKey.LEASE))


async def test_a_dead_service_is_restarted_in_place_and_its_silence_is_not_useful(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(serving(("SIM_SILENT_ONCE_AFTER", "1800")),), poll=POLL) as world:
        held = await world.until_running()
        await served(world)
        assert len(services(world)) == 1
        ready = world.lease().ready_since
        assert ready is not None
        await world.until(lambda: world.lease().unhealthy_since is not None, 200)
        assert services(world) == []
        shown = verb_json.slot(world.lease().slot, {}, (), world.leases())
        told = f"its service does not answer since {world.app.clock.now():%H:%M} UTC: port 8000 does not answer"
        assert shown["why"] == f"{told} (ConnectionRefusedError); restarts so far: 0"
        silent_for = world.clock.time() - (world.contract().running_since or 0.0) - 1800
        assert silent_for <= 3 * EVERY.total_seconds(), "longer than a poll and two probes"
        lost_at = world.clock.time()
        await served(world)
        lease = world.lease()
        assert (lease.lease_id, lease.restarts, lease.unhealthy_since) == (held.lease_id, 1, None)
        assert lease.ready_since is not None
        assert lease.ready_since.timestamp() - lost_at > 300, "alone, and restarted at once"
        assert len(services(world)) == 1
        useful = await useful_seconds(world)
        assert 0 <= lost_at - ready.timestamp() - useful <= 90, "not until its last metered minute"
        [ill] = await world.events("lease.unhealthy")
        assert ill.reason == "unhealthy: port 8000 does not answer (ConnectionRefusedError)"
        assert len(await world.events("lease.ready")) == 2
        assert len(world.contracts()) == 1


async def test_a_service_that_dies_on_its_host_again_and_again_moves(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(serving(("SIM_SILENT_AFTER", "600")),)) as world:
        held = await world.until_running()
        await world.until(lambda: held.lease_id not in {lease.lease_id for lease in world.leases()}, 600)
        await world.until_running()
        assert world.lease().host != held.host
        await served(world)
        [listed] = services(world)
        assert listed["labels"]["__meta_gpubid_lease"] == world.lease().lease_id, "it serves again elsewhere"
        last = (await world.events("lease.unhealthy"))[-1]
        assert last.reason.startswith("unhealthy: its service does not answer after 2 restarts; ")


async def test_a_service_whose_program_ends_on_its_host_again_and_again_moves(tmp_path: Path) -> None:
    asked = serving(("SIM_EXIT_AFTER", "600"), kind=WorkloadKind.SERVICE)
    async with rehearsed(tmp_path, workloads=(asked,), poll=MINUTE) as world:
        held = await world.until_running()
        await world.until(lambda: held.lease_id not in {lease.lease_id for lease in world.leases()}, 120)
        await world.until_running()
        assert world.lease().host != held.host


async def test_a_service_that_comes_back_dead_after_a_pause_is_restarted_and_then_moves(tmp_path: Path) -> None:
    """Nothing looked at it, and it billed until a person came."""
    async with rehearsed(tmp_path, workloads=(serving(),), poll=MINUTE) as world:
        held = await world.until_running()
        await served(world)
        contract = world.contract()
        contract.env = {**contract.env, "SIM_READY_AFTER": "never"}
        await world.app.say(Order("pause", "train"), "a test")
        await world.until(lambda: world.lease().state is LeaseState.PAUSED)
        await world.app.say(Order("resume", "train"), "a test")
        await world.until(lambda: world.lease().restarts == 1, 60)
        await world.until(lambda: held.lease_id not in {lease.lease_id for lease in world.leases()}, 120)
        await served(world)
        assert world.lease().host != held.host


async def test_a_disk_that_may_hold_the_only_copy_is_kept_and_told(tmp_path: Path) -> None:
    asked = serving(("SIM_SILENT_AFTER", "600"), place=CheckpointPlace.DISK)
    async with rehearsed(tmp_path, workloads=(asked,)) as world:
        held = await world.until_running()
        await world.cycle(minutes=180)
        assert world.lease().lease_id == held.lease_id
        assert world.lease().restarts > 2
        told = await world.events("alert.unhealthy")
        assert told
        assert "copy it, then `gpubid release train/0`" in told[0].reason


async def test_a_kept_service_that_is_not_ready_after_its_restart_is_restarted_on_and_told(tmp_path: Path) -> None:
    asked = serving(("SIM_SILENT_AFTER", "600"), place=CheckpointPlace.DISK)
    async with rehearsed(tmp_path, workloads=(asked,), poll=MINUTE) as world:
        held = await world.until_running()
        await world.until(lambda: world.lease().restarts == 1)
        contract = world.contract()
        contract.env = {**contract.env, "SIM_READY_AFTER": "never"}
        await world.cycle(minutes=180)
        assert world.lease().lease_id == held.lease_id
        assert world.lease().restarts > 2
        assert not await world.events("lease.not_ready")
        ill = await world.events("lease.unhealthy")
        assert ill[1].reason.startswith("unhealthy: its service is not ready after 1 restart(s); port 8000 does not")
        told = await world.events("alert.unhealthy")
        assert "copy it, then `gpubid release train/0`" in told[0].reason


async def test_nothing_is_unhealthy_while_its_market_is_dark(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(serving(("SIM_SILENT_ONCE_AFTER", "1800")),)) as world:
        await world.until_running()
        await served(world)
        dark = world.weather("server_error_before")
        await world.cycle(minutes=60)
        assert world.lease().unhealthy_since is None
        assert world.lease().state is LeaseState.RUNNING
        world.simulator.weather.clear(dark)
        await world.until(lambda: world.lease().restarts == 1, 100)


async def test_a_service_that_flaps_is_restarted_twice_and_then_left_to_come_back(tmp_path: Path) -> None:
    asked = serving(("SIM_FLAPS_EVERY", "480"), place=CheckpointPlace.DISK)
    async with rehearsed(tmp_path, workloads=(asked,)) as world:
        await world.until_running()
        await world.cycle(minutes=65)
        stops = await world.intents(IntentKind.PAUSE)
        assert len(stops) == 2, "it answers again before the third restart is due"
        assert len(await world.events("lease.unhealthy")) > 3
        assert len(world.contracts()) == 1


@pytest.mark.nightly
async def test_a_service_that_answers_slower_and_slower_is_restarted_before_its_memory_is_full(tmp_path: Path) -> None:
    asked = serving(("SIM_LEAKS_FOR", "600"))
    ready = dataclasses.replace(asked.ready, live=Liveness(EVERY, dt.timedelta(seconds=1), 2))
    async with rehearsed(tmp_path, workloads=(dataclasses.replace(asked, ready=ready),)) as world:
        held = await world.until_running()
        await served(world)
        await world.until(lambda: world.lease().restarts == 1, 20)
        await served(world)
        assert world.lease().lease_id == held.lease_id
        [ill] = await world.events("lease.unhealthy")
        assert ill.reason == "unhealthy: port 8000 does not answer (TimeoutError)"


LIES = ("server_error_before", "reset", "empty_list", "partial_list", "stale_list", "malformed")


@pytest.mark.parametrize("lie", LIES)
async def test_no_verdict_on_a_healthy_service_or_on_work_that_goes_on_is_born_of_a_lie(
    tmp_path: Path, lie: str
) -> None:
    rule = StallRule(dt.timedelta(minutes=5), (OnStall.MOVE,))
    train = work("train", stalled=rule, checkpoint=Checkpoint(place=CheckpointPlace.NONE))
    service = dataclasses.replace(serving(("SIM_READY_AFTER", "15")), name="serve", stalled=rule)
    async with rehearsed(tmp_path, workloads=(train, service)) as world:
        await world.until_running()
        await served(world)
        false = world.weather(lie, **({"keep": 0.0} if lie == "partial_list" else {}))
        await world.cycle(minutes=9)
        world.simulator.weather.clear(false)
        await world.cycle(minutes=4)
        assert not await world.events("lease.unhealthy", "lease.stalled", "workload.held")
        assert all(lease.restarts == 0 for lease in world.leases())
        assert len(world.contracts()) == 2


async def test_a_workload_without_probes_is_never_unhealthy(tmp_path: Path) -> None:
    asked = serving(("SIM_SILENT_ONCE_AFTER", "900"))
    ready = Readiness(ReadySign.HTTP, dt.timedelta(minutes=10), port=8000, path="/health")

    async with rehearsed(tmp_path, workloads=(dataclasses.replace(asked, ready=ready),)) as world:
        await world.until_running()
        await world.cycle(minutes=60)
        assert world.lease().ready_since is not None
        assert world.lease().restarts == 0
