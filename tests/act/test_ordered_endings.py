"""A person's order for many leases: no crash forgets those whose turn has not come."""

from pathlib import Path

import pytest

from agent.act import crashpoint
from agent.act.executor import MOST_AT_ONCE
from agent.domain import money
from agent.domain.record.lease import LeaseState
from agent.domain.work.order import Order
from tests.support.world import rehearsed, work

SLOTS = MOST_AT_ONCE + 3


async def test_whenever_the_daemon_dies_the_ledger_has_all_releases_beyond_the_first_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = work(slots=SLOTS, strategy="ondemand", max_price=money.per_hour(3))
    async with rehearsed(tmp_path, workloads=(many,)) as world:
        await world.until(lambda: len(world.leases()) == SLOTS, minutes=30)
        ordered = {lease.lease_id for lease in world.leases()}
        due: list[int] = []

        def dies_here(_point: str, _kind: str) -> None:
            due.append(sum(lease.state is LeaseState.RELEASING for lease in world.leases()))

        monkeypatch.setattr(crashpoint, "reached", dies_here)
        await world.app.say(Order("release", "market:vast"), "a person")
        monkeypatch.undo()
        assert due[0] >= SLOTS - MOST_AT_ONCE + 1, "the first of them and all that wait"
        await world.cycle(minutes=3)
        assert not ordered & {lease.lease_id for lease in world.leases()}
