"""A service at dstack: its page is asked by the server, and what keeps ending is not rented without end."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.domain.record.hold import Word
from agent.domain.work.ready_sign import Liveness, Readiness, ReadySign
from agent.domain.work.workload import WorkloadKind
from agent.simulator.dstack.model import Run
from tests.scenarios.test_dstack import billing, running, server
from tests.support.both import Both
from tests.support.scene import strategies


async def test_a_service_that_a_person_stops_on_the_server_moves_once_in_a_cool_off(tmp_path: Path) -> None:
    async with running(tmp_path, kind=WorkloadKind.SERVICE) as world:
        await world.until(lambda: len(world.running()) == 1, minutes=30)
        (first,) = billing(world)
        server(world).stop(first.name)
        await world.until(lambda: [one.instance_id for one in world.running()] not in ([], [first.uuid]), minutes=60)
        (second,) = billing(world)
        server(world).stop(second.name)
        await world.until(lambda: world.leases() == [], minutes=30)
        assert [event.kind.value for event in await world.events("slot.cooling_off")] == ["slot.cooling_off"]
        assert await world.events("workload.held") == []


@pytest.mark.nightly
async def test_a_service_is_ready_by_the_servers_own_probe_and_replaced_when_that_fails(tmp_path: Path) -> None:
    changes: dict[str, Any] = {
        "kind": WorkloadKind.SERVICE,
        "ports": (8000,),
        "environment": (("SIM_READY_AFTER", "60"), ("SIM_SILENT_ONCE_AFTER", "3600")),
        "ready": Readiness(ReadySign.HTTP, port=8000, path="/health", live=Liveness(timedelta(seconds=30))),
    }
    async with running(tmp_path, **changes) as world:
        await world.until(lambda: any(lease.ready_since is not None for lease in world.running()), minutes=30)
        (first,) = world.running()
        assert first.ports == "", "it is in no list of services"
        await world.cycle(minutes=65)
        assert await world.events("lease.unhealthy") != []
        await world.until(
            lambda: any(lease.ready_since and lease.lease_id != first.lease_id for lease in world.running()),
            minutes=120,
        )
        assert len(billing(world)) == 1


@pytest.mark.parametrize(
    "meanwhile",
    [pytest.param("", marks=pytest.mark.nightly), "restart", pytest.param("reload", marks=pytest.mark.nightly)],
)
async def test_one_missed_probe_of_the_server_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    """Its word stands until its next probe: two looks meanwhile were two failures, and the machine was let go."""
    live = Liveness(timedelta(seconds=10), timedelta(seconds=20), failures=2)
    ready = Readiness(ReadySign.HTTP, port=8000, path="/health", live=live)
    service: dict[str, Any] = {"kind": WorkloadKind.SERVICE, "ports": (8000,), "ready": ready, "slots": 2}
    missed: dict[str, tuple[float, float]] = {}
    probed = Run.success_streak

    def streak(run: Run, now: float, every: float) -> int:
        began, ended = missed.get(run.uuid, (0.0, 0.0))
        return 0 if began <= now < ended else probed(run, now, every)

    def failed(world: Both) -> bool:
        return any(lease.failed_probes for lease in world.leases())

    monkeypatch.setattr(Run, "success_streak", streak)
    async with running(tmp_path, poll=timedelta(seconds=5), **service) as world:
        await world.until(lambda: sum(lease.ready_since is not None for lease in world.running()) == 2, minutes=60)
        await world.cycle(minutes=5)
        one, other = billing(world)
        (probe,) = one.configuration["probes"]
        began = world.clock.time() + 1.0
        missed[one.uuid] = began, began + probe["interval"] + probe["timeout"]
        await world.until(lambda: failed(world), minutes=1)
        if meanwhile == "restart":
            await world.restart()
        elif meanwhile == "reload":
            faster = replace(ready, live=replace(live, every=timedelta(seconds=1), within=timedelta(seconds=1)))
            works = tuple(replace(work, ready=faster) for work in world.config.workloads)
            world.app.reload(replace(world.config, workloads=works), strategies())
        await world.cycle(minutes=10)
        assert {run.uuid for run in billing(world)} == {one.uuid, other.uuid}
        assert await world.events("lease.unhealthy") == []


async def test_a_service_that_dies_on_every_machine_is_held_and_not_rented_without_end(tmp_path: Path) -> None:
    changes: dict[str, Any] = {
        "kind": WorkloadKind.SERVICE,
        "ports": (8000,),
        "environment": (("SIM_READY_AFTER", "60"), ("SIM_SILENT_AFTER", "600")),
        "ready": Readiness(ReadySign.HTTP, port=8000, path="/health", live=Liveness(timedelta(seconds=30))),
        "max_failed_starts": 3,
    }
    async with running(tmp_path, **changes) as world:
        await world.until(lambda: bool(world.app.ledger.recollection(world.app.clock.now()).holds), minutes=240)
        await world.cycle(minutes=60)
        (held,) = world.app.ledger.recollection(world.app.clock.now()).holds
        assert (held.word, str(held.target)) == (Word.HELD, "workload:train")
        assert len(await world.events("lease.opened")) == 3
        assert billing(world) == []
        ends = [each.reason for each in await world.events("lease.unhealthy") if "cannot restart it" in each.reason]
        assert len(ends) == 3


async def test_a_service_whose_program_ends_by_itself_is_held_and_not_rented_without_end(tmp_path: Path) -> None:
    """It rented six times an hour for ever, since each new lease began to count at none."""
    changes: dict[str, Any] = {"environment": (("SIM_EXIT_AFTER", "360"),), "max_failed_starts": 3}
    async with running(tmp_path, kind=WorkloadKind.SERVICE, **changes) as world:
        await world.cycle(minutes=120)
        (held,) = world.app.ledger.recollection(world.app.clock.now()).holds
        assert (held.word, str(held.target)) == (Word.HELD, "workload:train")
        assert len(await world.events("lease.opened")) == 3
        assert billing(world) == []
