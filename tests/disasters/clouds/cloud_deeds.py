"""What befalls clouds between two cycles: they take back, or their server gives up or loses what it needs of them."""

import dataclasses
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from agent.domain.record.lease import Lease
from agent.domain.work.order import Order
from agent.simulator.dstack.climate_table import Dstack
from agent.simulator.dstack.model import FINISHED, Run
from agent.simulator.dstack.world import World
from tests.disasters.clouds.cloud_draw import MARKET
from tests.disasters.edits import pick
from tests.disasters.story import Deed
from tests.disasters.truth import Box

if TYPE_CHECKING:
    from tests.disasters.play import Player

WHO = "disaster"


def lose(world: World, box: Box) -> None:
    """Let a cloud take a machine back: a spot machine for want of room, another one because it fails."""
    run = box.thing
    if not isinstance(run, Run) or run.machine is None:
        return
    take = world.interrupt if run.machine.kind.is_spot else world.set_host_gone
    take(run.machine.machine_id)


async def _gives_up(deed: Deed, player: "Player") -> None:
    """For a while the server cannot end machines, and calls them terminated all the same."""
    world, clouds = player.truth.clouds, player.story.clouds
    if world is not None and clouds is not None:
        world.gives_up = 1.0
        player.later(_after(deed, player), lambda: setattr(world, "gives_up", clouds.gives_up))


async def _lost(deed: Deed, player: "Player") -> None:
    """For a while the project does not have a cloud: somebody changed the server's keys."""
    world = player.truth.clouds
    if world is not None and (lost := pick(world.backends, deed.pick)) is not None:
        world.backends = [name for name in world.backends if name != lost]
        player.later(_after(deed, player), lambda: setattr(world, "backends", sorted({*world.backends, lost})))


async def _fleet_lost(deed: Deed, player: "Player") -> None:
    """For a while the fleet is missing."""
    world = player.truth.clouds
    if world is not None:
        fleets, world.fleets = world.fleets, {}
        player.later(_after(deed, player), lambda: world.fleets.update(fleets))


async def _client_lost(deed: Deed, player: "Player") -> None:
    """The server starts again, and for a while a cloud does not answer it."""
    world = player.truth.clouds
    if world is not None and (silent := pick(world.backends, deed.pick)) is not None:
        clients = world.clients
        clients.drop()
        clients.unavailable |= {silent}
        player.later(_after(deed, player), lambda: setattr(clients, "unavailable", clients.unavailable - {silent}))


async def _clouds_dry(deed: Deed, player: "Player") -> None:
    """For a while no cloud has a machine left, and none says so before an order."""
    world = player.truth.clouds
    if world is not None:
        usual = world.climate
        dry = dataclasses.replace(usual.table(Dstack), capacity=0, tells_capacity=False)
        world.climate = usual.having(dry)
        player.later(_after(deed, player, hours=4.0), lambda: setattr(world, "climate", usual))


async def _called_gone(_: Deed, player: "Player") -> None:
    """A person looks at the consoles of the clouds, ends what the server gave up, and says that it is gone."""
    world = player.truth.clouds
    if world is None or player.app is None:
        return
    for lease, run in list(_given_up(player, world)):
        if run.machine is not None and run.machine.ended is None:
            world.set_host_gone(run.machine.machine_id)
        player.ordered.add(lease.slot.workload)
        await player.app.say(Order("release", lease.lease_id, is_gone=True), WHO)


def _given_up(player: "Player", world: World) -> Iterator[tuple[Lease, Run]]:
    """Yield the leases of runs that are over and whose machine the server calls terminated."""
    for lease in player.app.billing()[0] if player.app is not None else ():
        run = world.runs.get(lease.instance_id) if lease.market == MARKET and lease.is_open else None
        if run is None or run.status not in FINISHED:
            continue
        if run.machine is not None and run.machine.status == "terminated":
            yield lease, run


def _after(deed: Deed, player: "Player", hours: float = 2 / 3) -> float:
    return player.stage.clock.time() + 120.0 + 3600.0 * hours * deed.amount


DEEDS: Mapping[str, Callable[[Deed, "Player"], Awaitable[None]]] = {
    "cloud_gives_up": _gives_up,
    "cloud_lost": _lost,
    "fleet_lost": _fleet_lost,
    "called_gone": _called_gone,
    "client_lost": _client_lost,
    "clouds_dry": _clouds_dry,
}
