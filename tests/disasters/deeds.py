"""What happens between two cycles: a person's verb, an edited file, a blow of fate, the life of the daemon."""

import dataclasses
import datetime as dt
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from agent.act.orders.order_error import OrderError
from agent.config.settings import Config
from agent.domain import money
from agent.domain.work.order import Order
from agent.ledger.ledger_errors import LedgerError
from agent.simulator.market_model import Refusal
from agent.simulator.runpod.model import Refused
from tests.disasters import edits, judge
from tests.disasters.auctions import auction_deeds
from tests.disasters.auctions.auction_draw import MARKET
from tests.disasters.clouds import cloud_deeds
from tests.disasters.clouds.cloud_draw import MARKET as CLOUDS
from tests.disasters.edits import pick
from tests.disasters.exchange import Death
from tests.disasters.guards import guard_deeds
from tests.disasters.stage import CREDIT
from tests.disasters.story import Deed
from tests.disasters.truth import Box
from tests.support import levers, spending

if TYPE_CHECKING:
    from tests.disasters.play import Player

WHO = "disaster"


async def do(deed: Deed, player: "Player") -> None:
    """Do one deed. Skip an order that a person may not give, and an event of fate that finds no target."""
    try:
        await _DEEDS[deed.name](deed, player)
    except (OrderError, LedgerError, Refusal, Refused):
        return


# --- verbs ----------------------------------------------------------------------------------------------------------
def _say(verb: str, *, ends: bool = False) -> Callable[[Deed, "Player"], Awaitable[None]]:
    async def said(deed: Deed, player: "Player") -> None:
        work = pick(player.config.workloads, deed.pick)
        if player.app is None or work is None:
            return
        if ends:
            player.ordered.add(work.name)
        if verb == "pause":
            # Nothing can be paused there, so it is an order to end.
            player.ordered.add(f"{CLOUDS}/{work.name}")
        await player.app.say(Order(verb, work.name), WHO)

    return said


async def _release(deed: Deed, player: "Player") -> None:
    if player.app is None:
        return
    lease = pick([lease for lease in player.app.billing()[0] if lease.is_open], deed.pick)
    if lease is not None:
        # The ledger knows no workload of what another daemon bid under a label that is too short to name it.
        box = player.truth.boxes.get((lease.market, lease.instance_id))
        place = box.label.slot if box is not None and box.label is not None else lease.slot
        player.ordered |= {lease.slot.workload, place.workload}
        await player.app.say(Order("release", lease.lease_id), WHO)


async def _lock(deed: Deed, player: "Player") -> None:
    lease = pick(list(player.app.billing()[0]), deed.pick) if player.app is not None else None
    if player.app is not None and lease is not None:
        await player.app.say(Order("lock", f"host:{lease.host_id}", dt.timedelta(minutes=20)), WHO)


def _kill(*, keep: bool) -> Callable[[Deed, "Player"], Awaitable[None]]:
    async def killed(deed: Deed, player: "Player") -> None:
        if player.app is None:
            return
        player.begin_kill()
        try:
            await spending.kill(player.app, WHO, keep_disks=keep)
        except LedgerError:
            player.is_told_unwritten = True
            raise
        except Death:
            # The order may have died with the program. The person hears no answer and gives it again.
            player.end_kill()
            player.again(deed)
            raise

    return killed


async def _lift(deed: Deed, player: "Player") -> None:
    if player.app is None:
        return
    app = player.app
    try:
        await spending.lift(app, WHO)
    except Death:
        # It may have been written down or not. The person hears no answer and gives it again.
        player.again(deed)
        raise
    except LedgerError:
        # It may have been recorded, which the program finds out when it can read its ledger again.
        player.judge.is_lift_unsure = True
        raise
    finally:
        if not judge.is_killed(app):
            player.end_kill()


async def _resume_all(_: Deed, player: "Player") -> None:
    for work in player.config.workloads if player.app is not None else ():
        try:
            await player.app.say(Order("resume", work.name), WHO)  # type: ignore[union-attr]
        except OrderError:
            continue


# --- files ----------------------------------------------------------------------------------------------------------
def _price(deed: Deed, config: Config) -> Config:
    dollars = f"{0.2 + deed.amount:.2f}"
    return edits.changed(deed, config, lambda work: dataclasses.replace(work, max_price=money.per_hour(dollars)))


def _slots(deed: Deed, config: Config) -> Config:
    return edits.changed(
        deed,
        config,
        lambda work: dataclasses.replace(work, slots=1 + deed.pick % 3) if work.deadline is None else work,
    )


def _remove(deed: Deed, config: Config) -> Config:
    work = pick(config.workloads, deed.pick)
    kept = tuple(each for each in config.workloads if each is not work)
    return dataclasses.replace(config, workloads=kept) if kept else config


def _cap(deed: Deed, config: Config) -> Config:
    caps = dataclasses.replace(config.limits, per_day=money.usd(f"{0.3 + 2 * deed.amount:.2f}"))
    return dataclasses.replace(config, limits=caps)


def _strategy(deed: Deed, config: Config) -> Config:
    other = ("patient", "ondemand", "hedged")[deed.pick % 3]
    return edits.changed(deed, config, lambda work: dataclasses.replace(work, strategy=other, deadline=None))


# --- fate -----------------------------------------------------------------------------------------------------------
def _world(player: "Player", box: Box):  # type: ignore[no-untyped-def]  # noqa: ANN202 - any market's world
    simulator = player.stage.simulator
    if box.market == CLOUDS:
        return player.truth.clouds
    worlds = {"vast": simulator.world, "runpod": simulator.pods, MARKET: simulator.mithril.world}
    return worlds[box.market]


def _mine(player: "Player") -> list[Box]:
    return [box for box in player.truth.live if box.label is not None and box.is_live]


async def _host_gone(deed: Deed, player: "Player") -> None:
    box = pick(_mine(player), deed.pick)
    if box is not None:
        _world(player, box).set_host_gone(box.thing.host.machine_id)


async def _storm(_: Deed, player: "Player") -> None:
    for box in _mine(player):
        if player.stage.fate.random() < 0.6 and box.is_live and box.thing.host.machine_id:
            _world(player, box).set_host_gone(box.thing.host.machine_id)


async def _host_offline(deed: Deed, player: "Player") -> None:
    box = pick(_mine(player), deed.pick)
    if box is not None:
        until = player.stage.clock.time() + 60.0 + 1800.0 * deed.amount
        _world(player, box).set_host_offline(box.thing.host.machine_id, until)


async def _rival(deed: Deed, player: "Player") -> None:
    box = pick([box for box in _mine(player) if box.thing.holds_gpu], deed.pick)
    if box is None:
        return
    if box.market == MARKET:
        await auction_deeds.DEEDS["pool_rival"](deed, player)
        return
    if box.market == CLOUDS:
        cloud_deeds.lose(_world(player, box), box)
        return
    world, bid = _world(player, box), None if deed.amount < 0.5 else 5.0
    rival = world.add_rival(box.thing.host.machine_id, 1, bid, on_demand=bid is None)
    player.rivals.append((world, rival, player.stage.clock.time() + 600.0 + 3600.0 * deed.amount))


async def _exit(deed: Deed, player: "Player") -> None:
    box = pick([box for box in _mine(player) if box.is_running and box.market == "vast"], deed.pick)
    if box is not None:
        levers.exit_container(player.stage.simulator.world, int(box.instance_id), restarts_after=120.0)


async def _stuck(deed: Deed, player: "Player") -> None:
    box = pick([box for box in _mine(player) if not box.is_running and box.market == "vast"], deed.pick)
    if box is not None:
        player.stage.simulator.world.stick_loading(int(box.instance_id))


async def _foreign(deed: Deed, player: "Player") -> None:
    player.strangers.rent("somebody else's" if deed.amount < 0.5 else None)


async def _relabel(deed: Deed, player: "Player") -> None:
    box = pick(_mine(player), deed.pick)
    # The name of a bid or a run cannot be changed.
    if box is not None and box.market not in {MARKET, CLOUDS}:
        box.thing.label = "mine now"


async def _no_credit(deed: Deed, player: "Player") -> None:
    world = player.stage.simulator.world
    world.set_credit(0.01)
    player.later(player.stage.clock.time() + 1200.0 * deed.amount, lambda: world.set_credit(CREDIT))


# --- hosts on purpose -----------------------------------------------------------------------------------------------
def _of_vast(player: "Player", *, on_demand: bool = False) -> list[Box]:
    boxes = [box for box in _mine(player) if box.market == "vast"]
    return [box for box in boxes if getattr(box.thing, "bid", None) is None] if on_demand else boxes


async def _rise(deed: Deed, player: "Player") -> None:
    """A host asks more of its renters on demand; a person accepts it at the market, or nobody does."""
    box = pick(_of_vast(player, on_demand=True), deed.pick)
    if box is None:
        return
    landlord = player.stage.simulator.world.landlord
    rises = landlord.raise_price(box.thing.host.machine_id, 1.05 + 2.0 * deed.amount)
    rise = next(each for each in rises if each.contract is box.thing)

    def accept() -> None:
        player.judge.hear_rise(box)
        landlord.answer(rise.rise_id, is_accepted=True)

    if deed.pick % 2:
        player.later(player.stage.clock.time() + 1800.0 * deed.amount, accept)


async def _maintenance(deed: Deed, player: "Player") -> None:
    box = pick(_mine(player), deed.pick)
    if box is not None and box.market not in {MARKET, CLOUDS}:
        world = _world(player, box)
        host = world.landlord if box.market == "vast" else world
        host.plan_maintenance(box.thing.host.machine_id, 600.0 * (deed.pick % 8), 60.0 + 1800.0 * deed.amount)


async def _near_end(deed: Deed, player: "Player") -> None:
    """A host leaves the market soon, and its contracts end with it."""
    box, world = pick(_of_vast(player), deed.pick), player.stage.simulator.world
    if box is None:
        return
    host = box.thing.host
    host.end_time = player.stage.clock.time() + 60.0 + 7200.0 * deed.amount
    for contract in world.live_contracts():
        if contract.host is host:
            world._desk.renew(contract, contract.locked_ask, host.end_time)


async def _prepay(deed: Deed, player: "Player") -> None:
    """A person makes a deposit for an instance on demand at the market: it costs less from then on."""
    box = pick(_of_vast(player, on_demand=True), deed.pick)
    if box is not None:
        box.thing.host.credit_discount = 0.4
        months = 6.0 * deed.amount
        player.stage.simulator.world.landlord.prepay(box.thing, months * 720.0 * box.thing.locked_ask)


# --- the daemon's life ----------------------------------------------------------------------------------------------
async def _restart(deed: Deed, player: "Player") -> None:
    await player.end_life(seconds=600.0 * deed.amount)


async def _kill_9(deed: Deed, player: "Player") -> None:
    await player.bury(seconds=1800.0 * deed.amount)


async def _clock(deed: Deed, player: "Player") -> None:
    player.stage.machine.off = dt.timedelta(seconds=(-90.0, 90.0, 86_400.0, -86_400.0)[deed.pick % 4])
    player.later(player.stage.clock.time() + 900.0, lambda: setattr(player.stage.machine, "off", dt.timedelta()))


async def _sleep(deed: Deed, player: "Player") -> None:
    player.stage.clock.advance(3600.0 * (0.5 + 4 * deed.amount))


async def _second(deed: Deed, player: "Player") -> None:
    await player.begin_second(cycles=3 + int(20 * deed.amount))


_DEEDS: Mapping[str, Callable[[Deed, "Player"], Awaitable[None]]] = {
    "pause": _say("pause"),
    "resume": _say("resume"),
    "drain": _say("drain"),
    "undrain": _say("resume"),
    "done": _say("done", ends=True),
    "kill_workload": _say("kill", ends=True),
    "release": _release,
    "lock": _lock,
    "kill": _kill(keep=False),
    "kill_keep": _kill(keep=True),
    "lift": _lift,
    "resume_all": _resume_all,
    "edit_price": edits.edit(_price),
    "edit_slots": edits.edit(_slots),
    "edit_remove": edits.edit(_remove),
    "edit_cap": edits.edit(_cap),
    "edit_strategy": edits.edit(_strategy),
    "host_gone": _host_gone,
    "storm": _storm,
    "host_offline": _host_offline,
    "rival": _rival,
    "exit": _exit,
    "stuck": _stuck,
    "foreign": _foreign,
    "relabel": _relabel,
    "no_credit": _no_credit,
    "rise": _rise,
    "maintenance": _maintenance,
    "near_end": _near_end,
    "prepay": _prepay,
    "restart": _restart,
    "kill_9": _kill_9,
    "clock": _clock,
    "sleep": _sleep,
    "second": _second,
    **auction_deeds.DEEDS,
    **cloud_deeds.DEEDS,
    **guard_deeds.DEEDS,
}
