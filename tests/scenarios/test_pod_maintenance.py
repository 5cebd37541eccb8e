"""RunPod shows when a host will be silent on purpose: the adapter reads it as Vast's notices are read."""

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.domain.market.interruption import MarketEventKind
from agent.domain.record.lease import LeaseState
from agent.markets.runpod import client, history, maintenance
from tests.support import builders
from tests.support.both import Both, both

WORK = builders.workload(
    strategy="ondemand", requirements=builders.requirements(gpu_models=("RTX A5000",)), markets=("runpod",)
)


async def told(world: Both) -> list[tuple[str, str]]:
    """Return the instance and the id of each announcement in the market's record."""
    (poller,) = world.app.pollers
    events = await poller.market.events(world.clock.now() - dt.timedelta(days=1))
    return [(event.instance_id, event.event_id) for event in events if event.kind is MarketEventKind.MAINTENANCE]


async def announce(world: Both, after: float, seconds: float) -> None:
    """Let the host of the one pod plan maintenance."""
    pods = world.simulator.pods
    (pod,) = pods.live_contracts()
    pods.plan_maintenance(pod.host.machine_id, after, seconds)


async def test_announced_maintenance_is_read_once_and_is_over_when_it_says(tmp_path: Path) -> None:
    async with both(tmp_path, WORK, markets=("runpod",)) as world:
        await world.until(lambda: len(world.running()) == 1)
        assert not await told(world)
        await announce(world, after=7200, seconds=1800)
        await world.cycle(minutes=15)
        (first,) = await told(world)
        assert first[0] == world.running()[0].instance_id
        await world.cycle(minutes=90)
        assert await told(world) == [first]
        assert [lease.state for lease in world.leases()] == [LeaseState.RUNNING]
        (lease,) = world.leases()
        assert None not in {lease.maintenance_begins_at, lease.maintenance_ends_at}
        assert not world.app.ledger.recollection(world.clock.now()).cooldowns, "its pool has other hosts"
        await world.cycle(minutes=20)
        assert [lease.state for lease in world.leases()] == [LeaseState.OFFLINE]
        (lost,) = await world.events("lease.interrupted")
        assert lost.rule == "maintenance"
        assert len(await world.events("lease.maintenance")) == 1
        await world.cycle(minutes=40)
        assert not await told(world)


async def test_without_the_question_about_it_a_listing_is_as_good(tmp_path: Path) -> None:
    async with both(tmp_path, WORK, markets=("runpod",)) as world:
        await world.until(lambda: len(world.running()) == 1)
        world.weather("runpod", "server_error_before", route="POST /graphql")
        await announce(world, after=7200, seconds=1800)
        await world.cycle(minutes=15)
        assert not await told(world)
        assert [lease.state for lease in world.leases()] == [LeaseState.RUNNING]


@pytest.mark.parametrize("stamp", ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00", "soon"])
async def test_a_date_that_is_none_takes_nothing_else_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stamp: str
) -> None:
    """Each pass that read the account or looked closer ended in an error, and its listing with it."""
    asked: list[str] = []

    async def ask(endpoints: client.RunPodClient, question: str, variables: dict[str, Any]) -> Any:
        answered = await told_by(endpoints, question, variables)
        if question != maintenance.QUESTION:
            return answered
        asked.append(question)
        rows = [
            {**pod, "machine": {"maintenanceStart": stamp, "maintenanceEnd": stamp}}
            for pod in answered.data["myself"]["pods"]
        ]
        return answered._replace(data={"myself": {"pods": rows}})

    async with both(tmp_path, WORK, markets=("runpod",)) as world:
        await world.until(lambda: len(world.running()) == 1)
        told_by = client.RunPodClient.ask_graph
        monkeypatch.setattr(client.RunPodClient, "ask_graph", ask)
        await world.cycle(minutes=31)
        assert not await told(world)
        assert [lease.state for lease in world.leases()] == [LeaseState.RUNNING]
        assert 2 <= len(asked) <= 5


@pytest.mark.parametrize("moment", [history.moment, maintenance.moment], ids=["history", "maintenance"])
def test_an_instant_before_or_after_all_time_is_none(moment: Callable[[str], dt.datetime | None]) -> None:
    assert moment("Mon Jan 01 0001 00:00:00 GMT+0100 (CET)") is None
    assert moment("Fri Dec 31 9999 23:59:59 GMT-0100") is None
    assert moment("Fri Nov 20 2026 12:00:00 GMT+0100") == dt.datetime(2026, 11, 20, 11, tzinfo=dt.UTC)
