"""The whole program at dstack: it rents once, counts what clouds charge, and lets go of nothing that still bills."""

import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.cli.ordering import kill_progress
from agent.domain import money
from agent.domain.market import gpu
from agent.domain.record.cooldown import CooldownKind
from agent.domain.record.lease import Bills
from agent.domain.work.order import Order
from agent.domain.work.workload import Fallback, Requirements, WorkloadKind
from agent.markets.dstack.vendor_record import DstackOptions
from agent.simulator import faults
from agent.simulator.dstack.model import Run
from agent.simulator.dstack.world import World
from tests.support import builders
from tests.support.both import Both, both
from tests.support.scene import POLL

OPTIONS = {"dstack": DstackOptions(fleet="mine", backends=("aws", "cloudrift"))}
WANTS = Requirements(gpu_models=(gpu.model("RTX 4090"),))


@contextlib.asynccontextmanager
async def running(
    directory: Path, there: tuple[str, ...] = ("dstack",), poll: timedelta = POLL, **changes: Any
) -> AsyncIterator[Both]:
    plain: dict[str, Any] = {
        "strategy": "ondemand",
        "max_price": money.per_hour(3),
        "requirements": WANTS,
        "markets": there,
    }
    work = builders.workload(**plain | changes)
    async with both(directory, work, markets=there, options=OPTIONS, poll=poll, is_wired=True) as world:
        yield world


def server(world: Both) -> World:
    side = world.simulator.sides["dstack"]
    side.wake(world.clock.time())
    found = side.world  # type: ignore[attr-defined]
    assert isinstance(found, World)
    return found


def billing(world: Both) -> list[Run]:
    return [run for run in server(world).live_contracts() if run.machine is not None]


async def test_a_lost_answer_rents_once_and_a_day_costs_what_the_cloud_charges(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        lost = {"fault": "reset", "market": "dstack", "route": "POST /api/project/main/runs/apply", "when": "after"}
        world.simulator.sides["dstack"].weather.add(faults.parse(lost))  # type: ignore[union-attr]
        await world.cycle()
        world.simulator.sides["dstack"].weather.clear_all()  # type: ignore[union-attr]
        await world.until(lambda: len(world.running()) == 1, minutes=30)
        await world.restart(after_seconds=60.0)
        await world.cycle(minutes=120)
        assert len(billing(world)) == 1
        assert await world.spend() == pytest.approx(server(world).charged_total(), rel=0.01)


async def test_a_lost_machine_is_replaced_and_never_counts_less_than_its_cloud_charges(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        await world.until(lambda: len(world.running()) == 1, minutes=30)
        (first,) = billing(world)
        server(world).set_host_gone(first.host.machine_id)
        await world.until(lambda: [one.instance_id for one in world.running()] not in ([], [first.uuid]), minutes=180)
        assert [run.uuid for run in billing(world)] == [world.running()[0].instance_id]
        assert server(world).runs[first.uuid].is_deleted, "so that no later look takes it for one that bills"
        charged = server(world).charged_total()
        assert charged <= await world.spend() <= charged + 0.05


async def test_a_release_ends_only_when_the_machine_is_gone(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        await world.until(lambda: len(world.running()) == 1, minutes=30)
        (run,) = billing(world)
        await world.app.say(Order("kill", "train"), "a person")
        await world.cycle()
        assert [lease.instance_id for lease in world.leases()] == [run.uuid], "it bills until its cloud has it back"
        await world.until(lambda: world.leases() == [], minutes=30)
        assert billing(world) == []
        assert (await world.spend()) >= server(world).charged_total()
        assert await world.events("intent.in_doubt") == [], "nothing is in doubt about an order that was accepted"
        taken = await world.events("intent.accepted")
        assert {event.lease_id for event in taken} == {f"dstack-{run.uuid}"}
        assert {event.reason_code for event in taken} <= {"killed", "release_again"}


@pytest.mark.nightly
async def test_a_machine_that_the_server_gave_up_stays_counted(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        await world.until(lambda: len(world.running()) == 1, minutes=30)
        (run,) = billing(world)
        server(world).gives_up = 1.0
        await world.app.say(Order("kill", "train"), "a person")
        await world.cycle(minutes=120)
        assert [lease.instance_id for lease in world.leases()] == [run.uuid]
        assert await world.spend() == pytest.approx(server(world).charged_total(), rel=0.02)
        (told,) = await world.events("alert.state_unknown", "alert.order_refused")
        assert f"the end of run {run.name}" in told.reason
        assert f"pool/{run.machine.kind.backend}/{run.machine.kind.region}/" in told.reason  # type: ignore[union-attr]
        assert f"`gpubid release dstack-{run.uuid} --gone`" in told.reason
        shown = await kill_progress._present(world.app)
        assert kill_progress.Progress(keep_disks=False).show(shown), "a kill waits for nothing that no call ends"
        # A person ends it at the cloud, and says so.
        server(world).set_host_gone(run.host.machine_id)
        await world.cycle(minutes=5)
        assert len(world.leases()) == 1
        await world.app.say(Order("release", "train/0", is_gone=True), "a person")
        await world.until(lambda: world.leases() == [], minutes=30)
        assert server(world).runs[run.uuid].is_deleted
        assert await world.spend() == pytest.approx(server(world).charged_total() + 0.06, abs=0.03)


@pytest.mark.nightly
@pytest.mark.parametrize("is_restarted", [True, False])
async def test_a_run_that_a_person_deletes_too_early_ends_no_lease(tmp_path: Path, is_restarted: bool) -> None:
    async with running(tmp_path) as world:
        await world.until(lambda: len(world.running()) == 1, minutes=30)
        (run,) = billing(world)
        server(world).gives_up = 1.0
        await world.app.say(Order("kill", "train"), "a person")
        await world.cycle(minutes=40)
        server(world).delete(run.name)
        if is_restarted:
            await world.restart()
        await world.cycle(minutes=40)
        (lease,) = world.leases()
        assert (lease.instance_id, lease.bills) == (run.uuid, Bills.GPU_AND_DISK)
        assert await world.spend() == pytest.approx(server(world).charged_total(), rel=0.02)
        if is_restarted:
            told = (await world.events("alert.state_unknown"))[-1]
            assert f"gpubid release {lease.lease_id} --gone" in told.reason
        await world.app.say(Order("release", lease.lease_id, is_gone=True), "a person")
        await world.until(lambda: world.leases() == [], minutes=30)


async def test_an_end_that_was_proven_is_believed_also_if_the_daemon_died_before_it_wrote_that_down(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as world:
        await world.until(lambda: len(world.running()) == 1, minutes=30)
        (run,) = billing(world)
        await world.app.say(Order("kill", "train"), "a person")
        await world.until(lambda: [one.bills for one in world.leases()] in ([Bills.DISK], [Bills.NOTHING]), minutes=30)
        server(world).delete(run.name)
        await world.restart()
        await world.until(lambda: world.leases() == [], minutes=30)
        assert await world.events("alert.state_unknown") == []


async def test_a_server_that_is_away_for_an_hour_loses_nothing_and_rents_nothing_twice(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        await world.until(lambda: len(world.running()) == 1, minutes=30)
        (run,) = billing(world)
        away = {"fault": "reset", "market": "dstack", "when": "before", "seconds": 3600}
        world.simulator.sides["dstack"].weather.add(faults.parse(away))  # type: ignore[union-attr]
        await world.cycle(minutes=70)
        assert [lease.instance_id for lease in world.running()] == [run.uuid]
        assert [each.uuid for each in billing(world)] == [run.uuid]
        assert await world.events("lease.interrupted") == []
        assert await world.spend() == pytest.approx(server(world).charged_total(), rel=0.02)


async def test_an_end_while_the_server_was_away_is_not_believed(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        await world.until(lambda: len(world.running()) == 1, minutes=30)
        (run,) = billing(world)
        away = {"fault": "reset", "market": "dstack", "when": "before", "seconds": 600}
        world.simulator.sides["dstack"].weather.add(faults.parse(away))  # type: ignore[union-attr]
        await world.cycle(minutes=2)
        server(world).stop(run.name)
        await world.cycle(minutes=30)
        assert run.uuid not in [each.uuid for each in billing(world)]
        (lease,) = (each for each in world.leases() if each.instance_id == run.uuid)
        assert lease.bills is Bills.GPU_AND_DISK
        assert await world.spend() > server(world).charged_total()


@pytest.mark.parametrize(
    ("verb", "reason"),
    [
        ("release", "terminated_by_user"),
        ("pause", "terminated_by_user"),
        ("done", "terminated_by_user"),
        ("kill", "aborted_by_user"),
    ],
)
async def test_only_a_kill_leaves_the_work_no_signal(tmp_path: Path, verb: str, reason: str) -> None:
    async with running(tmp_path, kind=WorkloadKind.BATCH) as world:
        await world.until(lambda: len(world.running()) == 1, minutes=30)
        (run,) = billing(world)
        await world.app.say(Order(verb, "train/0" if verb == "release" else "train"), "a person")
        await world.cycle(minutes=5)
        assert (run.reason, run.signalled is not None) == (reason, verb != "kill")
        assert run.uuid not in [each.uuid for each in billing(world)]
        assert await world.events("lease.interrupted") == [], "it was our own order"


async def test_a_kill_of_everything_leaves_no_work_a_signal(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        await world.until(lambda: len(world.running()) == 1, minutes=30)
        (run,) = billing(world)
        await world.app.say(Order("kill", "fleet:all"), "a person")
        await world.cycle(minutes=5)
        assert (run.reason, billing(world)) == ("aborted_by_user", [])


@pytest.mark.parametrize("is_abort", [pytest.param(True, marks=pytest.mark.nightly), False])
async def test_a_run_that_a_person_stops_on_the_server_is_not_rented_again(tmp_path: Path, is_abort: bool) -> None:
    async with running(tmp_path, kind=WorkloadKind.BATCH) as world:
        await world.until(lambda: len(world.running()) == 1, minutes=30)
        (run,) = billing(world)
        server(world).stop(run.name, is_abort=is_abort)
        await world.cycle(minutes=60)
        assert (world.leases(), billing(world)) == ([], [])
        (lost,) = await world.events("lease.interrupted")
        assert (lost.cause, lost.rule) == ("external_stop", "market_record")
        assert "terminated by user" in lost.evidence or "aborted by user" in lost.evidence
        (held,) = await world.events("workload.held")
        assert "external_stop" in held.reason
        cooldowns = world.app.ledger.recollection(world.clock.now()).cooldowns
        assert not [rest for rest in cooldowns if rest.kind is CooldownKind.HOST], "the pool is not to blame"
        await world.app.say(Order("resume", "train/0"), "a person")
        await world.until(lambda: len(world.running()) == 1, minutes=30)


@pytest.mark.nightly
async def test_a_slot_whose_machine_was_lost_unseen_runs_again_and_the_old_lease_counts_on(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        await world.until(lambda: len(world.running()) == 1, minutes=30)
        (run,) = billing(world)
        away = {"fault": "reset", "market": "dstack", "when": "before", "seconds": 600}
        world.simulator.sides["dstack"].weather.add(faults.parse(away))  # type: ignore[union-attr]
        await world.cycle(minutes=2)
        server(world).set_host_gone(run.host.machine_id)
        await world.until(lambda: len(world.running()) == 1 and len(world.leases()) == 2, minutes=180)
        old, new = sorted(world.leases(), key=lambda lease: lease.instance_id != run.uuid)
        assert (old.instance_id, old.bills, old.slot) == (run.uuid, Bills.GPU_AND_DISK, new.slot)
        assert [each.uuid for each in billing(world)] == [new.instance_id]
        before = await world.spend()
        await world.cycle(minutes=60)
        assert await world.spend() - before == pytest.approx(2 * new.gpu_rate.dollars, rel=0.1)
        await world.app.say(Order("release", str(new.slot), is_gone=True), "a person")
        await world.until(lambda: [lease.instance_id for lease in world.leases()] == [new.instance_id], minutes=5)
        await world.cycle(minutes=5)
        assert [lease.instance_id for lease in world.running()] == [new.instance_id], "the word is not about this one"


async def test_what_is_released_before_it_was_seen_whole_counts_while_its_machine_is_being_ended(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as world:
        server(world).gives_up = 1.0
        await world.cycle()
        (run,) = server(world).live_contracts()
        assert run.machine is None
        world.clock.advance(20.0)
        assert server(world).runs[run.uuid].machine is not None
        await world.app.say(Order("kill", "train"), "a person")
        await world.cycle(minutes=10)
        assert [lease.bills for lease in world.leases()] == [Bills.GPU_AND_DISK]
        assert await world.spend() == pytest.approx(server(world).charged_total(), abs=0.02)


async def test_a_pause_by_a_person_releases_where_nothing_can_be_paused(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        await world.until(lambda: len(world.running()) == 1, minutes=30)
        await world.app.say(Order("pause", "train"), "a person")
        await world.until(lambda: world.leases() == [], minutes=30)
        await world.cycle(minutes=30)
        assert (world.leases(), billing(world)) == ([], []), "the hold keeps the slot empty"


@pytest.mark.nightly
async def test_a_fallback_is_used_once_the_slot_was_down_and_left_when_the_auction_pays_again(tmp_path: Path) -> None:
    changes: dict[str, Any] = {
        "markets": ("vast",),
        "strategy": "patient",
        "fallback": Fallback(("dstack",)),
        "requirements": Requirements(gpu_models=(gpu.model("RTX 4090"),), verified_only=False),
    }
    async with running(tmp_path, there=("vast", "dstack"), **changes) as world:
        # A spot machine would be as cheap as a bid, and stay.
        server(world).kinds = [kind for kind in server(world).kinds if not kind.is_spot]
        began = world.clock.now()
        for machine_id in world.hosts.hosts:
            world.hosts.set_host_offline(machine_id, None)
        await world.until(lambda: bool(world.running()), minutes=60)
        (lease,) = world.running()
        assert lease.market == "dstack"
        assert lease.opened_at - began >= timedelta(minutes=10)
        for machine_id in world.hosts.hosts:
            world.hosts.set_host_online(machine_id)
        await world.until(lambda: [one.market for one in world.leases()] == ["vast"], minutes=24 * 60)
        assert billing(world) == []
        assert len([each for each in await world.events("lease.opened") if each.market == "dstack"]) == 1
        paid = server(world).charged_total() + sum(charge.amount for charge in world.charges("vast"))
        assert await world.spend() == pytest.approx(paid, rel=0.02)


@pytest.mark.nightly
async def test_a_slot_that_a_person_resumes_waits_for_the_fallback_from_then_on(tmp_path: Path) -> None:
    changes: dict[str, Any] = {
        "markets": ("vast",),
        "strategy": "patient",
        "fallback": Fallback(("dstack",)),
        "requirements": Requirements(gpu_models=(gpu.model("RTX 4090"),), verified_only=False),
    }
    async with running(tmp_path, there=("vast", "dstack"), **changes) as world:
        await world.until(lambda: bool(world.running()), minutes=60)
        await world.app.say(Order("drain", "train/0"), "a person")
        await world.app.say(Order("release", "train/0"), "a person")
        await world.cycle(minutes=90)
        assert world.leases() == []
        for machine_id in world.hosts.hosts:
            world.hosts.set_host_offline(machine_id, None)
        await world.app.say(Order("resume", "train/0"), "a person")
        resumed = world.clock.now()
        await world.until(lambda: bool(world.leases()), minutes=60)
        (lease,) = world.leases()
        assert lease.market == "dstack"
        # The pass before the resume was the last one that saw it drained.
        assert lease.opened_at - resumed >= timedelta(minutes=10) - POLL
