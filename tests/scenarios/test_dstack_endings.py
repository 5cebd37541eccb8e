"""Work at dstack that must end or wait, where a pause is a release: at a cap, by its running time, in an array."""

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.domain import money
from agent.domain.record.hold import Word
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.order import Order
from agent.domain.work.ready_sign import Readiness, ReadySign
from agent.domain.work.run_times.running_limit import AtLimit, LimitOf, RunningLimit
from agent.domain.work.workload import Checkpoint, CheckpointPlace, WorkloadKind
from tests.scenarios.test_dstack import WANTS, billing, running, server
from tests.support.both import Both
from tests.support.scene import strategies

HOUR = dt.timedelta(hours=1)


def held(world: Both) -> set[str]:
    """Return the names that are held."""
    known = world.app.ledger.recollection(world.clock.now()).holds
    return {each.target.spoken for each in known if each.word is Word.HELD}


@pytest.mark.parametrize("limit", ["per_hour", pytest.param("per_day", marks=pytest.mark.nightly)])
async def test_a_cap_ends_a_lease_that_a_pause_leaves_running_for_its_disk(tmp_path: Path, limit: str) -> None:
    async with running(tmp_path) as world:
        await world.until(lambda: len(world.running()) == 1, minutes=30)
        (work,) = world.config.workloads
        disk = replace(work, checkpoint=Checkpoint(place=CheckpointPlace.DISK))
        world.config = replace(world.config, workloads=(disk,))
        world.app.reload(world.config, strategies())
        await world.app.say(Order("pause", "train"), "a person")
        await world.cycle(minutes=30)
        assert len(billing(world)) == 1, "rule 11: its disk may hold the only copy"
        lower: Any = {"per_hour": money.per_hour("0.10")} if limit == "per_hour" else {"per_day": money.usd("0.50")}
        world.config = replace(world.config, limits=replace(world.config.limits, **lower))
        await world.restart(after_seconds=1)
        await world.cycle(minutes=60)
        assert billing(world) == []
        assert await world.spend() < 0.55


@pytest.mark.nightly
async def test_a_lease_that_has_run_its_time_is_not_followed_by_another_where_none_can_be_paused(
    tmp_path: Path,
) -> None:
    limit = RunningLimit(HOUR, LimitOf.LEASE, AtLimit.PAUSE, dt.timedelta(minutes=10))
    async with running(tmp_path, max_running=(limit,)) as world:
        await world.cycle(minutes=180)
        assert billing(world) == []
        assert world.leases() == []
        assert len(await world.events("lease.opened")) == 1
        assert held(world) == {"train/0"}
        await world.app.say(Order("resume", "train/0"), "a person")
        await world.until(lambda: len(world.running()) == 1, minutes=30)


@pytest.mark.nightly
async def test_an_array_goes_on_while_the_end_of_a_done_slot_waits_for_a_person(tmp_path: Path) -> None:
    tasks: dict[str, Any] = {
        "kind": WorkloadKind.BATCH,
        "slots": 3,
        "array": ArrayTerms(1),
        "environment": (("SIM_EXIT_AFTER", "600"),),
    }
    async with running(tmp_path, **tasks) as world:
        await world.until(lambda: any(run.status == "terminating" for run in server(world).runs.values()), minutes=120)
        await world.restart(after_seconds=600)
        await world.cycle(minutes=180)
        known = world.app.ledger.recollection(world.clock.now()).holds
        assert {each.target.spoken for each in known if each.word is Word.DONE} == {"train/0", "train/1", "train/2"}
        (left,) = world.leases()
        assert str(left.slot) == "train/0", "nobody watched its end, so it counts on"
        assert billing(world) == []


@pytest.mark.parametrize("has_proxy", [True, pytest.param(False, marks=pytest.mark.nightly)])
async def test_a_service_behind_a_proxy_moves_to_no_market_without_ports(tmp_path: Path, *, has_proxy: bool) -> None:
    service: dict[str, Any] = {
        "kind": WorkloadKind.SERVICE,
        "ports": (8000,),
        "has_proxy": has_proxy,
        "environment": (("SIM_READY_AFTER", "60"),),
        "strategy": "patient",
        "requirements": replace(WANTS, verified_only=False),
        "ready": Readiness(ReadySign.HTTP, port=8000, path="/health"),
    }
    async with running(tmp_path, there=("vast", "dstack"), **service) as world:
        kinds, server(world).kinds = server(world).kinds, []
        await world.until(lambda: any(lease.ready_since for lease in world.running()), minutes=120)
        await world.cycle(minutes=20)
        server(world).kinds = [replace(kind, cents=5) for kind in kinds]
        await world.cycle(minutes=60)
        assert [lease.market for lease in world.running()] == (["vast"] if has_proxy else ["dstack"])
