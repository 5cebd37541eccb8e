"""The simulated server and its clouds: the same beginning gives the same life, and clouds charge for what they gave."""

from typing import Any

import pytest

from agent.simulator.climate import Climate
from agent.simulator.dstack.climate_table import Dstack
from agent.simulator.dstack.model import Refused, Run
from agent.simulator.dstack.world import FLEET, FLEET_CONFIGURATION, World
from agent.simulator.instances.container_state import Container
from tests.support.market import START, STILL

HOUR = 3600.0


def world(seed: int = 3, climate: Climate = STILL, **changes: Any) -> World:
    return World(climate, seed=seed, start=START, **changes)


def ordered(**changes: Any) -> dict[str, Any]:
    resources = {"gpu": {"count": {"min": 1, "max": 1}, "memory": {"min": 20}}, "disk": {"size": {"min": 40}}}
    plain = {"type": "task", "image": "ubuntu:22.04", "resources": resources, "fleets": [FLEET], "backends": ["aws"]}
    return {"configuration": plain | {"instance_types": ["l4-1x"], "regions": ["us-east-1"]} | changes}


def submitted(server: World, name: str = "one", **changes: Any) -> Run:
    return server.submit(ordered(**changes), name)


def test_the_same_beginning_gives_the_same_life() -> None:
    told = []
    for server in (world(), world()):
        run = submitted(server)
        server.advance_to(START + HOUR)
        told.append((run.uuid, run.host.machine_id, run.running_since, server.charged_total()))
    assert told[0] == told[1]
    assert world(seed=4).project_id != world().project_id
    assert submitted(world(ids="a")).uuid != submitted(world(ids="b")).uuid


def test_a_cloud_charges_from_the_making_of_a_machine_to_its_end() -> None:
    server = world()
    run = submitted(server)
    server.advance_to(START + HOUR)
    assert (run.status, run.container) == ("running", Container.RUNNING)
    assert run.machine is not None
    server.stop("one")
    server.advance_to(START + 2 * HOUR)
    assert (run.status, run.machine.status, run.ended) == ("terminated", "terminated", run.machine.ended)
    assert run.machine.ended is not None
    hours = (run.machine.ended - run.machine.created) / HOUR
    assert server.charged_total() == pytest.approx(run.machine.kind.cents / 100 * hours)
    assert sum(charge.amount for charge in server.charges(START, server.now)) == pytest.approx(server.charged_total())


def test_a_machine_whose_cloud_left_the_project_is_called_terminated_at_once_and_charges_on() -> None:
    server = world()
    run = submitted(server)
    server.advance_to(START + HOUR)
    assert run.machine is not None
    server.backends = [name for name in server.backends if name != "aws"]
    server.stop("one")
    assert (run.machine.status, run.machine.ended) == ("terminated", None)
    server.advance_to(START + 3 * HOUR)
    hours = (server.now - run.machine.created) / HOUR
    assert server.charged_total() == pytest.approx(run.machine.kind.cents / 100 * hours)


def test_a_machine_that_the_server_gave_up_charges_for_ever() -> None:
    server = world(climate=STILL.having(Dstack(gives_up=1.0)))
    run = submitted(server)
    server.advance_to(START + HOUR)
    server.stop("one")
    server.advance_to(START + HOUR + 890)
    assert run.machine is not None
    assert run.machine.status == "terminating"
    server.advance_to(START + 10 * HOUR)
    assert (run.machine.status, run.machine.ended, run.ended) == ("terminated", None, None)
    assert server.charged_total() == pytest.approx(10 * run.machine.kind.cents / 100, rel=0.01)


def test_a_cloud_gives_no_more_than_it_has_and_takes_it_back() -> None:
    server = world(climate=STILL.having(Dstack(capacity=1)))
    first, second = submitted(server), submitted(server, "two")
    server.advance_to(START + HOUR)
    assert sorted(run.status for run in (first, second)) == ["failed", "running"]
    server.stop(next(run.name for run in (first, second) if run.status == "running"))
    server.advance_to(START + 2 * HOUR)
    third = submitted(server, "three")
    server.advance_to(START + 3 * HOUR)
    assert third.status == "running"


@pytest.mark.parametrize("changes", [{"max_price": 0.5}, {"fleets": ["other"]}, {"regions": ["mars"]}], ids=str)
def test_an_order_that_nothing_fits_fails(changes: dict[str, Any]) -> None:
    server = world()
    run = submitted(server, **changes)
    server.advance_to(START + HOUR)
    assert (run.status, run.reason, run.machine) == ("failed", "failed_to_start_due_to_no_capacity", None)
    assert server.charged_total() == 0


@pytest.mark.parametrize("text", ["${{ secrets.x }}", "a$b${{", "$$${{ x }}"])
def test_a_run_whose_variable_names_a_missing_secret_is_ended(text: str) -> None:
    server = world()
    run = submitted(server, env={"A": text})
    server.advance_to(START + HOUR)
    assert (run.status, run.reason, run.machine) == ("failed", "terminated_by_server", None)


def test_an_active_name_is_refused_and_a_finished_one_is_taken_again() -> None:
    server = world()
    first = submitted(server)
    with pytest.raises(Refused):
        submitted(server)
    with pytest.raises(Refused):
        server.delete("one")
    server.stop("one")
    server.advance_to(START + HOUR)
    again = submitted(server)
    assert (first.is_deleted, again.is_deleted) == (True, False)


def test_a_silent_machine_goes_on_and_a_dead_one_is_noticed() -> None:
    server = world()
    run = submitted(server)
    server.advance_to(START + HOUR)
    server.set_host_offline(run.host.machine_id, START + 2 * HOUR)
    assert run.is_offline
    server.advance_to(START + 3 * HOUR)
    assert (run.is_offline, run.status) == (False, "running")
    charged = server.charged_total()
    server.set_host_gone(run.host.machine_id)
    server.advance_to(START + 4 * HOUR)
    assert (run.status, run.reason) == ("failed", "instance_unreachable")
    assert server.charged_total() == pytest.approx(charged)


@pytest.mark.parametrize(
    ("policy", "seen"), [(None, {False}), ("on-demand", {False}), ("spot", {True}), ("auto", {False, True})]
)
def test_a_fleet_offers_only_the_machines_of_its_spot_policy(policy: str | None, seen: set[bool]) -> None:
    made = world()
    made.make_fleet({**FLEET_CONFIGURATION, "spot_policy": policy})
    assert {kind.is_spot for kind in made.offered({"fleets": [FLEET], "spot_policy": "auto"})} == seen
