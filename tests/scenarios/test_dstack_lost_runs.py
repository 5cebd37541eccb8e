"""A dstack server that does not know a run any more proves no end: the lease counts until a person looked."""

from pathlib import Path

import pytest

from agent.cli.ordering import kill_progress
from agent.domain.record.lease import Bills, LeaseState
from agent.domain.work.order import Order
from agent.simulator import faults
from tests.scenarios.test_dstack import billing, running, server
from tests.support.both import Both


async def lost(world: Both) -> str:
    """Let a run start and its server lose it, as a database does that is restored from a backup; return the lease."""
    await world.until(lambda: len(world.running()) == 1, minutes=30)
    (run,) = billing(world)
    await world.cycle(minutes=5)
    assert run.machine is not None
    server(world).runs.pop(run.uuid)
    server(world).machines.pop(run.machine.machine_id)
    return f"dstack-{run.uuid}"


@pytest.mark.parametrize(("verb", "target"), [("kill", "train"), ("release", "")])
async def test_a_release_of_a_run_that_the_server_lost_ends_no_lease(tmp_path: Path, verb: str, target: str) -> None:
    async with running(tmp_path) as world:
        lease_id = await lost(world)
        await world.cycle(minutes=4)
        await world.app.say(Order(verb, target or lease_id), "a person")
        await world.cycle(minutes=10)
        old = next(each for each in world.leases() if each.lease_id == lease_id)
        assert (old.state, old.bills) == (LeaseState.RELEASING, Bills.GPU_AND_DISK)
        (told,) = await world.events("alert.state_unknown", "alert.order_refused")
        assert f"`gpubid release {lease_id} --gone`" in told.reason
        await world.app.say(Order("release", lease_id, is_gone=True), "a person")
        await world.until(lambda: lease_id not in {each.lease_id for each in world.leases()}, minutes=10)


@pytest.mark.nightly
async def test_a_given_up_run_that_is_deleted_holds_neither_its_slot_nor_a_kill(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        await world.until(lambda: len(world.running()) == 1, minutes=30)
        (run,) = billing(world)
        await world.cycle(minutes=5)
        server(world).gives_up = 1.0
        await world.app.say(Order("release", f"dstack-{run.uuid}"), "a person")
        await world.until(lambda: len(world.leases()) == 2, minutes=60)
        server(world).gives_up = 0.0
        server(world).delete(run.name)
        told = await world.events("alert.order_refused")
        await world.restart()
        await world.until(lambda: len(world.running()) == 1, minutes=30)
        (new,) = world.running()
        server(world).set_host_gone(server(world).runs[new.instance_id].host.machine_id)
        await world.until(
            lambda: {each.instance_id for each in world.running()} - {new.instance_id} != set(), minutes=60
        )
        await world.app.say(Order("kill", "train"), "a person")
        await world.until(lambda: [each.instance_id for each in world.leases()] == [run.uuid], minutes=30)
        await world.cycle(minutes=20)
        shown = await kill_progress._present(world.app)
        progress = kill_progress.Progress(keep_disks=False)
        assert progress.show(shown), "a kill waits for nothing that no call ends"
        assert await world.events("alert.order_refused") == told, "no market knows its instance"


@pytest.mark.parametrize("is_leaving", [False, pytest.param(True, marks=pytest.mark.nightly)])
async def test_the_word_of_a_person_is_repeated_until_the_server_has_heard_it(
    tmp_path: Path, *, is_leaving: bool
) -> None:
    async with running(tmp_path) as world:
        await world.until(lambda: len(world.running()) == 1, minutes=30)
        (run,) = billing(world)
        server(world).gives_up = 1.0
        if is_leaving:
            await world.app.say(Order("kill", "train"), "a person")
            await world.cycle(minutes=40)
        else:
            server(world).interrupt(run.host.machine_id)
            await world.app.say(Order("pause", "train"), "a person")
        away = {"fault": "reset", "market": "dstack", "when": "before", "seconds": 3600}
        world.simulator.sides["dstack"].weather.add(faults.parse(away))  # type: ignore[union-attr]
        await world.cycle(minutes=2)
        await world.app.say(Order("release", f"dstack-{run.uuid}", is_gone=True), "a person")
        await world.cycle(minutes=20)
        assert [lease.instance_id for lease in world.leases()] == [run.uuid]
        await world.until(lambda: world.leases() == [], minutes=90)


async def test_a_denial_stands_while_the_server_does_not_answer(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        lease_id = await lost(world)
        await world.app.say(Order("release", lease_id), "a person")
        await world.cycle(minutes=4)
        away = {"fault": "reset", "market": "dstack", "when": "before", "seconds": 3600}
        world.simulator.sides["dstack"].weather.add(faults.parse(away))  # type: ignore[union-attr]
        await world.cycle(minutes=20)
        assert world.app.seen is not None
        old = next(each for each in world.leases() if each.lease_id == lease_id)
        assert world.app.seen.fleet.is_leaving(old), "its slot does not wait for a release that no call does"


async def test_an_overdue_release_is_told_while_the_server_is_away_since_the_start(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        await world.until(lambda: len(world.running()) == 1, minutes=30)
        away = {"fault": "reset", "market": "dstack", "when": "before", "seconds": 7200}
        world.simulator.sides["dstack"].weather.add(faults.parse(away))  # type: ignore[union-attr]
        await world.app.say(Order("kill", "train"), "a person")
        await world.restart()
        await world.cycle(minutes=30)
        (told,) = await world.events("alert.order_refused")
        assert "has not carried out the release" in told.reason


async def test_a_listing_that_shows_a_run_again_ends_its_denial(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        await world.until(lambda: len(world.running()) == 1, minutes=30)
        (run,) = billing(world)
        lease_id = await lost(world)
        await world.cycle(minutes=4)
        assert world.app.seen is not None
        assert world.app.seen.fleet.markets["dstack"].denied_ids == {run.uuid}
        assert run.machine is not None
        server(world).runs[run.uuid] = run
        server(world).machines[run.machine.machine_id] = run.machine
        await world.cycle(minutes=2)
        assert world.app.seen.fleet.markets["dstack"].denied_ids == frozenset()
        assert lease_id in {lease.lease_id for lease in world.running()}
