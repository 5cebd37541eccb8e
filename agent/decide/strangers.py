"""Instances of ours without a lease: adopt, hold or release them; foreign ones are never touched.

Invariants:
1. Ours is what carries our fleet id in its label or whose instance id the ledger knows; nothing else is ever named.
2. Only an empty slot adopts. A filled slot or an unknown workload holds: metered, alerted, left to a person.
3. What we released ourselves is released again.
"""

from dataclasses import replace
from datetime import datetime

from agent.decide import readback
from agent.decide.facts import Alert, Fact, InstanceFound, IntentSettled
from agent.decide.memory import Memory
from agent.domain.fleet import Fleet, MarketView
from agent.domain.instance import Instance, InstanceState
from agent.domain.intent import Intent, IntentKind
from agent.domain.label import Label
from agent.domain.lease import Bills, Lease, LeaseState
from agent.domain.money import FREE, UsdPerHour
from agent.domain.workload import Slot

LOOKS = 2
"""A stranger is believed on the second look: a stale listing may show what has just been released."""
TAKEN_BACK = frozenset({"host_gone", "contract_end"})
"""Ends that were not our doing: what is listed again after them goes on."""


def find(
    fleet: Fleet, view: MarketView, memory: Memory, held: list[Lease], settled: tuple[Fact, ...]
) -> tuple[tuple[Fact, ...], dict[str, int]]:
    """Return what is to be done with each instance of ours that has no lease, and how often each was seen so."""
    known = {lease.instance_id for lease in held}
    known |= {fact.lease.instance_id for fact in settled if isinstance(fact, IntentSettled) and fact.lease is not None}
    filled = {lease.slot for lease in fleet.leases if lease.is_open and not lease.is_held}
    filled |= {intent.slot for intent in fleet.intents if intent.is_open and intent.kind.is_paying}
    facts: list[Fact] = []
    seen = {key: looks for key, looks in memory.strangers.items() if not key.startswith(f"{view.market}/")}
    for row in view.instances:
        label = view.labels.get(row.instance_id)
        past = fleet.past_leases.get(row.instance_id)
        ours = label if label is not None and label.fleet_id == fleet.fleet_id else past
        if row.instance_id in known or ours is None:
            continue
        key = f"{view.market}/{row.instance_id}"
        seen[key] = memory.strangers.get(key, 0) + 1
        if seen[key] == LOOKS:
            fact = _judge(fleet, row, ours.slot, past, label, is_filled=ours.slot in filled)
            filled.add(ours.slot)
            facts.append(fact)
    return tuple(facts), seen


def claimant(fleet: Fleet, place: Slot) -> str:
    """Return the id of a listed instance that carries the label of `place` and may yet be adopted, or an empty text.

    An empty slot rents nothing beside it: after a lost ledger, or a host thought gone, that would pay twice.
    """
    known = {lease.instance_id for lease in fleet.leases}
    for view in fleet.markets.values():
        for instance_id, label in view.labels.items():
            if label.fleet_id != fleet.fleet_id or label.slot != place or instance_id in known:
                continue
            past = fleet.past_leases.get(instance_id)
            if past is None or past.end_reason in TAKEN_BACK:
                return instance_id
    return ""


def _judge(
    fleet: Fleet, row: Instance, slot: Slot, past: Lease | None, label: Label | None, *, is_filled: bool
) -> InstanceFound | Alert:
    name = f"instance {row.instance_id} on host {row.host_id}"
    if past is not None and past.end_reason not in TAKEN_BACK:
        return InstanceFound(row, "release", past, f"{name} was released by us and is listed again; released again")
    intent = fleet.past_intents.get(label.intent_id) if label else None
    if past is None and intent is None and row.created_at is not None and row.created_at > fleet.started_at:
        sentence = (
            f"{name} carries our fleet id and an intent that this ledger never wrote: another daemon runs on this fleet"
        )
        return InstanceFound(row, "second_daemon", None, sentence)
    work = fleet.workload(slot.workload)
    made = lease_of(fleet, row, slot, intent)
    if work is not None and slot in work.places and not is_filled:
        return InstanceFound(row, "adopt", made, f"{name} carries our label and slot {slot} is empty: adopted")
    why = f"slot {slot} is filled" if work is not None else f"no workload is named {slot.workload}"
    sentence = f"{name} carries our label but {why}: held and counted; run `gpubid release` or `gpubid adopt`"
    return InstanceFound(row, "hold", replace(made, is_held=True), sentence)


def lease_of(fleet: Fleet, row: Instance, slot: Slot, intent: Intent | None) -> Lease:
    """Return the lease that an instance of ours stands for, metered from its creation or where its last lease ended."""
    created: datetime = row.created_at or (intent.sent_at if intent else None) or fleet.now
    runs = row.state is InstanceState.RUNNING
    differs = readback.difference(readback.of_intent(intent), row) if intent else ""
    past = fleet.past_leases.get(row.instance_id)
    agreed = _agreed(row, intent, past)
    since = min(past.accrued_until if past else created, fleet.now)
    suffix = f"-{fleet.now.timestamp():.0f}" if past else ""
    return Lease(
        lease_id=f"{row.market}-{row.instance_id}{suffix}",
        market=row.market,
        instance_id=row.instance_id,
        slot=slot,
        tenure=row.tenure,
        state=LeaseState.STARTING,
        host_id=row.host_id,
        owner_id=row.owner_id,
        offer_id=intent.offer_id if intent else "",
        gpu=row.gpu,
        gpus=row.gpus,
        dlperf=row.dlperf,
        gpu_rate=max(row.gpu_rate, agreed),
        agreed_rate=agreed,
        disk_rate=row.disk_rate,
        disk_gb=row.disk_gb,
        opened_at=created,
        state_since=created,
        bills=Bills.GPU_AND_DISK if row.bills_gpu else Bills.DISK,
        accrued_until=since,
        intent_id=intent.intent_id if intent else "",
        host_floor=row.floor,
        ends_at=row.ends_at,
        has_run=past.has_run if past else False,
        run_since=since if runs else None,
        traffic_down_gb=past.traffic_down_gb if past else 0.0,
        traffic_up_gb=past.traffic_up_gb if past else 0.0,
        has_failed=bool(differs),
        end_reason=readback.PREFIX + differs if differs else "",
    )


def _agreed(row: Instance, intent: Intent | None, past: Lease | None) -> UsdPerHour:
    """Return what the GPUs of an adopted instance were agreed to cost; what no record of ours tells is as listed."""
    if past is not None:
        return past.agreed
    if intent is None or intent.kind is not IntentKind.RENT:
        return row.gpu_rate
    return intent.price if intent.price is not None else max(FREE, intent.rate - row.disk_rate)
