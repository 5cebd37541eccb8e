"""The reasons of one slot's state: its lease, its holds and cooldowns, and its orders in doubt."""

from collections.abc import Iterator
from typing import Any

from agent.decide.operators import operator_holds
from agent.domain.fleet import Fleet
from agent.domain.record import hold
from agent.domain.record.cooldown import Cooldown, CooldownKind
from agent.domain.record.expiring_record import ExpiringRecord
from agent.domain.record.hold import EVERYTHING, Target
from agent.domain.record.lease import Lease
from agent.domain.slot import Slot
from agent.domain.work.workload import Workload
from agent.web.reading import slot_leases

OF_THE_SLOT = frozenset({CooldownKind.SLOT, CooldownKind.COOL_OFF})
OF_MODELS = frozenset({CooldownKind.STORM, CooldownKind.STARTS})
OF_MARKETS = frozenset({CooldownKind.MARKET, CooldownKind.REJECTED})


def of(fleet: Fleet, work: Workload, place: Slot) -> dict[str, Any]:
    """Return a slot of a workload as JSON: state, lease, the holds and cooldowns that concern it, and doubts."""
    mine = [each for each in fleet.leases_of(place) if not each.is_held]
    lead = slot_leases.lead(mine)
    return {
        "slot": str(place),
        "state": lead.state.value if lead else "empty",
        "since": lead.state_since.isoformat() if lead else None,
        "lease": lead.lease_id if lead else None,
        "market": lead.market if lead else None,
        "host": lead.host_id if lead else None,
        "gpu": lead.gpu if lead else None,
        "gpus": lead.gpus if lead else None,
        "dollars_per_hour": sum(each.billing_rate.dollars for each in mine),
        "kept_by": [
            {"what": str(rest), "until": rest.shown_until.isoformat(), "after": rest.ground}
            for rest in _kept_by(fleet, work, place, mine)
        ],
        "in_doubt": [
            {"intent": each.intent_id, "kind": each.kind.value, "state": each.state.value}
            for each in fleet.intents
            if each.slot == place and each.is_open
        ],
    }


def _kept_by(fleet: Fleet, work: Workload, place: Slot, mine: list[Lease]) -> Iterator[ExpiringRecord]:
    """Yield the holds and cooldowns that concern a slot. Cooldowns of single offers and hosts are in the refusals."""
    targets = _targets(fleet, work, place, mine)
    yield from (each for each in fleet.holds if each.target in targets and not each.is_over(fleet.now))
    leases = {each.lease_id for each in mine}
    for each in fleet.cooldowns:
        if not each.is_over(fleet.now) and (_is_of_slot(each, place, leases) or _is_of_market(each, fleet, work)):
            yield each


def _targets(fleet: Fleet, work: Workload, place: Slot, mine: list[Lease]) -> set[Target]:
    markets = {hold.of_market(name) for name in fleet.markets if work.may_use(name)}
    leases = (target for lease in mine for target in hold.including(lease))
    return {EVERYTHING, *operator_holds.of_slot(place), *leases, *markets}


def _is_of_slot(cooldown: Cooldown, place: Slot, leases: set[str]) -> bool:
    is_full = cooldown.kind is CooldownKind.FULL and cooldown.key in leases
    return is_full or (cooldown.kind in OF_THE_SLOT and cooldown.key == str(place))


def _is_of_market(cooldown: Cooldown, fleet: Fleet, work: Workload) -> bool:
    market, _, model = cooldown.key.partition("/")
    if market not in fleet.markets or not work.may_use(market):
        return False
    models = work.requirements.gpu_models
    return cooldown.kind in OF_MARKETS or (cooldown.kind in OF_MODELS and (not models or model in models))
