"""A host leaves the market on a day that is known: the workload is elsewhere by then, with two leases or with one."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.decide.limits.limits import Limits
from agent.decide.moves import break_before_make
from agent.decide.reconcile import reconcile
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import LeaseState
from tests.support.world import POLL, Rehearsed, rehearsed

ENDS_AFTER = 130
"""Minutes: just more than a host must have left to be rented at all."""


async def _chosen(place: Path) -> int:
    """Return the host that a world of this kind rents first."""
    async with rehearsed(place) as world:
        await world.until_running()
        return world.contract().slice.machine_id


def _ends(world: Rehearsed, host: int) -> None:
    for slice_ in world.market.listed():
        if slice_.machine_id == host:
            slice_.host.end_time = world.clock.time() + ENDS_AFTER * 60


async def test_moved_before_the_end_and_the_old_one_runs_until_the_new_does(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    host = await _chosen(tmp_path_factory.mktemp("first"))
    async with rehearsed(tmp_path) as world:
        _ends(world, host)
        await world.cycle(minutes=ENDS_AFTER - 65)
        assert [order.kind for order in world.orders] == [IntentKind.RENT], "moved long before it must"
        await world.until(lambda: len(world.live()) == 2, minutes=10)
        assert LeaseState.RUNNING in {lease.state for lease in world.leases()}, "it broke before it made"
        await world.until(lambda: len(world.leases()) == 1, minutes=30)
        assert world.lease().host_id != str(host)
        assert world.lease().state is LeaseState.RUNNING
        assert await world.events("lease.interrupted") == []


@pytest.mark.nightly
async def test_with_room_for_one_it_is_left_in_the_last_minutes(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    host = await _chosen(tmp_path_factory.mktemp("first"))
    async with rehearsed(tmp_path, limits=Limits(instances=1), poll=POLL) as world:
        _ends(world, host)
        await world.cycle(minutes=ENDS_AFTER - 15)
        assert world.lease().host_id == str(host), "what runs was given up though it had time"
        await world.until(lambda: [lease.host_id for lease in world.leases()] not in ([str(host)], []), minutes=12)
        await world.until_running(minutes=30)
        assert world.lease().host_id != str(host)
        [left] = await world.events("lease.released_by_us")
        assert "no room for two at once (instances)" in left.reason
        assert await world.events("lease.interrupted") == []


async def test_a_host_that_stays_longer_after_all_is_not_left(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    host = await _chosen(tmp_path_factory.mktemp("first"))
    async with rehearsed(tmp_path, limits=Limits(instances=1)) as world:
        _ends(world, host)
        await world.cycle(minutes=ENDS_AFTER - 15)
        await world.until(lambda: _is_due_too_late(world), minutes=6)
        contract, now = world.contract(), world.clock.time()
        world.market._desk.renew(contract, contract.locked_ask, now + 7 * 86_400)
        await world.cycle(minutes=0.5)
        assert world.lease().ends_at == datetime.fromtimestamp(contract.end_time, UTC), "the old end still counts"
        await world.cycle(minutes=15)
        assert world.lease().host_id == str(host)
        assert [order.kind for order in world.orders] == [IntentKind.RENT]


def _is_due_too_late(world: Rehearsed) -> bool:
    """Return whether the lease is metered next only after its last minutes have begun, by the end that is recorded."""
    ends_at, metered = world.lease().ends_at, world.lease().accrued_until
    assert ends_at is not None
    return metered + reconcile.METER_EVERY > ends_at - break_before_make.LAST_MINUTES
