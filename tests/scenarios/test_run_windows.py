"""Work that runs only in its windows: it waits, runs, and is paused or released, by a clock that is not doubted."""

import dataclasses
import datetime as dt
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from agent.domain.record.lease import LeaseState
from agent.domain.work.run_times.run_window import Outside, WindowRule
from agent.domain.work.run_times.running_limit import RunningLimit
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Workload
from agent.pass_metrics import Figures
from agent.telemetry.metric_updates import Metrics
from tests.support.world import MINUTE, START, Rehearsed, rehearsed, work

NIGHT = WindowRule("0 3 * * *", dt.timedelta(hours=1), "Europe/Berlin")
"""From 01:00 to 02:00 UTC in summer."""


def nightly(outside: Outside = Outside.PAUSE, place: str = "remote") -> Workload:
    kept = Checkpoint(place=CheckpointPlace(place))
    return work(windows=(NIGHT,), outside=outside, checkpoint=kept)


async def cycled_until(world: Rehearsed, hour: int, minute: int) -> None:
    at = START.replace(hour=hour, minute=minute)
    await world.cycle(minutes=(at - world.clock.now()) / dt.timedelta(minutes=1))


def why(world: Rehearsed) -> str:
    [decision] = world.plans[-1].decisions
    return decision.reason.sentence


async def changes(world: Rehearsed) -> list[tuple[str, str]]:
    """Return the events of windows, the first one first."""
    found = [event for kind in ("window.opened", "window.closed") for event in await world.events(kind)]
    return [(event.kind, event.reason) for event in sorted(found, key=lambda event: event.at)]


async def test_it_waits_for_its_window_runs_in_it_and_is_paused_after_it(tmp_path: Path) -> None:
    twice = dataclasses.replace(nightly(), windows=(WindowRule("0 3,6 * * *", dt.timedelta(hours=1), "Europe/Berlin"),))
    async with rehearsed(tmp_path, workloads=(twice,), poll=MINUTE) as world:
        await cycled_until(world, 0, 59)
        assert (world.contracts(), world.leases()) == ([], [])
        assert why(world) == "waits for its window until Mon 03:00 Europe/Berlin"
        assert not world.calls("POST", "/bundles", START.timestamp() + 60), "nothing is searched for"
        await world.until_running(30)
        assert world.clock.now() >= START.replace(hour=1)
        await cycled_until(world, 1, 59)
        assert world.lease().state is LeaseState.RUNNING
        await cycled_until(world, 2, 1)
        assert world.lease().state is LeaseState.PAUSED
        await cycled_until(world, 3, 30)
        assert not world.contract().holds_gpu
        assert why(world) == "waits for its window until Mon 06:00 Europe/Berlin"
        opened, closed = await changes(world)
        assert opened == ("window.opened", "its window is open until Mon 04:00 Europe/Berlin")
        assert closed == ("window.closed", "its window is over; waits for its window until Mon 06:00 Europe/Berlin")
        [paused] = await world.events("lease.paused")
        assert "its window is over" in paused.reason
        await world.cycle(minutes=45)
        assert (world.lease().state, len(world.contracts())) == (LeaseState.RUNNING, 1), "on the same disk"


@pytest.mark.parametrize("place", CheckpointPlace)
async def test_it_is_released_after_it_but_never_the_only_copy_of_work(tmp_path: Path, place: CheckpointPlace) -> None:
    async with rehearsed(tmp_path, workloads=(nightly(Outside.RELEASE, place.value),), poll=MINUTE) as world:
        await cycled_until(world, 2, 10)
        assert len(world.contracts()) == 1
        assert bool(world.live()) is (place is CheckpointPlace.DISK)
        assert not any(contract.holds_gpu for contract in world.live())


async def test_a_slot_that_waits_for_its_window_is_counted_as_waiting(tmp_path: Path) -> None:
    limited = dataclasses.replace(nightly(), max_running=(RunningLimit(dt.timedelta(hours=12)),))
    async with rehearsed(tmp_path, workloads=(limited,), poll=MINUTE) as world:
        registry = CollectorRegistry()
        figures = Figures(Metrics(registry, ["vast"], ["train"]))

        def value(name: str) -> float | None:
            return registry.get_sample_value(f"gpubid_{name}", {"workload": "train"})

        figures.see(world.app, await world.cycle())
        assert (value("slots_waiting"), value("window_open")) == (1, 0)
        assert value("window_changes_timestamp_seconds") == START.replace(hour=1).timestamp()
        await cycled_until(world, 1, 40)
        figures.see(world.app, await world.cycle())
        assert (value("slots_waiting"), value("window_open"), value("max_running_seconds")) == (0, 1, 12 * 3600)
        assert 0 < (value("running_seconds") or 0) <= 40 * 60


async def test_nothing_begins_before_its_first_start(tmp_path: Path) -> None:
    later = START.replace(hour=1, minute=30)
    async with rehearsed(tmp_path, workloads=(work(not_before=later),), poll=MINUTE) as world:
        await cycled_until(world, 1, 29)
        assert not world.contracts()
        assert why(world) == "it begins at 2026-07-27 01:30 UTC (not_before)"
        await world.until_running(30)


async def test_nothing_begins_or_ends_while_the_clock_is_doubted(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(nightly(),), poll=MINUTE) as world:
        await cycled_until(world, 1, 50)
        assert world.lease().state is LeaseState.RUNNING
        wrong = world.weather("clock_skew", skew=3600)
        await cycled_until(world, 2, 30)
        assert world.lease().state is LeaseState.RUNNING, "it goes on"
        assert [kind for kind, _ in await changes(world)] == ["window.opened"]
        world.simulator.weather.clear(wrong)
        await world.cycle(minutes=10)
        assert [kind for kind, _ in await changes(world)] == ["window.opened", "window.closed"]
        assert world.lease().state is LeaseState.PAUSED


async def test_a_dark_market_ends_nothing_and_then_the_window_is_over(tmp_path: Path) -> None:
    """It cannot be listed; it would take a pause."""
    async with rehearsed(tmp_path, workloads=(nightly(),), poll=MINUTE) as world:
        await cycled_until(world, 1, 50)
        dark = world.weather("server_error_before", route="GET /instances")
        await cycled_until(world, 2, 20)
        assert world.lease().state is LeaseState.RUNNING
        world.simulator.weather.clear(dark)
        await world.cycle(minutes=2)
        assert world.lease().state is LeaseState.PAUSED


async def test_a_restart_between_two_windows_begins_nothing(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(nightly(Outside.RELEASE),), poll=MINUTE) as world:
        await cycled_until(world, 1, 30)
        await world.restart(60)
        await world.cycle(minutes=2)
        assert [kind for kind, _ in await changes(world)] == ["window.opened"], "a restart repeats nothing"
        await world.restart(3600)
        await world.cycle(minutes=30)
        assert [kind for kind, _ in await changes(world)] == ["window.opened", "window.closed"], "found at the start"
        await world.restart(3600)
        await world.cycle(minutes=30)
        assert len(await changes(world)) == 2
        assert len(world.contracts()) == 1
        assert not world.live()
