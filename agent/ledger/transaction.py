"""A transaction: facts gathered in memory, checked against the memory, and committed together or not at all.

1. Nothing reaches SQLite before the block ends, so no SQL transaction is open while something else is awaited.
2. A fact that breaks a rule of the domain is refused when it is added, not at the commit.
3. A fact that is already recorded changes nothing. A transaction without changes needs no SQL.
"""

import dataclasses
import datetime as dt
from collections.abc import Iterable

import msgspec

from agent.domain.market.capacity import Capacity
from agent.domain.market.interruption import Cause
from agent.domain.market.market_notice import NoticeGiven
from agent.domain.market.offer import Offer
from agent.domain.market.price import PriceSample
from agent.domain.market.tenure import Tenure
from agent.domain.money import Usd
from agent.domain.record import lease as leases_domain
from agent.domain.record.event import Event
from agent.domain.record.expiring_record import ExpiringRecord, outlasts
from agent.domain.record.guard_figures import GuardFigures
from agent.domain.record.guard_run import GuardRun
from agent.domain.record.host_check import HostCheck
from agent.domain.record.intent import Intent, IntentState
from agent.domain.record.lease import Lease
from agent.domain.record.paid_time import Phases
from agent.domain.record.shadow_account import ShadowAccount, ShadowDecision
from agent.domain.work.deadline import Progress, Speed
from agent.domain.work.sign_of_life import KeptSign
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.single_fact_writes import SingleFactWrites
from agent.ledger.tables import (
    decisions,
    event_rows,
    expiring_rows,
    guard_rows,
    host_rows,
    intent_rows,
    lease_rows,
    market_bills,
    phase_rows,
    pool_rows,
    price_history,
    progress_rows,
    search_history,
    shadow_rows,
    spend_rows,
)
from agent.ledger.tables.decisions import RecordedDecision
from agent.ledger.tables.host_rows import Exposure
from agent.ledger.tables.market_bills import BillLine
from agent.ledger.tables.spend_rows import SpendEntry


class Transaction(SingleFactWrites):
    """The content of one commit. Get one from `Ledger.transaction()`; its methods do not wait."""

    def record_intent(self, intent: Intent) -> None:
        """Record an intent before it is sent.

        Raises:
            LedgerError: SLOT_BUSY, another paying intent of the slot is open; BAD_TRANSITION, it is not new.
        """
        if intent.state is not IntentState.RECORDED or self._news.intent(intent.intent_id) is not None:
            raise LedgerError(Code.BAD_TRANSITION, f"intent {intent.intent_id} is not new: this is a defect, report it")
        if intent.kind.is_paying:
            self._refuse_busy(intent)
        self._news.intents[intent.intent_id] = intent
        self._write(intent_rows.RECORDED, intent_rows.row(intent))

    def advance_intent(
        self,
        intent_id: str,
        state: IntentState,
        *,
        at: dt.datetime,
        outcome: str = "",
        instance_id: str = "",
        lease_id: str = "",
    ) -> Intent:
        """Change an open intent to its next state and return it; empty texts change nothing.

        Raises:
            LedgerError: BAD_TRANSITION, the domain's table does not allow the change or no such intent is open.
        """
        intent = self._news.intent(intent_id)
        if intent is None:
            raise LedgerError(Code.BAD_TRANSITION, f"no open intent {intent_id}: it is resolved or was never recorded")
        learned = {"outcome": outcome, "instance_id": instance_id, "lease_id": lease_id}
        intent = intent_rows.advanced(intent, state, at, learned)
        self._news.intents[intent_id] = intent
        self._write(intent_rows.ADVANCED, {"this_intent": intent_id, **intent_rows.row(intent)})
        return intent

    def send_again(self, intent_id: str, *, at: dt.datetime) -> None:
        """Record that the request of a sent intent leaves only now: it has waited for its turn.

        Raises:
            LedgerError: BAD_TRANSITION, the intent does not count as sent any more.
        """
        intent = self._news.intent(intent_id)
        if intent is None or intent.state is not IntentState.SENT:
            raise LedgerError(Code.BAD_TRANSITION, f"intent {intent_id} is settled and may not be sent")
        later = dataclasses.replace(intent, sent_at=at)
        self._news.intents[intent_id] = later
        self._write(intent_rows.ADVANCED, {"this_intent": intent_id, **intent_rows.row(later)})

    def reopen_intent(self, intent: Intent, *, at: dt.datetime, outcome: str) -> None:
        """Put a resolved rent in doubt again, because its answer named a foreign instance.

        If another paying intent of its slot is open, it stays resolved: the slot is blocked already, and its instance
        is still found by its label.

        Raises:
            LedgerError: BAD_TRANSITION, the domain's table does not allow the change.
        """
        if any(other.slot == intent.slot and other.kind.is_paying for other in self._news.open_intents()):
            return
        doubted = intent_rows.advanced(intent, IntentState.IN_DOUBT, at, {"outcome": outcome})
        doubted = dataclasses.replace(doubted, resolved_at=None, instance_id="", lease_id="")
        self._news.intents[intent.intent_id] = doubted
        self._write(intent_rows.ADVANCED, {"this_intent": intent.intent_id, **intent_rows.row(doubted)})

    def move_intent(self, intent: Intent) -> None:
        """Write an open intent under the slot that it has now, that of its renamed workload.

        A second open paying intent of a slot is a CONFLICT at the commit.
        """
        self._news.intents[intent.intent_id] = intent
        self._write(intent_rows.ADVANCED, {"this_intent": intent.intent_id, **intent_rows.row(intent)})

    def open_lease(self, lease: Lease) -> None:
        """Record a new lease.

        Raises:
            LedgerError: BAD_TRANSITION, a lease of that id is open; CONFLICT at the commit, its instance has a lease.
        """
        if self._news.lease(lease.lease_id) is not None:
            raise LedgerError(Code.BAD_TRANSITION, f"lease {lease.lease_id} is open: this is a defect, report it")
        self._news.leases[lease.lease_id] = lease
        self._write(lease_rows.OPENED, lease_rows.row(lease))

    def update_lease(self, lease: Lease) -> None:
        """Record a changed lease; an unchanged one is not written.

        Raises:
            LedgerError: BAD_TRANSITION, the domain's table does not allow the change of state or the lease is not open.
        """
        known = self._news.lease(lease.lease_id)
        if known is None:
            raise LedgerError(Code.BAD_TRANSITION, f"no open lease {lease.lease_id}: it has ended or was never opened")
        if lease.ended_at is not None and lease.ended_at < lease.opened_at:
            # The machine's clock was set back in between.
            lease = msgspec.structs.replace(lease, ended_at=lease.opened_at)
        if known == lease:
            return
        if lease.state is not known.state and lease.state not in leases_domain.ALLOWED[known.state]:
            raise LedgerError(
                Code.BAD_TRANSITION,
                f"lease {lease.lease_id} is {known.state.value} and may not become {lease.state.value}: this is a "
                "defect, report it",
            )
        self._news.leases[lease.lease_id] = lease
        self._write(lease_rows.UPDATED, {"this_lease": lease.lease_id, **lease_rows.row(lease)})

    def append_event(self, event: Event) -> None:
        """Record an event."""
        self._write(event_rows.APPENDED, event_rows.row(event))
        loss = event_rows.loss_of(event)
        if loss is not None:
            self._news.losses.append(loss)
        start = progress_rows.start_of(event, self._news.lease(event.lease_id))
        if start is not None:
            self._news.starts.append(start)

    def keep_progress(self, progress: Progress) -> None:
        """Store the progress of a workload in place of the earlier report."""
        self._news.progress[progress.workload] = progress
        self._write(progress_rows.KEPT, progress_rows.row(progress))

    def begin_run(self, run: GuardRun) -> None:
        """Record a new run of a slot; CONFLICT at the commit if it was begun before."""
        self._news.guard_runs.append(run)
        self._write(guard_rows.BEGUN, guard_rows.row(run))

    def take_run(self, run: GuardRun) -> None:
        """Record a run that an earlier ledger began, in place of one of its number that never had a lease."""
        self._news.guard_runs.append(run)
        self._write(guard_rows.TAKEN, guard_rows.row(run))

    def keep_guard_figures(self, figures: GuardFigures) -> None:
        """Store the figures of a lease's guard in place of its earlier ones."""
        self._news.guard_figures.append(figures)
        self._write(guard_rows.MEASURED, guard_rows.figures_row(figures))

    def keep_host_check(self, check: HostCheck) -> None:
        """Store a guard's check of the host of a lease in place of its earlier one."""
        self._news.host_checks.append(check)
        self._write(guard_rows.CHECKED, dataclasses.asdict(check))

    def add_notice(self, given: NoticeGiven) -> None:
        """Store the notice before a loss to a market."""
        self._news.guard_notices.append(given)
        self._write(guard_rows.NOTICED, dataclasses.asdict(given))

    def add_speed(self, more: Speed) -> None:
        """Add to the measured speed of a workload on a GPU model."""
        known = self._news.speed(more.workload, more.gpu) or Speed(more.workload, more.gpu)
        hours, running = known.hours + more.hours, known.running_hours + more.running_hours
        whole = Speed(more.workload, more.gpu, hours, running)
        self._news.speeds[more.workload, more.gpu] = whole
        self._write(progress_rows.MEASURED, progress_rows.row(whole))

    def add_spend(self, entry: SpendEntry) -> None:
        """Add to the cost of a lease on a UTC day."""
        if entry.is_empty:
            return
        self._news.spend.append(entry)
        self._write(spend_rows.ADDED, spend_rows.row(entry))

    def add_phases(self, tenure: Tenure, part: Phases) -> None:
        """Add to the phases of a lease's paid time, then move the corrected time."""
        if part.paid or part.paused_disk.micros:
            self._write(phase_rows.ADDED, phase_rows.row(tenure, part))
        for statement, moved in phase_rows.moves(tenure, part):
            self._write(statement, moved)

    def add_loss(self, lease_id: str, at: dt.datetime, cause: Cause, lost: int, *, is_measured: bool = False) -> None:
        """Store the time that an interruption wasted, in microseconds, and whether a guard measured it."""
        self._write(phase_rows.LOST, phase_rows.loss(lease_id, at, cause, lost, is_measured=is_measured))

    def forget_loss(self, lease_id: str, at: dt.datetime) -> None:
        """Remove the time that an end wasted: the work was done, so the end was none of an interruption."""
        self._write(phase_rows.NO_LOSS, {"this_lease": lease_id, "this_time": at})

    def add_estimate(self, line: BillLine) -> None:
        """Store our count of an instance's day; a later count does not replace the first."""
        self._write(market_bills.ESTIMATED, market_bills.row(line))

    def add_charged(self, market: str, day: dt.date, instance_id: str, charged: Usd, at: dt.datetime) -> None:
        """Store the market's charge for an instance's day with the estimate."""
        key = {"this_market": market, "this_day": day, "this_instance": instance_id}
        self._write(market_bills.CHARGED, {**key, "charged": charged, "charged_at": at})

    def add_expiring(self, record: ExpiringRecord) -> None:
        """Add a hold, cooldown, tally or reported threshold; a longer one is never shortened."""
        known = self._news.expiring_at(record.place)
        if known is None or not outlasts(known, record):
            self._news.expiring[record.place] = record
            self._write(expiring_rows.STORED, expiring_rows.row(record))

    def lift_expiring(self, place: tuple[str, str]) -> None:
        """End the record at a place (scope and key) at once: a person lifted it, or its ground is gone."""
        self._news.expiring[place] = None
        self._write(expiring_rows.LIFTED, expiring_rows.named(place))

    def add_host_exposure(self, more: Exposure) -> None:
        """Add to our own record of a host."""
        if more.is_empty:
            return
        record = host_rows.exposed(self._news.host(more.market, more.host_id), more)
        self._news.hosts[more.market, more.host_id] = record
        self._write(host_rows.HOST_STORED, host_rows.host_row(record))

    def keep_capacity(self, known: Capacity) -> None:
        """Store the knowledge of a pool."""
        self._news.capacity[known.market, known.pool] = known
        self._write(pool_rows.SEEN, pool_rows.row(known))

    def forget_learned(self, of_pools: Iterable[tuple[str, str]], of_hosts: Iterable[tuple[str, str]] = ()) -> None:
        """Forget the knowledge of these pools and hosts, each by market and name."""
        for place in of_pools:
            self._news.capacity[place] = None
            self._write(pool_rows.FORGOTTEN, pool_rows.named(place))
        for place in of_hosts:
            self._news.hosts[place] = None
            self._write(host_rows.HOST_FORGOTTEN, host_rows.named(place))

    def record_decision(self, decision: RecordedDecision) -> bool:
        """Record a decision if it differs from the slot's last one; return whether it did."""
        if self._news.decision(decision.slot) == decision.gist:
            return False
        self._news.decisions[decision.slot] = decision.gist
        self._write(decisions.MADE, decisions.row(decision))
        return True

    def observe_prices(self, samples: Iterable[PriceSample]) -> None:
        """Store the prices that differ from the last stored ones."""
        changed = []
        for key, sample in price_history.cheapest(samples).items():
            pair = (sample.ask, sample.floor)
            if self._news.price(key) != pair:
                self._news.prices[key] = pair
                changed.append(price_history.row(sample))
        if changed:
            self.work.append((price_history.OBSERVED, changed))

    def observe_offers(self, offers: Iterable[Offer]) -> None:
        """Store the slices of a search, and their facts besides prices."""
        self.work += search_history.kept(offers)

    def keep_sign(self, sign: KeptSign) -> None:
        """Store the last sign of life of a folder in place of the earlier one."""
        self._news.signs[sign.key] = sign
        self._write(guard_rows.SIGNED, dataclasses.asdict(sign))

    def forget_sign(self, sign: KeptSign) -> None:
        """Forget the sign of a folder that no container reads any more."""
        self._news.signs[sign.key] = None
        self._write(guard_rows.UNSIGNED, guard_rows.sign_key(sign))

    def keep_shadow(self, account: ShadowAccount, shadow_decisions: Iterable[ShadowDecision] = ()) -> None:
        """Store a shadow's figures in place of the earlier ones, and its new decisions."""
        self.work += shadow_rows.kept(account, shadow_decisions)

    def remember(self) -> None:
        """Apply the changes to the memory after the commit."""
        self._news.remember()

    def _refuse_busy(self, intent: Intent) -> None:
        for other in self._news.open_intents():
            if other.slot == intent.slot and other.kind.is_paying:
                raise LedgerError(
                    Code.SLOT_BUSY,
                    f"slot {intent.slot} has open intent {other.intent_id} ({other.kind.value}, {other.state.value}): "
                    "nothing more is paid for on it until that one is settled",
                )
