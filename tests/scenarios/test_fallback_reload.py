"""A slot that a reload or a restart adds waits for its fallback markets from then on, like any other one."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.scenarios.test_dstack import running, server
from tests.scenarios.test_fallback_blackout import WORK
from tests.support.scene import strategies


@pytest.mark.parametrize("is_restarted", [False, True], ids=["reload", "restart"])
async def test_a_slot_that_is_added_opens_the_fallback_only_once_it_was_down(
    tmp_path: Path,
    is_restarted: bool,
) -> None:
    async with running(tmp_path, there=("vast", "dstack"), **WORK) as world:
        server(world).kinds = [kind for kind in server(world).kinds if not kind.is_spot]
        await world.until(lambda: len(world.running()) == 1, minutes=60)
        await world.cycle(minutes=20)
        used = {lease.host_id for lease in world.running()}
        for machine_id in world.hosts.hosts:
            if str(machine_id) not in used:
                world.hosts.set_host_offline(machine_id, None)
        (work,) = world.config.workloads
        world.config = replace(world.config, workloads=(replace(work, slots=2),))
        if is_restarted:
            await world.restart(60.0)
        else:
            world.app.reload(world.config, strategies())
        began = world.clock.now()
        await world.until(lambda: {lease.market for lease in world.leases()} == {"vast", "dstack"}, minutes=60)
        (opened,) = [event for event in await world.events("lease.opened") if event.market == "dstack"]
        assert opened.at - began >= timedelta(minutes=10)
