"""Instances of ours without a lease: adopt, hold or release them; foreign instances are never touched.

Invariants:
1. An instance is ours if its label has our fleet id, in the listing and in a look by its id. No other instance is acted
   on.
2. Only an empty slot adopts an instance, or a slot whose lease the market denies. If the slot is filled or the workload
   unknown, the instance is held: metered, with an alert, and left to a person.
3. An instance that we released ourselves is released again.
4. Every cycle finds a verdict again until the ledger has it, so that none is lost when it could not be written.
5. While the market neither lists nor denies the lease of a slot, or a rent or an order on a lease that is gone is in
   doubt, another instance with its label is held and metered as undecided: it is adopted as soon as its slot proves
   empty, else it stays held.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec

from agent.decide.facts import Fact, InstanceFound, IntentSettled, LeaseChanged, LeaseDisowned
from agent.decide.reconcile import agreed_rate, ownership, readback, waiting_verdict
from agent.decide.reconcile.pass_memory import Memory
from agent.domain.fleet import Fleet, MarketView
from agent.domain.market import host
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.interruption import Evidence
from agent.domain.market.label import Label
from agent.domain.money import FREE, UsdPerHour
from agent.domain.record.event_kind import EventKind
from agent.domain.record.intent import Intent, IntentKind
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.slot import Slot
from agent.domain.work.workload import Workload

UNSEEN = Label("", Slot("", 0), "")
"""The label of an instance that no look by its id has shown in this cycle."""
LOOKS = 2
"""The number of looks after which an orphan is believed: a stale listing may show an instance that was just
released."""
OVER_LONG = timedelta(minutes=15)
"""So long after the end of a lease its market must call its machine over, or the end itself may have been wrong."""
TAKEN_BACK = frozenset({"host_gone", "contract_end", ownership.NEVER_OURS})
"""Ends that we did not order: if the instance is listed again, the lease goes on."""


@dataclass(frozen=True, slots=True)
class OrphanFindings:
    """The verdicts on instances of ours without a lease, how often each was seen, and ids to ask for."""

    facts: tuple[Fact, ...]
    sightings: Mapping[str, int]
    to_look: frozenset[str]


def find(
    fleet: Fleet, view: MarketView, memory: Memory, held: list[Lease], settled: tuple[Fact, ...]
) -> OrphanFindings:
    """Return the verdicts on instances of ours without a lease; each cycle finds them again until they are recorded."""
    known = {lease.instance_id for lease in held}
    known |= {fact.lease.instance_id for fact in settled if isinstance(fact, IntentSettled) and fact.lease is not None}
    # The rent of a disowned lease is in doubt again, and doubt finds the instance by the label of that rent.
    doubted = {fact.lease.intent_id for fact in settled if isinstance(fact, LeaseDisowned)}
    # While the ledger cannot be written, a rent stays `sent` although it is in doubt.
    doubted |= {intent.intent_id for intent in fleet.intents if intent.is_open and intent.kind is IntentKind.RENT}
    filled, undecided = _slots(fleet)
    facts: list[Fact] = []
    seen = {key: looks for key, looks in memory.orphan_sightings.items() if not key.startswith(f"{view.market}/")}
    to_look: set[str] = set()
    for row in view.instances:
        label = view.labels.get(row.instance_id)
        is_ours = label is not None and label.fleet_id == fleet.fleet_id
        was_ours = ownership.was_proven(fleet.past_leases.get(row.instance_id))
        is_doubted = label is not None and label.intent_id in doubted
        if row.instance_id in known or is_doubted or not (is_ours or was_ours):
            continue
        key = f"{view.market}/{row.instance_id}"
        seen[key] = memory.orphan_sightings.get(key, 0) + 1
        to_look.add(row.instance_id)
        if seen[key] < LOOKS or view.looks.get(row.instance_id, UNSEEN) != label:
            continue
        if label is None or not is_ours:
            facts.append(_strayed(fleet, row))
            continue
        place = _place(label, fleet.past_leases.get(row.instance_id))
        verdict = _judge(fleet, row, label, is_filled=place in filled)
        if verdict.verdict == "hold" and place in undecided and verdict.lease is not None:
            verdict = _waiting(verdict, verdict.lease)
        facts.append(verdict)
        filled.add(place)
    return OrphanFindings(tuple(facts), seen, frozenset(to_look))


def decided(fleet: Fleet, owned: ownership.Ownership) -> ownership.Ownership:
    """Return the leases, with a verdict on each undecided one whose slot is now surely empty or filled."""
    filled, unknown = _slots(fleet)
    leases, facts = list(owned.leases), list(owned.facts)
    for number, held in enumerate(leases):
        view = fleet.markets.get(held.market)
        if not waiting_verdict.is_due(held) or held.slot in unknown or view is None or not _is_shown(view, held):
            continue
        if fleet.paying_intent(held.slot) is not None:
            # A hold is final, and the order in doubt may prove void in this very pass: then the slot is empty.
            continue
        work = fleet.workload(held.slot.workload)
        is_wanted = work is not None and held.slot in work.places and held.slot not in filled
        leases[number] = msgspec.structs.replace(
            held, is_held=not is_wanted, end_reason=waiting_verdict.own_reason(held)
        )
        what = f"slot {held.slot} is empty: adopted" if is_wanted else f"{_why_held(work, held.slot)}: it stays held"
        evidence = Evidence("adopt" if is_wanted else "hold", f"instance {held.instance_id} waited, and {what}")
        facts.append(LeaseChanged(held, leases[number], EventKind.ORPHAN_SEEN, evidence=evidence))
        filled.add(held.slot)
    return replace(owned, leases=tuple(leases), facts=tuple(facts))


def _slots(fleet: Fleet) -> tuple[set[Slot], set[Slot]]:
    """Return the filled slots, and those among them of which nobody knows whether they are.

    Such a slot has a lease that is neither shown nor denied, or no lease but an order in doubt: a rent, or an order on
    a lease that is gone.
    """
    open_leases = (lease for lease in fleet.leases if lease.is_open and not lease.is_held)
    filling = [lease for lease in open_leases if not _is_gone(fleet, lease)]
    filled = {lease.slot for lease in filling}
    paying = [intent for intent in fleet.intents if intent.is_open and intent.kind.is_paying]
    doubtful = {intent.slot for intent in paying if intent.slot not in filled}
    return filled | {intent.slot for intent in paying}, _undecided(fleet, filling) | doubtful


def _waiting(verdict: InstanceFound, lease: Lease) -> InstanceFound:
    """Return the verdict on an instance that is only counted for now, and adopted later if its slot proves empty."""
    sentence = (
        f"instance {lease.instance_id} on host {lease.host_id} carries the label of {lease.slot}, which may be "
        f"filled or empty: counted until that is known"
    )
    return replace(verdict, verdict="wait", lease=waiting_verdict.marked(lease), sentence=sentence)


def _is_gone(fleet: Fleet, lease: Lease) -> bool:
    """Return whether the market denies a lease now. Another listed instance of the slot has then taken its place.

    A ledger restored from a backup has the old lease and does not know the instance that replaced it.
    """
    view = fleet.markets.get(lease.market)
    return view is not None and view.is_fresh and lease.is_proven and view.denies(lease.instance_id)


def _undecided(fleet: Fleet, filling: list[Lease]) -> set[Slot]:
    """Return the slots of leases that the market neither shows nor denies now. Nobody knows whether they are filled.

    A hold is final, and such a lease may end minutes later. Then its slot would be rented again beside the held
    instance.
    """
    views = fleet.markets
    return {lease.slot for lease in filling if lease.market in views and not _is_shown(views[lease.market], lease)}


def _is_shown(view: MarketView, lease: Lease) -> bool:
    return view.is_fresh and view.instance(lease.instance_id) is not None


def claimant(fleet: Fleet, place: Slot) -> str:
    """Return the id of a listed instance with the label of `place` that may still be adopted, or an empty text.

    An empty slot does not rent beside such an instance: after a lost ledger, or with a host that seemed gone, that
    would pay twice. An undecided one counts although its market has not been listed since the start.
    """
    return next((instance_id for claimed, instance_id in claims(fleet) if claimed == place), "")


def claims(fleet: Fleet) -> Iterator[tuple[Slot, str]]:
    """Yield the slot and the id of each listed instance with our label that may still be adopted."""
    yield from ((held.slot, held.instance_id) for held in fleet.leases if waiting_verdict.is_due(held))
    known = {lease.instance_id for lease in fleet.leases}
    for view in fleet.markets.values():
        for instance_id, label in view.labels.items():
            if label.fleet_id != fleet.fleet_id or instance_id in known:
                continue
            past = fleet.past_leases.get(instance_id)
            if past is None or past.end_reason in TAKEN_BACK:
                yield _place(label, past), instance_id


def _place(label: Label, past: Lease | None) -> Slot:
    """Return the slot that an instance fills: its label's, or the one that its last lease went on with."""
    return past.slot if past is not None and past.label_intent_id == label.intent_id else label.slot


def _strayed(fleet: Fleet, row: Instance) -> InstanceFound:
    """Return the verdict on an instance that we believed ended and that is listed again under another label."""
    past = fleet.past_leases[row.instance_id]
    lease = msgspec.structs.replace(
        lease_of(fleet, row, past.slot, None), proven_at=past.proven_at, estranged_since=fleet.now
    )
    sentence = (
        f"instance {row.instance_id}, whose lease {past.lease_id} ended, is listed again without our label: counted "
        f"and not touched; `gpubid release {lease.lease_id}` ends it"
    )
    return InstanceFound(row, "hold", msgspec.structs.replace(lease, is_held=True), sentence)


def _judge(fleet: Fleet, row: Instance, label: Label, *, is_filled: bool) -> InstanceFound:
    """Return the verdict on an instance whose label a listing and a request for its id have shown."""
    name = f"instance {row.instance_id} on host {row.host_id}"
    past = fleet.past_leases.get(row.instance_id)
    slot = _place(label, past)
    intent = fleet.past_intents.get(label.intent_id)
    lease = msgspec.structs.replace(lease_of(fleet, row, slot, intent), proven_at=fleet.now)
    if past is not None and past.end_reason not in TAKEN_BACK:
        sentence = f"{name} was released by us and is listed again: released again until the market confirms it"
        again = msgspec.structs.replace(
            lease, state=LeaseState.RELEASING, state_since=fleet.now, end_reason=past.end_reason
        )
        return InstanceFound(row, "release", again, sentence)
    if past is None and intent is None and row.created_at is not None and row.created_at > fleet.started_at:
        sentence = (
            f"{name} carries our fleet id and an intent that this ledger never wrote: another daemon runs on this fleet"
            f"{f', in epoch {label.epoch}' if label.epoch else ''}"
        )
        # It bills our account, so it is counted. The other daemon or a person must end it.
        return InstanceFound(row, "second_daemon", msgspec.structs.replace(lease, is_held=True), sentence)
    work = fleet.workload(slot.workload)
    if work is not None and slot in work.places and not is_filled:
        return InstanceFound(row, "adopt", lease, f"{name} carries our label and slot {slot} is empty: adopted")
    why = _why_held(work, slot)
    sentence = (
        f"{name} carries our label but {why}: held and counted; `gpubid release {lease.lease_id}` ends it, "
        f"`gpubid adopt {lease.lease_id} --into WORKLOAD/SLOT` keeps it"
    )
    return InstanceFound(row, "hold", msgspec.structs.replace(lease, is_held=True), sentence)


def _why_held(work: Workload | None, slot: Slot) -> str:
    if not slot.workload:
        return "its short name has no workload, and the ledger does not know its rent"
    if work is None:
        return f"no workload is named {slot.workload}"
    return f"slot {slot} is filled" if slot in work.places else f"{work.name} has no slot {slot.index}"


def lease_of(fleet: Fleet, row: Instance, slot: Slot, intent: Intent | None) -> Lease:
    """Return the lease of an instance of ours, metered from its creation or from the end of its last lease.

    The lease has failed if the row and a look by its id agree that the instance differs from the intent. If only the
    row differs, the lease keeps the ordered terms and is read back again: one wrong answer ends nothing.
    """
    created: datetime = row.created_at or (intent.sent_at if intent else None) or fleet.now
    differs, is_sure = _difference(fleet, row, intent)
    ended = fleet.past_leases.get(row.instance_id)
    past = _of_this(ended, created)
    agreed = _agreed(fleet, row, slot, intent, past)
    # A sure difference ends the lease at once. It counts at the listed rate unless that is absurd.
    is_on_other_terms = is_sure and intent is not None and intent.tenure not in {None, row.tenure}
    is_believed = is_on_other_terms or ((is_sure or not differs) and _is_likely(row, agreed, is_sure=is_sure))
    since = min(_owed_since(row, ended, created), _present(fleet, row.market))
    suffix = f"-{fleet.now.timestamp():.0f}" if ended else ""
    lease = Lease(
        lease_id=f"{row.market}-{row.instance_id}{suffix}",
        market=row.market,
        instance_id=row.instance_id,
        slot=slot,
        tenure=row.tenure,
        state=LeaseState.STARTING,
        host_id=intent.host_id if intent and host.is_used_before(row.host_id) else row.host_id,
        owner_id=row.owner_id,
        offer_id=intent.offer_id if intent else "",
        gpu=row.gpu,
        gpus=row.gpus,
        dlperf=row.dlperf,
        gpu_rate=max(row.gpu_rate, agreed) if is_believed else agreed,
        agreed_rate=agreed,
        agreed_until=since if _is_unpriced(row, agreed) else None,
        disk_rate=row.disk_rate,
        disk_gb=row.disk_gb,
        opened_at=min(created, since),
        state_since=min(created, since),
        bills=Bills.GPU_AND_DISK if row.bills_gpu else Bills.DISK,
        accrued_until=since,
        intent_id=intent.intent_id if intent else "",
        guard_run=intent.guard_run if intent and intent.slot == slot else None,
        guard_terms=intent.guard_terms if intent and intent.slot == slot else None,
        host_floor=row.floor,
        ends_at=row.ends_at,
        runs=int(row.state is InstanceState.RUNNING),
        run_since=since if row.state is InstanceState.RUNNING else None,
        has_failed=is_sure,
        end_reason=readback.end_reason(row, differs) if is_sure else "",
    )
    lease = _under_limit(lease if past is None else _continued(lease, past), row)
    return _as_asked(lease, intent) if intent is not None and differs and not is_sure else _read_back(fleet, lease, row)


def _is_unpriced(row: Instance, agreed: UsdPerHour) -> bool:
    """Return whether neither the row nor a record of ours has a price: its whole time is owed once one is read."""
    return agreed == FREE and "gpu_rate" in row.unread and row.bill is None


def _owed_since(row: Instance, ended: Lease | None, created: datetime) -> datetime:
    """Return since when an instance costs something: since its creation, or what came after its ended lease.

    Its market may take back that it is over. If it still called it over long after the lease had ended, the end was
    right, and only the time since that look is in doubt.
    """
    if ended is None:
        return created
    since, over_at = max(ended.accrued_until, created), row.was_over_at
    return max(since, over_at) if over_at is not None and over_at - ended.accrued_until >= OVER_LONG else since


def _present(fleet: Fleet, market: str) -> datetime:
    """Return the present time by the market's clock if that is ahead of ours, else by ours.

    While our clock is a day behind, what was made today is no day old as soon as the clock is put right.
    """
    view = fleet.markets.get(market)
    return fleet.now + timedelta(seconds=max(view.clock_skew_seconds, 0.0) if view is not None else 0.0)


def _under_limit(lease: Lease, row: Instance) -> Lease:
    """Return a lease as it is, or at the listed price, up to its limit, where the price paid is not the bid."""
    if row.limit is None:
        return lease
    paid = min(row.gpu_rate, row.limit)
    return msgspec.structs.replace(lease, gpu_rate=paid, agreed_rate=None, bid_limit=row.limit)


def _continued(lease: Lease, past: Lease) -> Lease:
    """Return the new lease with the history of the instance's ended lease, since it may hold hours of work."""
    if past.is_reassigned and past.slot == lease.slot:
        # Its label is of another slot's rent, which says nothing about its present run.
        lease = msgspec.structs.replace(lease, intent_id=past.intent_id, label_intent_id=past.label_intent_id)
        lease = msgspec.structs.replace(lease, guard_run=past.guard_run, guard_terms=past.guard_terms)
    return msgspec.structs.replace(
        lease,
        has_run=past.has_run,
        runs=past.runs + lease.runs,
        guard_terms=past.guard_terms if past.guard_run == lease.guard_run else lease.guard_terms,
        traffic_down_gb=past.traffic_down_gb,
        traffic_up_gb=past.traffic_up_gb,
    )


def _read_back(fleet: Fleet, lease: Lease, row: Instance) -> Lease:
    """Return the lease as read back if the listing shows it as ordered: a later difference is a change."""
    view = fleet.markets.get(row.market)
    is_shown = readback.is_readable(row) and not readback.difference(readback.of_lease(lease), row)
    return msgspec.structs.replace(lease, read_back_at=view.listed_at) if view is not None and is_shown else lease


def _is_likely(row: Instance, agreed: UsdPerHour, *, is_sure: bool) -> bool:
    """Return whether a row's rate is a likely one, not an absurd rise over the agreed rate."""
    return row.gpu_rate <= agreed.scaled(agreed_rate.QUICK_RISE if is_sure else agreed_rate.MOST_RISE)


def _of_this(ended: Lease | None, created: datetime) -> Lease | None:
    """Return the ended lease, or None if it ended before the instance was made: then a reply had only named its id."""
    return ended if ended is not None and created <= (ended.ended_at or ended.accrued_until) else None


def _difference(fleet: Fleet, row: Instance, intent: Intent | None) -> tuple[str, bool]:
    """Return how a row differs from the order, and whether a look by its id also shows a difference."""
    if intent is None:
        return "", False
    asked, view = readback.of_intent(intent), fleet.markets.get(row.market)
    again = view.looked_rows.get(row.instance_id) if view is not None else None
    differs = readback.difference(asked, row)
    return differs, bool(differs and again is not None and readback.difference(asked, again))


def _as_asked(lease: Lease, intent: Intent) -> Lease:
    asked = readback.of_intent(intent)
    host_id, disk_gb = asked.host_id or lease.host_id, asked.disk_gb or lease.disk_gb
    lease = msgspec.structs.replace(lease, gpu=asked.gpu or lease.gpu, gpus=asked.gpus or lease.gpus)
    return msgspec.structs.replace(lease, tenure=asked.tenure or lease.tenure, host_id=host_id, disk_gb=disk_gb)


def _agreed(fleet: Fleet, row: Instance, slot: Slot, intent: Intent | None, past: Lease | None) -> UsdPerHour:
    """Return the agreed rate of an adopted instance's GPUs.

    Without a record of ours it is the listed rate, up to the price of the workload: no daemon of this fleet rents for
    more. A higher price is doubted until a look by id agrees (rule 21). What is stopped without a readable price has
    the price of the workload: its start must not pass the caps as if it cost nothing.
    """
    if past is not None:
        return past.agreed
    if intent is None or intent.kind is not IntentKind.RENT:
        work = fleet.workload(slot.workload)
        most = row.gpu_rate if work is None else max(FREE, work.price_of(row.gpu) - row.disk_rate)
        return most if "gpu_rate" in row.unread and not row.bills_gpu else min(row.gpu_rate, most)
    return intent.price if intent.price is not None else max(FREE, intent.rate - row.disk_rate)
