"""Tells one field wrong while something happens to a fleet that runs, and compares with the same deed told truly.

A deed is done in a new world. Three harms count: an order to pay more, a slot that does not run in the end, and a count
or a charge that is more or less than it should be.
"""

import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from agent.domain import money
from agent.domain.record.intent import IntentKind
from agent.domain.work.order import Order
from agent.domain.work.workload import WorkloadKind
from agent.ledger.ledger_errors import LedgerError
from tests.lies import sweep
from tests.lies.fields import Lie
from tests.lies.sweep import Place
from tests.support.both import Both

PAYS_MORE = frozenset({IntentKind.RENT, IntentKind.REBID})
"""Orders of which none may be added. A start may be repeated while its market shows the instance as stopped."""
AFTER_MINUTES = 40.0
"""How long the market tells the truth after a deed: the longest cooldown of an order that was refused, and a start."""
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHkxb0JtZUhlcmVJc05vS2V5QXRBbGxZZXQx me@box"
CHEAP = "cheap"


@dataclasses.dataclass(frozen=True, slots=True)
class Done:
    """What a deed led to."""

    paying: int
    """How many orders to rent or to change a bid were sent."""
    lost: int
    """How many of the first instances exist no more."""
    running: int
    live: int
    charged: float
    counted: float


async def done(market: str, deed: str, lie: Lie | None) -> Done | str:
    """Do a deed in a new world, with a lie told meanwhile; return what it led to, or why the program ended."""
    where = _place(market, deed)
    async with sweep.opened(where) as world:
        await sweep.until_running(world, where)
        before, sent = await sweep.truth(world, market), await _paying(world)
        if lie is not None:
            sweep.lying(world, market, lie)
        try:
            await DEEDS[deed](world, where)
            sweep.still(world, market)
            await world.cycle(minutes=AFTER_MINUTES)
        except LedgerError as error:
            return f"ended: {error}"
        after = await sweep.truth(world, market)
        return Done(
            await _paying(world) - sent,
            len(before.live - after.live),
            len(world.running()),
            len(after.live),
            after.charged - before.charged,
            after.counted - before.counted,
        )


def harms(told: Done | str, truly: Done | str) -> list[str]:
    """Return what a lie did otherwise than the truth, in words."""
    if isinstance(told, str) or isinstance(truly, str):
        return [f"{told}"]
    found = []
    if told.paying > truly.paying:
        found.append(f"{told.paying} orders to pay instead of {truly.paying}")
    if (told.lost, told.running, told.live) != (truly.lost, truly.running, truly.live):
        found.append(f"{told.lost} lost, {told.running} running leases and {told.live} instances")
    if told.charged > truly.charged + sweep.SLACK:
        found.append(f"charged ${told.charged:.3f} instead of ${truly.charged:.3f}")
    said = sweep.miscounted(told.charged, told.counted)
    return [*found, said] if said else found


def _place(market: str, deed: str) -> Place:
    """Return the place of the sweep, with works for which the deed makes the program write or read more."""
    where, changes = sweep.place(market), dict[str, Any]()
    if deed == "outbid" and market == "vast":
        # Its image takes so long to load that a raised bid is cheaper than another host.
        changes = {"image_gb": 40.0, "max_price": money.per_hour("0.57")}
    if deed == "watch":
        changes = {"ssh_keys": (KEY,), "kind": WorkloadKind.BATCH, "done_line": "never printed"}
    return dataclasses.replace(where, works=tuple(dataclasses.replace(work, **changes) for work in where.works))


async def _paying(world: Both) -> int:
    reader = await world.app.ledger.reader()
    return sum(one.kind in PAYS_MORE for one in await reader.intents(10_000))


async def _order(world: Both, where: Place, verb: str, minutes: float) -> None:
    for work in where.works:
        await world.app.say(Order(verb, work.name), "a person")
    await world.cycle(minutes=minutes)


async def _pause(world: Both, where: Place) -> None:
    await _order(world, where, "pause", 10)
    await _order(world, where, "resume", 20)


async def _release(world: Both, where: Place) -> None:
    await _order(world, where, "release", 30)


async def _outbid(world: Both, where: Place) -> None:
    """Outbid a lease for half an hour; at Vast.ai by a bid that is worth beating, at Mithril all of them."""
    leave = {"vast": _rival_at_vast, "runpod": _rival_at_runpod, "mithril": _rival_at_mithril}[where.market](world)
    await world.cycle(minutes=30)
    world.simulator.sides[where.market].wake(world.clock.time())
    leave()
    await world.cycle(minutes=30)


def _rival_at_vast(world: Both) -> Callable[[], object]:
    machine, dollars = _cheap(world)
    rival = world.hosts.add_rival(machine, 1, dollars * 1.05)
    return lambda: world.hosts.remove_rival(rival)


def _rival_at_runpod(world: Both) -> Callable[[], object]:
    (lease,) = (lease for lease in world.running() if lease.slot.workload == CHEAP)
    world.pods.advance_to(world.clock.time())
    host = world.pods.pods[lease.instance_id].host
    rival = world.pods.add_rival(host.machine_id, host.gpu_count, lease.gpu_rate.dollars * 1.05)
    return lambda: world.pods.remove_rival(rival)


def _rival_at_mithril(world: Both) -> Callable[[], object]:
    """Put a rival above the limits of our bids into the pool of the first, for all of its machines."""
    market = world.simulator.mithril.world
    market.advance_to(world.clock.time())
    pool = market.live_contracts()[0].pool
    rival = market.add_rival(pool.fid, 400, pool.total)
    return lambda: market.remove_rival(rival)


async def _queue(world: Both, where: Place) -> None:
    """Have a start queued: somebody rents the paused GPU on demand for half an hour."""
    assert where.market == "vast"
    machine, _ = _cheap(world)
    await world.app.say(Order("pause", CHEAP), "a person")
    await world.cycle(minutes=5)
    world.hosts.advance_to(world.clock.time())
    rival = world.hosts.add_rival(machine, 1, on_demand=True)
    await world.cycle(minutes=2)
    await world.app.say(Order("resume", CHEAP), "a person")
    await world.cycle(minutes=30)
    world.hosts.advance_to(world.clock.time())
    world.hosts.remove_rival(rival)
    await world.cycle(minutes=30)


async def _watch(world: Both, where: Place) -> None:
    """Register the keys of running batches again, and read their logs."""
    assert where.works[0].ssh_keys
    world.simulator.surface.attached_keys.clear()
    await world.cycle(minutes=60)


def _cheap(world: Both) -> tuple[int, float]:
    """Return the machine and the dollars an hour of the cheap workload's lease at Vast.ai."""
    (lease,) = (lease for lease in world.running() if lease.slot.workload == CHEAP)
    world.hosts.advance_to(world.clock.time())
    return int(lease.host_id), lease.gpu_rate.dollars


DEEDS: Mapping[str, Callable[[Both, Place], Awaitable[None]]] = {
    "pause": _pause,
    "release": _release,
    "outbid": _outbid,
    "queue": _queue,
    "watch": _watch,
}
