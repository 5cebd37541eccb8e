"""Rule 9: the effect of new files on running leases. A file that would orphan or end one is refused, with the fix.

Invariants:
1. Nothing here acts. A refusal is a sentence with the command that would make the change legal.
2. A change that a running guard would not receive is refused while its lease is open.
3. A lease goes on if the new file changes its image, GPU or disk, unless the workload has `on_change = "move"`.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

import msgspec

from agent.decide.limits import committed_spend as standings
from agent.decide.limits import limits
from agent.decide.operators import ending_words, guard_changes, run_time_changes
from agent.domain.fleet import Spend
from agent.domain.money import Usd
from agent.domain.record.budget import SUMS, Scope, Thresholds
from agent.domain.record.guard_run import GuardRun
from agent.domain.record.hold import OperatorHold
from agent.domain.record.intent import Intent, IntentKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.record.tally import Tally
from agent.domain.slot import Slot
from agent.domain.slot_demand import HandDemand
from agent.domain.work.only_copy import may_leave
from agent.domain.work.run_times.run_window import WindowNow
from agent.domain.work.workload import OnChange, Workload, new_names


@dataclass(frozen=True, slots=True)
class After:
    """The new files, as far as they concern leases."""

    workloads: tuple[Workload, ...]
    markets: frozenset[str]
    caps: limits.Limits
    ran_micros: Mapping[str, int] = field(default_factory=dict)
    """How long ended leases ran, by workload, as the ledger has it."""
    now: datetime | None = None
    """Up to when running leases have run; None: to their last metering, which may be five minutes ago."""
    windows: Mapping[str, WindowNow] = field(default_factory=dict)
    """Where the present instant is in the windows of each workload that has some, by name."""
    credits: Mapping[str, Usd] = field(default_factory=dict)
    """The last credit of each market's account, as the ledger has it; missing where none is known."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One effect of new files. `key` is the place in the file; a refusal keeps the old files."""

    key: str
    code: str
    sentence: str
    is_refusal: bool = True


def findings(
    after: After,
    leases: Iterable[Lease],
    standing: limits.CommittedSpend,
    before: limits.Limits | None,
    present_works: Iterable[Workload] = (),
    intents: Iterable[Intent] = (),
) -> tuple[Finding, ...]:
    """Return the effects of the files on the leases, and on the rents among `intents` that no listing has settled.

    `before` are the present caps, None if unknown. `present_works` are the present workloads, empty if unknown.
    """
    leases = tuple(leases)
    kept = _kept(leases)
    return (
        *_without_market(after, leases, intents),
        *_orphans(after, kept),
        *_rents_without_slot(after, intents),
        *_unheard(after, kept, {work.name: work for work in present_works}),
        *_over_caps(after, kept, standing, before),
        *_ended(after, kept, {work.name: work for work in present_works}),
        *(_changed(after, lease) for lease in kept if _is_changed(after, lease)),
        *_new_signs(after, kept, {work.name: work for work in present_works}),
    )


def orphaning(after: After, leases: Iterable[Lease], intents: Iterable[Intent] = ()) -> tuple[Finding, ...]:
    """Return the findings that forbid a start with the files: orphaned leases, rents without a market, unheard guards.

    A reached cap only pauses. A rent in doubt whose slot is gone forbids no start: good leases would bill unwatched,
    and what comes of that rent is held (`slotless_leases.py`).
    """
    leases = tuple(leases)
    kept = _kept(leases)
    return (*_without_market(after, leases, intents), *_orphans(after, kept), *_unheard(after, kept, {}))


def _kept(leases: Iterable[Lease]) -> list[Lease]:
    """Return the open leases that fill a slot and are to go on."""
    filling = (lease for lease in leases if lease.is_open and not lease.is_held)
    return [lease for lease in filling if lease.state is not LeaseState.RELEASING]


def _without_market(after: After, leases: Iterable[Lease], intents: Iterable[Intent]) -> Iterator[Finding]:
    """Yield what may bill on a market that the files lack. Without the market nobody lists or releases it."""
    for lease in (lease for lease in leases if lease.is_open and lease.market not in after.markets):
        bill = f"{lease.lease_id} of {lease.slot} ({lease.billing_rate}) is there"
        # A lock of the market, and no drain of the slot: the slot may be rented for on another market.
        given = f"`gpubid lock market:{lease.market}`, then `gpubid release {lease.lease_id}`"
        ends = f"write it again, and give {given}"
        if lease.state is LeaseState.RELEASING:
            bill, ends = f"{bill} until its release is proven", "write it again"
        shown = "remove it once `gpubid fleet` shows that lease no more"
        yield _market_gone(lease.market, f"{bill}; {ends}; {shown}")
    for intent in intents:
        if intent.is_open and intent.kind is IntentKind.RENT and intent.market not in after.markets:
            fix = "write it again; remove it once `gpubid fleet` shows no doubt there"
            yield _market_gone(intent.market, f"rent {intent.intent_id} for {intent.slot} is not settled; {fix}")


def _market_gone(market: str, sentence: str) -> Finding:
    return Finding(f"markets.{market}", "market_gone", f"[markets.{market}] is gone, but {sentence}")


def _orphans(after: After, kept: list[Lease]) -> Iterator[Finding]:
    works = _works_by_any_name(after.workloads)
    for lease in kept:
        name, index = lease.slot.workload, lease.slot.index
        work = works.get(name)
        bill = f"{lease.lease_id} of {lease.slot} ({lease.billing_rate})"
        if lease.market not in after.markets:
            continue
        if work is None:
            yield Finding(
                f"workloads.{name}",
                "workload_gone",
                f"is gone, but {bill} goes on; {ending_words.released(name)}; or name it in the workload that takes it "
                f'over: was = "{name}"',
            )
        elif index >= work.slots:
            yield Finding(
                f"workloads.{work.name}.slots",
                "fewer_slots",
                f"has no slot {index} any more, but {bill} goes on; {ending_words.released(str(lease.slot))}",
            )


def _rents_without_slot(after: After, intents: Iterable[Intent]) -> Iterator[Finding]:
    """Yield the unsettled rents whose slot the files lack: what comes of one would bill and fill no slot."""
    works = _works_by_any_name(after.workloads)
    for intent in intents:
        if not intent.is_open or intent.kind is not IntentKind.RENT or intent.market not in after.markets:
            continue
        work = works.get(intent.slot.workload)
        fix = (
            f"rent {intent.intent_id} for {intent.slot} is not settled; reload once `gpubid fleet` shows no doubt there"
        )
        if work is None:
            yield Finding(f"workloads.{intent.slot.workload}", "workload_gone", f"is gone, but {fix}")
        elif intent.slot.index >= work.slots:
            key, lacks = f"workloads.{work.name}.slots", f"has no slot {intent.slot.index} any more"
            yield Finding(key, "fewer_slots", f"{lacks}, but {fix}")


def _unheard(after: After, kept: list[Lease], before: Mapping[str, Workload]) -> Iterator[Finding]:
    """Yield the changes that running guards would not receive, since a container keeps the settings of its rent."""
    works = _works_by_any_name(after.workloads)
    for lease in kept:
        name = lease.slot.workload
        work = works.get(name)
        if work is None or lease.guard_run is None:
            continue
        change = guard_changes.of(lease, before.get(name), work)
        if change is not None:
            sentence = f"{change.sentence}, but the guard of {lease.lease_id} keeps the settings of its rent"
            fix = ending_words.released(str(lease.slot), is_kept=True)
            yield Finding(f"workloads.{work.name}.{change.key}", change.code, f"{sentence}; {fix}")


def _ended(after: After, kept: list[Lease], before: Mapping[str, Workload]) -> Iterator[Finding]:
    """Yield the changes of running times that would end leases now."""
    ran = run_time_changes.SoFar(after.ran_micros, after.now)
    for work in after.workloads:
        mine = [lease for lease in kept if lease.slot.workload in {work.name, work.was}]
        window = after.windows.get(work.name)
        for change in run_time_changes.of(work, before.get(work.name), mine, ran, window):
            yield Finding(f"workloads.{work.name}.{change.key}", change.code, change.sentence)


def _over_caps(
    after: After, kept: list[Lease], standing: limits.CommittedSpend, before: limits.Limits | None
) -> Iterator[Finding]:
    new, old = after.caps, before or limits.Limits()
    for scope in new.scopes():
        mine = [lease for lease in kept if scope.covers(lease)]
        yield from _over_budget(after, mine, standing.of(scope), old.hard(scope), scope)
    if new.instances is not None and new.instances != old.instances and standing.instances > new.instances:
        fix = ending_words.released(_cheapest(after, kept))
        sentence = f"{new.instances} is under the {standing.instances} that are held now; {fix}"
        yield Finding("limits.max_instances", "under_burn", sentence)
    yield from _over_credit(after, kept, old)
    for lease in kept:
        most = new.per_instance_hour
        rate = lease.gpu_rate + lease.disk_rate
        if most is not None and most != old.per_instance_hour and rate > most and not lease.is_down:
            fix = ending_words.released(str(lease.slot), is_kept=True)
            sentence = f"{most} is under the cost of {lease.lease_id}, {rate}; {fix}"
            yield Finding("limits.max_price_per_instance_hour", "under_burn", sentence)


def _over_credit(after: After, kept: list[Lease], old: limits.Limits) -> Iterator[Finding]:
    """Yield the markets whose running leases a raised floor of the credit would stop."""
    for market in sorted({lease.market for lease in kept if not lease.is_down}):
        floor, credit = after.caps.credit_floor(market), after.credits.get(market)
        if floor is None or credit is None or credit > floor or floor == old.credit_floor(market):
            continue
        place = f"markets.{market}" if market in after.caps.min_credit_of else "limits"
        sentence = f"{floor} is not under the credit of {market}, {credit}: it would stop running leases; top it up"
        yield Finding(f"{place}.min_credit", "under_burn", sentence)


def _over_budget(
    after: After, kept: list[Lease], standing: limits.CommittedSpend, old: Thresholds, scope: Scope
) -> Iterator[Finding]:
    new = after.caps.hard(scope)
    ways = ending_words.stopped(_cheapest(after, [lease for lease in kept if not lease.is_down] or kept))
    if new.per_hour is not None and new.per_hour != old.per_hour and standing.rate > new.per_hour:
        key = f"{scope.place}.max_{'per_hour' if scope.name else 'fleet_per_hour'}"
        sentence = f"{new.per_hour} is under the {standing.rate} that is committed now; {ways}"
        yield Finding(key, "under_burn", sentence)
    runs = [lease for lease in kept if not lease.is_down]
    for window in SUMS:
        cap, was, spent = new.amount(window), old.amount(window), standing.spent(window)
        if cap is not None and cap != was and spent >= cap and runs:
            sentence = f"{cap} is under the {spent} already spent: it would stop running leases; {ways}"
            yield Finding(f"{scope.place}.max_{window.value}", "under_burn", sentence)


def _cheapest(after: After, kept: list[Lease]) -> str:
    """Return the slot of the lease with the lowest priority, among equals the most expensive one."""
    priority = {work.name: work.priority for work in after.workloads}
    chosen = sorted(kept, key=lambda lease: (priority.get(lease.slot.workload, 0), -lease.committed_rate.micros))
    return str(chosen[0].slot) if chosen else "NAME"


def _is_changed(after: After, lease: Lease) -> bool:
    work = next((work for work in after.workloads if work.name == lease.slot.workload), None)
    return work is not None and bool(lease.spec_digest) and lease.spec_digest != spec_digest(work, lease.slot.index)


def _changed(after: After, lease: Lease) -> Finding:
    work = next(work for work in after.workloads if work.name == lease.slot.workload)
    what = "values, image, GPU or disk" if work.values else "image, GPU or disk"
    sentence = f"{what} differ from those that {lease.slot} runs on; {lease.lease_id} {_does(lease, work)}"
    if work.guard is not None and work.guard.is_carrying:
        sentence += "; the next lease begins a new run, without the checkpoints that the guard has kept so far"
    return Finding(f"workloads.{work.name}", "spec_changed", sentence, is_refusal=False)


def _new_signs(after: After, kept: list[Lease], before: Mapping[str, Workload]) -> Iterator[Finding]:
    """Yield the leases that work without the new sign of readiness. None of them is released for it."""
    works = _works_by_any_name(after.workloads)
    for lease in kept:
        work, old = works.get(lease.slot.workload), before.get(lease.slot.workload)
        if work is None or old is None or not work.ready.is_asked or work.ready.mark == old.ready.mark:
            continue
        if lease.state is LeaseState.RUNNING and lease.ready_since is None and lease.may_have_worked:
            sentence = f"{lease.lease_id} of {lease.slot} works without this sign, and goes on if it never shows"
            fix = f"`gpubid release {lease.slot}` rents anew"
            yield Finding(f"workloads.{work.name}.ready", "new_sign", f"{sentence}; {fix}", is_refusal=False)


def _does(lease: Lease, work: Workload) -> str:
    """Return whether a lease of an older spec moves or goes on, and the setting or command that changes that."""
    if moves(lease, work):
        return "moves to a new one"
    if work.on_change is OnChange.MOVE and not may_leave(lease, work):
        allow = f'at = "remote" in [workloads.{work.name}.checkpoint] or may_lose_disk = true'
        return f"is not moved, because its disk may hold the only checkpoint; {allow} lets it move"
    if work.on_change is OnChange.MOVE:
        return f"moves to a new one once it runs again; `gpubid release {lease.slot}` is sooner"
    return f'goes on with the old until it ends; on_change = "move" or `gpubid release {lease.slot}`'


def spec_digest(work: Workload, index: int = 0) -> str:
    """Return the digest of the spec that a slot's running lease cannot change: image, GPU, disk and its own values."""
    wants = work.requirements
    spec: tuple[object, ...] = (work.image, wants.gpus, sorted(wants.gpu_models), float(work.disk_gb))
    spec = (*spec, work.values_of(index)) if work.values else spec
    return hashlib.sha256(repr(spec).encode()).hexdigest()[:16]


def moves(lease: Lease, work: Workload) -> bool:
    """Return whether a running lease of an older spec is replaced by a new one."""
    if work.on_change is not OnChange.MOVE or lease.state is not LeaseState.RUNNING:
        return False
    return (
        bool(lease.spec_digest) and lease.spec_digest != spec_digest(work, lease.slot.index) and may_leave(lease, work)
    )


def rented_for(lease: Lease, work: Workload | None) -> Lease:
    """Return the lease of a rent with the digest of the workload's spec at the rent."""
    return (
        lease
        if work is None or lease.spec_digest
        else msgspec.structs.replace(lease, spec_digest=spec_digest(work, lease.slot.index))
    )


def under_present_name(lease: Lease, workloads: Iterable[Workload], runs: Iterable[GuardRun] = ()) -> Lease:
    """Return a lease under the present name of its workload, with a missing digest of its spec added.

    The digest is that of its guard's run, among `runs`; without a run that digest is unknown, and the present file's is
    used. The terms of its guard are never added, because the lease may have been rented under other files.
    """
    names = {work.name: work for work in workloads}
    name = lease.slot.workload
    if name not in names:
        name = new_names(names.values()).get(name, name)
    work = names.get(name)
    if work is None:
        return lease
    if lease.slot.workload == name and lease.spec_digest:
        return lease
    digests = (run.spec_digest for run in runs if (run.slot, run.run) == (lease.slot, lease.guard_run))
    digest = lease.spec_digest or next(digests, "") or spec_digest(work, lease.slot.index)
    return msgspec.structs.replace(lease, slot=Slot(name, lease.slot.index), spec_digest=digest)


def renamed_holds(holds: Iterable[OperatorHold], workloads: Iterable[Workload]) -> Mapping[OperatorHold, OperatorHold]:
    """Return each hold on a workload's old name with its copy under the new name."""
    names = new_names(workloads)
    return {
        each: replace(each, target=each.target.renamed(names[each.target.workload]))
        for each in holds
        if each.target.workload in names
    }


def renamed_tallies(tallies: Iterable[Tally], workloads: Iterable[Workload]) -> Mapping[Tally, Tally]:
    """Return each tally for a workload's old name, or for a slot of it, with its copy under the new name."""
    names = new_names(workloads)
    mine = [each for each in tallies if each.workload in names]
    return {each: replace(each, of=names[each.workload] + each.of[len(each.workload) :]) for each in mine}


def renamed_demands(
    demands: Mapping[str, HandDemand], workloads: Iterable[Workload], now: datetime
) -> tuple[HandDemand, ...]:
    """Return each demand by a person that is in force for a workload's old name: ended there, and under the new one."""
    names = new_names(workloads)
    mine = [each for name, each in demands.items() if name in names and each.until > now]
    return tuple(
        demand for each in mine for demand in (replace(each, until=now), replace(each, workload=names[each.workload]))
    )


def renamed_intents(intents: Iterable[Intent], workloads: Iterable[Workload]) -> tuple[Intent, ...]:
    """Return each open intent of a workload's old name under the new name, so that its doubt blocks its slot there.

    A paying one stays under its old name while another blocks its slot.
    """
    names, mine = new_names(workloads), [each for each in intents if each.is_open]
    busy = {each.slot for each in mine if each.kind.is_paying}
    renamed = (
        replace(each, slot=Slot(names[each.slot.workload], each.slot.index))
        for each in mine
        if each.slot.workload in names
    )
    return tuple(each for each in renamed if not each.kind.is_paying or each.slot not in busy)


def _works_by_any_name(workloads: Iterable[Workload]) -> Mapping[str, Workload]:
    """Return the workloads by their names, and the renamed ones also by their old names."""
    works = {work.name: work for work in workloads}
    return {was: works[name] for was, name in new_names(works.values()).items()} | works


def present(
    leases: Iterable[Lease],
    intents: Iterable[Intent],
    spend: Spend,
    now: datetime,
    spend_of: Mapping[Scope, Spend] | None = None,
) -> limits.CommittedSpend:
    """Return the committed spend at `now`, from the ledger's knowledge."""
    return standings.committed(leases, intents, spend, spend_of or {}, now)
