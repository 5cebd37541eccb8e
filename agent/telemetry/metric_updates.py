"""The moments at which metrics change: after a cycle, after an intent, after spending."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta

from prometheus_client import CollectorRegistry

from agent.domain.fleet import Fleet
from agent.domain.market.interruption import Cause, Loss
from agent.domain.market.tenure import Tenure
from agent.domain.money import ZERO, Usd, UsdPerHour, total_rate
from agent.domain.record import hold
from agent.domain.record.hold import Word
from agent.domain.record.intent import Intent, IntentState
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.slot import Slot
from agent.domain.work import decision as decisions
from agent.domain.work import usefulness
from agent.domain.work.workload import Workload
from agent.telemetry import (
    first_samples,
    lead_metrics,
    metric_families,
    named_metrics,
    recovery_metrics,
    run_time_metrics,
)

_CODE = re.compile(r"[a-z][a-z0-9_]{0,47}")
_MOST_CODES = 64

FLAPPING_LOSSES = 3
FLAPPING_WITHIN = timedelta(days=1)


class Codes:
    """Limits a label to machine codes, and to a bounded number of them, since installed strategies name reasons too."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._seen = set(known)

    def __call__(self, code: str) -> str:
        """Return the code, or "other" for a text that is no code or one code too many."""
        if code in self._seen:
            return code
        if len(self._seen) >= _MOST_CODES or not _CODE.fullmatch(code):
            return "other"
        self._seen.add(code)
        return code


class Metrics(metric_families.Families):
    """The metrics of the program, with a method for each moment at which they change."""

    def __init__(self, target: CollectorRegistry, markets: Iterable[str], workloads: Iterable[str]) -> None:
        """Register everything with `target`, at zero for these markets and workloads."""
        self._markets, self._workloads = tuple(markets), frozenset(workloads)
        super().__init__(target)
        first_samples.make(self, self._markets, sorted(self._workloads))
        self._outcome = Codes(metric_families.OUTCOMES)
        self._reason = Codes()
        self._limit = Codes(metric_families.LIMITS)
        self._asks: dict[tuple[str, str], float] = {}
        self.named = named_metrics.NamedFigures(target)
        self.lead = lead_metrics.LeadFigures(target)
        self.run_times = run_time_metrics.RunTimeFigures(target)

    def observer(self, market: str) -> Callable[[str, str, float], None]:
        """Return the observer of every call to `market`: operation, outcome, seconds."""

        def called(operation: str, outcome: str, seconds: float) -> None:
            self.market_requests.labels(market, operation, self._outcome(outcome)).inc()
            self.market_request_duration.labels(market, operation).observe(seconds)

        return called

    def see_fleet(self, fleet: Fleet, owed: tuple[Usd, Usd] = (ZERO, ZERO), stopped: Collection[Slot] = ()) -> None:
        """Write the fleet after a cycle.

        `owed` is the cost of today and of this month that is not metered yet. A person keeps the `stopped` slots empty.
        """
        for name, view in fleet.markets.items():
            self.market_available.labels(name).set(view.is_fresh)
            self.clock_skew.labels(name).set(view.clock_skew_seconds)
            for tenure in (Tenure.INTERRUPTIBLE, Tenure.ON_DEMAND):
                self.capability.labels(name, tenure.value).set(tenure not in view.not_sold)
            if view.listed_at is not None:
                self.market_view_timestamp.labels(name).set(view.listed_at.timestamp())
            if view.credit is not None:
                self.credit.labels(name).set(view.credit.dollars)
        self._forget_removed(fleet)
        self._see_leases(fleet)
        self._see_held(fleet, stopped)
        self._see_rests(fleet)
        self.named.see(fleet)
        self.orphans.set(sum(lease.is_held for lease in fleet.leases if lease.is_open))
        doubts = [intent for intent in fleet.intents if intent.state is IntentState.IN_DOUBT]
        self.in_doubt.set(len(doubts))
        began = [intent.doubted_at or intent.sent_at or intent.recorded_at for intent in doubts]
        self.oldest_doubt.set(min(began).timestamp() if began else 0)
        self.spent.labels("day").set((fleet.spend.today + owed[0]).dollars)
        self.spent.labels("month").set((fleet.spend.month + owed[1]).dollars)

    def see_unaccounted(self, unaccounted: Mapping[str, tuple[int, int]]) -> None:
        """Write by market the number of listed instances of ours without an account, and of listings."""
        for market, (count, listings) in unaccounted.items():
            self.unaccounted.labels(market).set(count)
            self.unaccounted_listings.labels(market).set(listings)

    def see_kill(self, remaining: int, given_at: datetime | None) -> None:
        """Write the number of leases, instances and doubts that a kill has not ended yet, and the time of the kill."""
        self.after_kill.set(remaining)
        self.kill_timestamp.set(given_at.timestamp() if given_at else 0)

    def _forget_removed(self, fleet: Fleet) -> None:
        """Remove the gauges of workloads that the fleet no longer has. Their counters stay: a counter never falls."""
        present = frozenset(work.name for work in fleet.workloads)
        for workload in self._workloads - present:
            for gauge in (*self.by_workload, self.floor, self.ask):
                gauge.remove_by_labels({"workload": workload})
        self._workloads = present

    def _see_rests(self, fleet: Fleet) -> None:
        cooling = [rest.kind.value for rest in fleet.cooldowns if not rest.is_over(fleet.now)]
        for name in metric_families.PROTECTIONS:
            self.protections.labels(name).set(cooling.count(name))

    def _see_leases(self, fleet: Fleet) -> None:
        self.leases.clear()
        for name in fleet.markets:
            for state in LeaseState:
                for tenure in (Tenure.INTERRUPTIBLE, Tenure.ON_DEMAND):
                    self.leases.labels(name, tenure.value, state.value)
        leases = [lease for lease in fleet.leases if lease.is_open]
        for lease in leases:
            self.leases.labels(lease.market, lease.tenure.value, lease.state.value).inc()
        for work in fleet.workloads:
            running = [
                lease for lease in leases if lease.slot.workload == work.name and lease.state is LeaseState.RUNNING
            ]
            self.slots_wanted.labels(work.name).set(work.slots - len(_under(Word.DONE, fleet, work)))
            self.slots_running.labels(work.name).set(len({lease.slot for lease in running}))
            self.headroom.labels(work.name).set(_headroom(running))
            self._see_usefulness(fleet, work, running)
        doubted = [
            intent.rate for intent in fleet.intents if intent.state is IntentState.IN_DOUBT and not intent.lease_id
        ]
        volumes = [volume.rate for volume in fleet.volumes.values() if volume.workloads]
        self.spend_rate.set(total_rate([*(lease.billing_rate for lease in leases), *doubted, *volumes]).dollars)

    def _see_usefulness(self, fleet: Fleet, work: Workload, running: list[Lease]) -> None:
        ready = {lease.slot for lease in running if usefulness.is_useful(lease, work)}
        idle = {lease.slot for lease in running if usefulness.is_idle(lease, work, fleet.now)}
        self.slots_ready.labels(work.name).set(len(ready))
        self.slots_idle.labels(work.name).set(len(idle))
        self.slots_stalled.labels(work.name).set(len({lease.slot for lease in running if lease.stalled_since}))

    def _see_held(self, fleet: Fleet, stopped: Collection[Slot]) -> None:
        for work in fleet.workloads:
            mine = {place for place in stopped if place.workload == work.name}
            left = mine.difference(_under(Word.DONE, fleet, work))
            self.slots_held.labels(work.name).set(len(left.union(_under(Word.HELD, fleet, work))))

    def see_intents(self, ended: Iterable[Intent]) -> None:
        """Count intents that ended."""
        for intent in ended:
            if not intent.is_open:
                self.intents.labels(intent.kind.value, intent.state.value).inc()

    def see_decisions(self, planned: Iterable[decisions.Decision]) -> None:
        """Count decisions, and those that a limit forbade."""
        for decision in planned:
            self.decisions.labels(type(decision).__name__.lower(), self._reason(decision.reason.code)).inc()
            if decision.reason.limit:
                self.limits_struck.labels(self._limit(decision.reason.limit)).inc()

    def see_spares(self, fleet: Fleet, planned: Iterable[decisions.Decision]) -> None:
        """Write the spare slots that stay empty by choice."""
        holds = [
            each.slot for each in planned if isinstance(each, decisions.Hold) and each.reason.code == decisions.SPARE
        ]
        taken = {lease.slot for lease in fleet.leases if lease.is_open}
        for work in fleet.workloads:
            empty = [slot for slot in holds if slot.workload == work.name and slot not in taken]
            self.slots_spare.labels(work.name).set(len(empty))

    def see_shadow(
        self, workload: str, strategy: str, spent: Usd, useful_seconds: float, losses: int, kinds: Iterable[str]
    ) -> None:
        """Count the figures of a shadow; a correction downwards shows in the ledger only."""
        self.shadow_spend.labels(workload, strategy).inc(max(spent.dollars, 0.0))
        self.shadow_useful.labels(workload, strategy).inc(max(useful_seconds, 0.0))
        self.shadow_interruptions.labels(workload, strategy).inc(losses)
        for kind in kinds:
            self.shadow_decisions.labels(workload, strategy, kind).inc()

    def see_interruption(self, workload: str, market: str, cause: Cause) -> None:
        """Count a loss."""
        self.interruptions.labels(workload, market, cause.value).inc()

    def see_faults(self, at_fault: Collection[str], markets: Iterable[str]) -> None:
        """Write which markets lost several leases from one listing."""
        for name in markets:
            self.market_fault.labels(name).set(name in at_fault)

    def see_flapping(self, losses: Iterable[Loss], now: datetime) -> None:
        """Write how many hosts interrupted us three times or more within the last day, from the ledger."""
        recent = [loss for loss in losses if now - loss.at < FLAPPING_WITHIN]
        counts = Counter((loss.market, loss.host_id) for loss in recent)
        for market in self._markets:
            often = [times for (where, _), times in counts.items() if where == market and times >= FLAPPING_LOSSES]
            self.flapping.labels(market).set(len(often))

    def see_recovery(self, reached: Iterable[recovery_metrics.ReachedPhase]) -> None:
        """Count how long slots took to reach phases of recovery; the exemplar names the intent in the ledger."""
        for each in reached:
            exemplar = {"intent_id": each.intent_id} if each.intent_id else None
            self.recovery.labels(each.phase).observe(each.seconds, exemplar)

    def see_prices(
        self, market: str, workload: str, floor: UsdPerHour | None, ask: UsdPerHour | None, *, is_answered: bool
    ) -> None:
        """Write the cheapest offers that fit a workload. A figure without an offer is removed if a search was answered.

        Without an answer it stays: no offer was looked for.
        """
        for family, price in ((self.floor, floor), (self.ask, ask)):
            if price is not None:
                family.labels(market, workload).set(price.dollars)
            elif is_answered:
                family.remove(market, workload)
        if ask is not None:
            self._asks[market, workload] = ask.dollars
            # From zero, so that a rate counts from the first price on.
            self.on_demand_worth.labels(workload)

    def see_notification(self, channel: str, is_delivered: bool) -> None:  # noqa: FBT001 - what a channel answers
        """Count an attempt to send a notification."""
        self.notifications.labels(channel, metric_families.DELIVERIES[not is_delivered]).inc()

    def see_ledger(self, size_bytes: int, free_bytes: int, backed_up: datetime | None, *, is_writable: bool) -> None:
        """Write the state of the ledger's file."""
        self.ledger_writable.set(is_writable)
        self.ledger_bytes.set(size_bytes)
        self.ledger_disk_free.set(free_bytes)
        self.backup_timestamp.set(backed_up.timestamp() if backed_up else 0)

    def see_charge(self, workload: str, market: str, tenure: Tenure, amount: Usd) -> None:
        """Count money spent; a correction downwards shows in the ledger only, a counter never falls."""
        if amount.micros > 0:
            self.spend.labels(workload, market, tenure.value).inc(amount.dollars)

    def see_useful(self, workload: str, seconds: float) -> None:
        """Count running time that survived, and its on-demand cost once such a price was seen."""
        self.useful.labels(workload).inc(max(0.0, seconds))
        asks = [rate for (_, asked), rate in self._asks.items() if asked == workload]
        if asks:
            self.on_demand_worth.labels(workload).inc(max(0.0, seconds) / 3600 * min(asks))

    def see_paid(self, workload: str, phases: Mapping[str, float]) -> None:
        """Count paid seconds by phase."""
        for phase, seconds in phases.items():
            self.paid.labels(workload, phase).inc(max(0.0, seconds))

    def see_risks(self, workloads: Iterable[str], endangered: Collection[str]) -> None:
        """Write which workloads have a deadline at risk."""
        for workload in workloads:
            self.deadline_at_risk.labels(workload).set(workload in endangered)

    def see_cycle(self, seconds: float, ended_at: datetime, *, is_good: bool) -> None:
        """Count a cycle."""
        self.cycle_duration.observe(seconds)
        if is_good:
            self.cycle_success.set(ended_at.timestamp())
        else:
            self.cycles_failed.inc()

    def see_caps(self, per_hour: UsdPerHour | None, per_day: Usd | None, per_month: Usd | None) -> None:
        """Write the limits; a limit that is not set is 0."""
        self.budget_rate.set(per_hour.dollars if per_hour is not None else 0)
        self.budget.labels("day").set(per_day.dollars if per_day is not None else 0)
        self.budget.labels("month").set(per_month.dollars if per_month is not None else 0)

    def see_purse(self, used: Iterable[tuple[tuple[str, str, str, str], float]], lasts: Mapping[str, float]) -> None:
        """Write the used share of each threshold (scope, name, window, level), and how long credit lasts by market."""
        self.budget_used.clear()
        for labels, share in used:
            self.budget_used.labels(*labels).set(share)
        self.credit_lasts.clear()
        for market, seconds in lasts.items():
            self.credit_lasts.labels(market).set(seconds)

    def see_drifts(self, shares: Mapping[str, float]) -> None:
        """Write the share by which each market charged more than the ledger counted, on its last compared day."""
        self.drift.clear()
        for market, share in shares.items():
            self.drift.labels(market).set(share)

    def see_reload(self, at: datetime, *, is_good: bool) -> None:
        """Write whether the configuration in use is the one in the files."""
        self.reload_success.set(is_good)
        if is_good:
            self.reload_timestamp.set(at.timestamp())


def _under(word: Word, fleet: Fleet, work: Workload) -> list[Slot]:
    """Return the slots of a workload under a hold of that word, on their own or with their workload."""
    targets = {each.target for each in fleet.holds if each.word is word and not each.is_over(fleet.now)}
    return [place for place in work.places if {hold.of_slot(place), hold.of_workload(work.name)} & targets]


def _headroom(running: Iterable[Lease]) -> float:
    shares = [
        lease.bid.micros / lease.host_floor.micros - 1
        for lease in running
        if lease.tenure is Tenure.INTERRUPTIBLE and lease.host_floor is not None and lease.host_floor.micros > 0
    ]
    return sum(shares) / len(shares) if shares else 0.0
