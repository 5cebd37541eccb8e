"""Room at clouds: a free machine of a type in no cooldown, at a price that is well within what a workload may cost."""

from agent.app import App
from agent.domain.record.cooldown import CooldownKind
from agent.domain.work.workload import Workload
from agent.markets.dstack import names
from agent.simulator.dstack.model import Kind
from agent.simulator.dstack.world import FLEET, World
from tests.disasters.clouds.cloud_draw import MARKET
from tests.disasters.points.room import ROOM

OF_PRICE = frozenset({"ondemand"})
"""Strategies that take any machine on demand that they may pay. The others weigh markets and times."""
_OF_OFFERS = frozenset({CooldownKind.HOST, CooldownKind.OFFER})


def is_enough(world: World | None, work: Workload, daemon: App | None) -> bool:
    """Return whether a slot that can run must run, as far as the cooldowns of a daemon allow it."""
    if world is None or daemon is None:
        return False
    cooldowns = daemon.ledger.recollection(daemon.clock.now()).cooldowns
    here = [each for each in cooldowns if each.key.startswith(f"{MARKET}/") or each.key == MARKET]
    if work.strategy not in OF_PRICE or FLEET not in world.fleets or any(each.kind not in _OF_OFFERS for each in here):
        return False
    resting = " ".join(each.key for each in here)
    return any(_is_wanted(kind, world, work) and _name(kind) not in resting for kind in world.kinds)


def _is_wanted(kind: Kind, world: World, work: Workload) -> bool:
    is_ours = kind.count == 1 and not kind.is_spot and names.model(kind.gpu) in work.requirements.gpu_models
    is_paid = kind.cents / 100 * ROOM < work.max_price.dollars
    return is_ours and is_paid and kind.backend in world.backends and world.free(kind) > 0


def _name(kind: Kind) -> str:
    return f"{kind.backend}/{kind.region}/{kind.name}"
