"""A market that refuses our key: nothing can be ended there any more, so the switches of its guards may fire."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from agent.act.guarding import dead_man_switches
from agent.domain.market.account_refusal import Refusal
from agent.domain.slot import Slot
from agent.domain.work.order import Order
from agent.ledger.memory import Memory
from agent.pass_metrics import Figures
from agent.telemetry.metric_updates import Metrics
from tests.act.test_signs_of_life import run, switched
from tests.scenarios import test_dead_mans_switch as switch
from tests.support import builders, s3_server
from tests.support.s3_server import SECRET, S3Server
from tests.support.world import Rehearsed

HOUR = timedelta(hours=1)


@pytest.fixture
def server() -> Iterator[S3Server]:
    with s3_server.served() as running:
        yield running


async def cycled(world: Rehearsed, minutes: float) -> None:
    await world.cycle(minutes)
    await asyncio.gather(*world.app.signs._running.values())


def figure(world: Rehearsed) -> float | None:
    """Return the metric of the silence, as it is written after a pass that failed."""
    registry = CollectorRegistry()
    Figures(Metrics(registry, ["vast"], ["train"])).see_ledger(world.app)
    return registry.get_sample_value("gpubid_sign_of_life_silence_share", {"workload": "train"})


async def test_a_daemon_whose_key_is_refused_lets_the_switch_fire_and_says_so_before(
    tmp_path: Path, server: S3Server
) -> None:
    async with switch.switched(tmp_path, server, [SECRET], HOUR) as world:
        await world.until_running()
        await switch.sign(world, server)
        await world.cycle()
        good = world.clock.now()
        world.weather("revoked_key")
        await cycled(world, 12)
        assert not await world.events("alert.sign_unwritten")
        await cycled(world, 6)
        (told,) = await world.events("alert.sign_unwritten")
        assert "vast has refused this daemon's key for 15 min: from 30 min on" in told.reason
        assert "1 h after the last one the guard ends the instance" in told.reason
        await cycled(world, 20)
        last = await switch.written(server)
        assert timedelta(minutes=15) < timedelta(seconds=last - good.timestamp()) <= HOUR / 2
        # A start is no sign of life either.
        await world.restart()
        await cycled(world, 2)
        assert await switch.written(server) == last
        # The ledger knows how long it is, although this daemon wrote none.
        silence = world.clock.now().timestamp() - last
        assert figure(world) == pytest.approx(silence / HOUR.total_seconds(), abs=0.01)
        world.still()
        await cycled(world, 1)
        assert await switch.written(server) > last
        assert world.app.signs.alerts() == ()


async def test_a_market_that_is_away_refuses_nothing_also_after_one_refusal(tmp_path: Path, server: S3Server) -> None:
    async with switch.switched(tmp_path, server, [SECRET], HOUR) as world:
        await world.until_running()
        first = (await switch.sign(world, server))["written"]
        world.weather("revoked_key")
        await cycled(world, 0)
        assert world.app.pollers[0].refusal is not None
        world.still()
        world.weather("server_error_before")
        await cycled(world, 40)
        assert await switch.written(server) - first > HOUR.total_seconds() / 2
        assert not await world.events("alert.sign_unwritten")


def test_two_leases_of_a_slot_have_one_switch_on_both_markets() -> None:
    """The guard on the other market must not fire while that one takes the key."""
    leases = [builders.lease(1, guard_run=1), builders.lease(2, guard_run=1, market="runpod")]
    for ordered in (leases, leases[::-1]):
        known = Memory(leases={held.lease_id: held for held in ordered}, guard_runs=[run()]).recollection(builders.NOW)
        (found,) = dead_man_switches.switches(known, [switched()], "f1")
        assert (found.slot, found.markets) == (Slot("train", 0), frozenset({"vast", "runpod"}))
        long, short = Refusal(5 * HOUR), Refusal(HOUR, is_since_start=True)
        assert found.refusal({"vast": long}) is None
        assert found.refusal({"vast": long, "mithril": short}) is None
        assert found.refusal({"vast": long, "runpod": short}) == short


@pytest.mark.parametrize("is_refused", [True, pytest.param(False, marks=pytest.mark.nightly)])
async def test_a_key_that_may_list_but_end_nothing_lets_the_switch_fire(
    tmp_path: Path, server: S3Server, *, is_refused: bool
) -> None:
    async with switch.switched(tmp_path, server, [SECRET], HOUR) as world:
        await world.until_running()
        await switch.sign(world, server)
        await world.cycle()
        good = world.clock.now()
        # A refusal without the market's own word proves nothing, however long it lasts.
        world.weather("revoked_key" if is_refused else "html_403", route="PUT")
        world.weather("session_expired" if is_refused else "server_error_before", route="DELETE")
        await world.app.say(Order("release", "train/0"), "me")
        await cycled(world, 18)
        told = await world.events("alert.sign_unwritten")
        assert ["vast has refused this daemon's key for" in each.reason for each in told] == [True] * is_refused
        await cycled(world, 30)
        last = timedelta(seconds=await switch.written(server) - good.timestamp())
        assert (last <= HOUR / 2) is is_refused
