"""The JSON of the reading verbs: the same from the ledger's file and from the daemon's socket."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any

from agent.cycle import Pass
from agent.decide import explain
from agent.decide.accounting import unmetered_cost, volume_metering
from agent.decide.limits import credit_watch
from agent.decide.limits.limits import Limits
from agent.decide.operators import operator_holds
from agent.decide.operators.notices import Notice, held_back
from agent.domain import money
from agent.domain.fleet import Fleet
from agent.domain.market.market_rules import ASSUMED
from agent.domain.market.price import PriceSample
from agent.domain.money import Usd
from agent.domain.record import hold
from agent.domain.record.event import Event
from agent.domain.record.hold import Word
from agent.domain.record.lease import Lease
from agent.domain.record.reported_crossing import ReportedCrossing
from agent.domain.record.shadow_account import ShadowDecision
from agent.domain.slot import Slot
from agent.domain.work.workload import Workload
from agent.ledger.memory import Recollection
from agent.ledger.tables.decisions import RecordedDecision
from agent.web.reading import caps as caps_json
from agent.web.reading import cloud_prices, lease_address, shadow_json, slot_grounds, slot_leases
from agent.web.reading.workload_rows import array_json, demand_json, run_times_json, service_json


def fleet(
    workloads: Iterable[Workload],
    known: Recollection,
    decided: Sequence[RecordedDecision],
    now: datetime,
    notices: Iterable[Notice] = (),
    caps: Limits | None = None,
    seen: Fleet | None = None,
) -> dict[str, Any]:
    """Return slots with their leases, spend, doubts, cooldowns, and notices about the whole fleet."""
    owed = unmetered_cost.of(known.leases, volume_metering.burdens(known.volumes, now), now)
    rate = money.total_rate(held.billing_rate for held in known.leases) + volume_metering.rate(known.volumes, now)
    workloads = tuple(workloads)
    places = [place for work in workloads for place in work.places]
    filled = slot_leases.filled(places, known.leases).by_slot
    last = {decision.slot: (decision,) for decision in reversed(decided)}
    holds = hold.in_force(known.holds, now)
    return {
        "now": now.isoformat(),
        "notices": [asdict(notice) for notice in (*notices, *held_back(known.leases))],
        "slots": [slot(place, holds, last.get(place, ()), filled.get(place, ())) for place in places],
        "leases": [lease(held) for held in known.leases],
        "in_doubt": [
            {
                "intent": intent.intent_id,
                "kind": intent.kind.value,
                "slot": str(intent.slot),
                "state": intent.state.value,
            }
            for intent in known.intents
        ],
        "arrays": array_json.rows(workloads, known, now),
        "demands": demand_json.rows(seen),
        "run_times": run_times_json.rows(workloads, known, now),
        "services": service_json.recorded(known.warm),
        "spent_today_dollars": (known.total.today + owed.today).dollars,
        "spent_month_dollars": (known.total.month + owed.month).dollars,
        "dollars_per_hour": rate.dollars,
        "holds_and_cooldowns": [
            {"what": str(rest), "until": rest.shown_until.isoformat(), "after": rest.ground}
            for rest in known.expiring
            if not isinstance(rest, ReportedCrossing)
        ],
        "credit": [
            outlook(_credit(name, kept.amount, known, caps or Limits(), seen), kept.at)
            for name, kept in sorted(known.credits.items())
        ],
    }


def _credit(
    market: str, credit: Usd | None, known: Recollection, caps: Limits, seen: Fleet | None
) -> credit_watch.Outlook:
    rules = ASSUMED if seen is None else seen.rules_of(market)
    return credit_watch.outlook(market, credit, known.leases, caps.credit_floor(market), rules)


def outlook(seen: credit_watch.Outlook, read_at: datetime) -> dict[str, Any]:
    """Return a market's credit, and how long it lasts."""
    return {
        "market": seen.market,
        "credit_dollars": None if seen.credit is None else seen.credit.dollars,
        "floor_dollars": None if seen.floor is None else seen.floor.dollars,
        "dollars_per_hour": seen.rate.dollars,
        "lasts_hours": None if seen.lasts is None else seen.lasts.total_seconds() / 3600,
        "changed_at": read_at.isoformat(),
        "sentence": seen.sentence(),
    }


def slot(
    place: Slot, holds: hold.Holds, decided: Sequence[RecordedDecision], leases: Sequence[Lease]
) -> dict[str, Any]:
    """Return one slot: its lease and state, and the reason why it does not run. `leases` are those of the slot."""
    mine = [lease for lease in leases if not lease.is_held]
    lease = slot_leases.lead(mine)
    return {
        "slot": str(place),
        "lease": lease.lease_id if lease else None,
        "state": lease.state.value if lease else "empty",
        "why": _ailment(lease) if slot_leases.is_running(mine) else _why(place, mine, holds, decided),
    }


def _ailment(lease: Lease | None) -> str:
    """Return why a running slot is of no use: its service does not answer, or its work shows no progress."""
    if lease is not None and lease.unhealthy_since is None and lease.stalled_since is not None:
        return lease.end_reason.partition(": ")[2]
    if lease is None or lease.unhealthy_since is None:
        return ""
    said = f"{lease.end_reason.partition(': ')[2]}; restarts so far: {lease.restarts}"
    return f"its service does not answer since {lease.unhealthy_since:%H:%M} UTC: {said}"


def _why(place: Slot, mine: Sequence[Lease], holds: hold.Holds, decided: Sequence[RecordedDecision]) -> str:
    """Return why a slot is not running: first a person's order, then the last decision."""
    of_leases = tuple(target for lease in mine for target in hold.including(lease))
    targets = of_leases or operator_holds.of_slot(place)
    words = (Word.DONE, Word.KILL, Word.HELD, Word.PAUSE, Word.LOCK, Word.DRAIN)
    word = operator_holds.find(holds, words, targets)
    if word is not None:
        return word.sentence
    last = next((decision for decision in decided if decision.slot == place), None)
    return f"{last.kind}: {last.reason.sentence}" if last is not None else "no cycle has decided about it yet"


def lease(lease: Lease) -> dict[str, Any]:
    """Return one lease."""
    return {
        "lease": lease.lease_id,
        "slot": str(lease.slot),
        "state": lease.state.value,
        "is_held": lease.is_held,
        "market": lease.market,
        "instance": lease.instance_id,
        "rent": lease.label_id or None,
        "host": lease.host_id,
        "owner": lease.owner_id,
        "gpu": lease.gpu,
        "gpus": lease.gpus,
        "tenure": lease.tenure.value,
        "gpu_dollars_per_hour": lease.gpu_rate.dollars,
        "disk_dollars_per_hour": lease.disk_rate.dollars,
        "billing_dollars_per_hour": lease.billing_rate.dollars,
        "since": lease.state_since.isoformat(),
        "interrupted_by": lease.interrupted_by.value if lease.interrupted_by else None,
        "ready_since": lease.ready_since.isoformat() if lease.ready_since else None,
        "idle_since": lease.idle_since.isoformat() if lease.idle_since else None,
        "unhealthy_since": lease.unhealthy_since.isoformat() if lease.unhealthy_since else None,
        "ran_seconds": lease.ran_micros // 1_000_000,
        "stalled_since": lease.stalled_since.isoformat() if lease.stalled_since else None,
        "address": lease.ssh_address,
        "ssh": " ".join(lease_address.ssh(lease) or ()) or None,
        "ports": lease_address.ports(lease),
        "keys_seen_at": lease.keys_seen_at.isoformat() if lease.keys_seen_at and lease.has_keys else None,
    }


def events(rows: Iterable[Event]) -> list[dict[str, Any]]:
    """Return events, in the order given."""
    return [plain(asdict(event)) for event in rows]


def prices(samples: Iterable[PriceSample]) -> list[dict[str, Any]]:
    """Return price samples, in the order given."""
    return [plain(asdict(sample)) for sample in samples]


def plan(seen: Pass) -> dict[str, Any]:
    """Return the decisions of a cycle."""
    read = [view for _, view in sorted(seen.fleet.markets.items()) if view.account_id]
    outlooks = [credit_watch.outlook(view.market, view.credit, seen.fleet.leases, None, view.rules) for view in read]
    return {
        "now": seen.plan.now.isoformat(),
        "decisions": [explain.as_json(decision) for decision in seen.plan.decisions],
        "credit": [outlook(each, seen.fleet.now) for each in outlooks],
    }


def explained(
    seen: Pass,
    decided: Iterable[RecordedDecision],
    weighed: Iterable[RecordedDecision],
    workload: str | None,
    beside: Iterable[ShadowDecision] = (),
) -> dict[str, Any]:
    """Return the reasons of a cycle for one workload, one NAME/SLOT or all: slots, and each slot's last decisions.

    `weighed` are the last decisions that compared several options. `beside` are the last decisions of shadows.
    """
    places = {place: work for work in seen.fleet.workloads for place in work.places if _is_meant(place, workload)}
    return {
        "at": seen.fleet.now.isoformat(),
        "slots": [slot_grounds.of(seen.fleet, work, place) for place, work in places.items()],
        "now": [_now(seen, work, workload) for work in seen.fleet.workloads if work in places.values()],
        "last": [decision(row) for row in decided if _is_meant(row.slot, workload)],
        "weighed": [
            decision(row) | {"options": [asdict(option) for option in row.reason.options]}
            for row in weighed
            if _is_meant(row.slot, workload)
        ],
        "beside": [shadow_json.decision(row) for row in beside if _is_meant(row.slot, workload)],
    }


def _is_meant(place: Slot, name: str | None) -> bool:
    """Return whether a NAME or NAME/SLOT means a slot; None means all."""
    return name is None or name in {place.workload, str(place)}


def _now(seen: Pass, work: Workload, name: str | None) -> dict[str, Any]:
    """Return the grounds of a workload's decisions, or of one slot's if a slot is named."""
    explained = explain.explanation_json(explain.explain(seen.fleet, seen.plan, work))
    is_all = name in {None, work.name}
    of_slot = {
        key: [row for row in explained[key] if is_all or row["slot"] == name] for key in ("decisions", "checkpoints")
    }
    return (
        explained
        | of_slot
        | {
            "services": service_json.of(seen.fleet, work, seen.plan.tuned[work.name]),
            "clouds": cloud_prices.of(seen.fleet, work, cloud_prices.shipped()),
        }
    )


def running(digest: str, caps: Limits) -> dict[str, Any]:
    """Return the digest of the daemon's file, and its caps in micro-dollars."""
    return {"digest": digest, "limits": caps_json.as_json(caps)}


def decision(recorded: RecordedDecision) -> dict[str, Any]:
    """Return a decision in the ledger's shape."""
    return {
        "at": recorded.at.isoformat(),
        "slot": str(recorded.slot),
        "kind": recorded.kind,
        "code": recorded.reason.code,
        "sentence": recorded.reason.sentence,
        "strategy": recorded.strategy,
        "strategy_file": recorded.strategy_file,
        "params_digest": recorded.params_digest,
        "options": [{"name": option.name, "dollars": option.dollars} for option in recorded.reason.options],
    }


def plain(value: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """Return a value as JSON: money in dollars, times in ISO, enums by their value."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    return value.dollars if hasattr(value, "dollars") else str(value) if isinstance(value, Path) else value
