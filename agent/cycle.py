"""One pass: observe, reconcile, record, plan, act. Start-up and crash recovery are this same pass."""

import contextlib
import operator
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from agent.act import observed_facts, protection_cooldowns, record, second_daemon, shadow_ledgers
from agent.act.executor import Executor
from agent.act.guarding import guard_orders
from agent.act.guarding.guard_orders import GuardOrders
from agent.act.volumes import account_keeping
from agent.clock import Clock
from agent.decide import first_sights, needs, plan
from agent.decide.deadline import progress_facts
from agent.decide.facts import Alert, Fact
from agent.decide.limits import budget_alerts, credit_watch, limits, risk
from agent.decide.moves import due_endings, front_drain, immediate_endings
from agent.decide.operators.told_alerts import ToldAlerts
from agent.decide.reconcile import billed_times, reconcile
from agent.decide.reconcile.guards import checkpoint_proofs, guard_measurements, host_checks
from agent.decide.reconcile.pass_memory import Memory
from agent.decide.reconcile.probes import probing
from agent.decide.strategy import Tuned
from agent.domain.fleet import Fleet
from agent.domain.market.gpu import GpuModel
from agent.domain.record.intent import Intent, IntentState
from agent.domain.work.decision import Decision, Pause, Release
from agent.domain.work.workload import Workload
from agent.front.front_writer import FrontReports, FrontWriter
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.memory import Recollection
from agent.ledger.store import Ledger
from agent.observe import checkpoint_audit, guard_reader, missed_records, snapshot
from agent.observe.checkpoint_audit import CheckpointAudit, Proofs
from agent.observe.demand.demand_reader import DemandReader, DemandReports
from agent.observe.guard_reader import GuardReader, Reports
from agent.observe.idle_slots import IdleSlots
from agent.observe.interruptible_reading import InterruptibleReading
from agent.observe.poller import Poller
from agent.observe.task_estimates import TaskEstimates, TaskFigures

Witness = Callable[[Fleet, Mapping[str, Tuned], limits.Limits, frozenset[str], plan.Plan], None]
"""Callback that receives every plan with its inputs. It must not change them."""
SECOND_LOOK_SECONDS = 1.0
"""Time between the listing that misses a lease and the next one: the market allows one a second."""
SLOW_SECONDS = 60.0
"""A cycle that has read for this long sends the due endings before it reads on (rule 20)."""

NOTHING_TOLD: Mapping[str, Any] = {}
UNREAD = (frozenset[str](), frozenset[str]()), snapshot.Past()
"""The history of no instance."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The operator's files; swapped as a whole on reload."""

    workloads: tuple[Workload, ...]
    tuned: Mapping[str, Tuned]
    caps: limits.Limits
    poll: timedelta


@dataclass(frozen=True, slots=True)
class Pass:
    """The results of one cycle: the fleet that it saw, its facts, its plan and the intents that it carried out."""

    fleet: Fleet
    facts: tuple[Fact, ...]
    plan: plan.Plan
    done: tuple[Intent, ...]
    news: tuple[Decision, ...] = ()
    risks: risk.Risks = field(default_factory=dict)
    beside: tuple[shadow_ledgers.Seen, ...] = ()
    alerts: tuple[Alert, ...] = ()
    """Every alert of this pass, also one that was sent before."""

    @property
    def is_busy(self) -> bool:
        """Whether the next cycle should follow soon, because a write was confirmed whose effect is worth seeing.

        A write that the market refused, or left without an answer, is tried again at the pace of the poll.
        """
        return any(intent.state is IntentState.CONFIRMED for intent in self.done)


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a cycle, which reads through `pollers`, writes through `executor` and keeps both in `ledger`."""

    ledger: Ledger
    pollers: Sequence[Poller]
    executor: Executor
    clock: Clock
    guard_reader: GuardReader | None = None
    orders: GuardOrders | None = None
    audit: CheckpointAudit | None = None
    fronts: FrontWriter | None = None
    demand: DemandReader | None = None
    estimates: TaskEstimates | None = None
    alerts_beside: Callable[[], Sequence[Alert]] = tuple
    """Alerts of buckets and proxies, such as a sign of life that could not be written."""


class Cycle:
    """One pass after another, with the memory between them."""

    def __init__(
        self,
        parts: Parts,
        stop_writing: Callable[[str], None],
        *,
        is_dry: bool = False,
        witness: Witness = lambda *_: None,
    ) -> None:
        """Run cycles with these parts; `stop_writing(why)` is for a second daemon on our fleet.

        From then on only endings by a person or a hard cap are sent. Any other might hit a lease that the other daemon
        keeps alive. A dry cycle writes to no market. `witness` receives every plan.
        """
        self._ledger, self._pollers = parts.ledger, parts.pollers
        self._executor, self._clock = parts.executor, parts.clock
        self._guard_reader = parts.guard_reader
        self._orders = parts.orders
        self._audit = parts.audit
        self._fronts, self._demand, self._estimates = parts.fronts, parts.demand, parts.estimates
        self._alerts_beside = parts.alerts_beside
        self._stop_writing = stop_writing
        self._is_dry, self._witness = is_dry, witness
        self._shadows = shadow_ledgers.Shadows(parts.ledger)
        self._memory = Memory()
        self._said = ToldAlerts()
        self._alerts: tuple[Alert, ...] = ()
        self._past_of = UNREAD
        self._marks: Mapping[str, credit_watch.Mark] = {}
        self._is_stopped = False
        self.reading = InterruptibleReading()
        self._acted_at = parts.clock.monotonic()
        self._refused: tuple[Intent, ...] = ()
        self._unwritten: tuple[Fact, ...] = ()
        # A refusal just before a crash is counted at the start.
        self._is_review_due = True
        self._started_at = parts.clock.now()
        self._known_since: dict[str, datetime] = {}
        self._idle_slots = IdleSlots()
        self._risks: risk.Risks = {}
        self._typical: Mapping[tuple[GpuModel, int], float] = {}
        self._built: tuple[tuple[datetime, float], tuple[object, ...], Fleet] | None = None

    async def run(self, rules: Rules, unpaid: str = "") -> Pass:
        """Do one pass: the steps of this method, in their order. `unpaid` says why nothing may be paid for in it.

        Raises:
            LedgerError: the ledger could not be written; nothing was paid for in this pass.
            ReadingInterrupted: a person's order ended its reading; nothing was decided.
        """
        self._acted_at = self._clock.monotonic()
        # Every market's listing, its record of unseen time, and the answers of the workloads.
        await self._look(rules)
        last_seen = self._memory.last_seen
        # The facts since the last pass; a loss is believed after two looks.
        reconciled = await self._reconcile(rules)
        facts = self._facts(await self._fleet(rules), reconciled, rules)
        self._unwritten = facts
        try:
            # Nothing is decided on facts that are not recorded.
            await self._record(rules, reconciled, facts)
            recorded = await self._fleet(rules)
            # Cooldowns for repeated failures.
            await self._protect(recorded, facts)
            # Offers for empty and moving slots.
            await self._ask(plan.unpaid(recorded, unpaid), rules, reconciled.faulty)
            fleet = plan.unpaid(await self._enrich(rules), unpaid)
            planned = await self._plan(fleet, rules, reconciled)
            news = await self._record_plan(planned)
            self._ask_guards(planned, rules)
            done = await self._act(planned.decisions, fleet, rules)
            self._refused = tuple(intent for intent in done if intent.state is IntentState.REJECTED)
            beside = () if self._is_dry else await self._shadows.look(fleet, rules.tuned, rules.caps)
        except LedgerError as error:
            if error.code is Code.CONFLICT:
                # The decisions contradict the tables, so the history that was read of them is out of date.
                self._past_of = UNREAD
            await self._end_only(rules, reconciled, last_seen)
            raise
        return Pass(fleet, facts, planned, tuple(done), news, self._risks, beside, self._alerts)

    async def _look(self, rules: Rules) -> None:
        for poller in self._pollers:
            await self._read(poller.look, rules)
        known = self._ledger.recollection(self._clock.now()).leases
        await self._read(partial(missed_records.recall, self._pollers, self._memory.last_listed, known), rules)
        if any(work.is_probed for work in rules.workloads):
            fleet = await self._fleet(rules)
            for poller in self._pollers:
                await self._read(partial(poller.sight, probing.targets(fleet, poller.market.name)), rules)
        if self._guard_reader is not None and any(work.guard is not None for work in rules.workloads):
            now = self._ledger.recollection(self._clock.now())
            views = [poller.view for poller in self._pollers]
            wanted = guard_reader.targets(now, rules.workloads, self._ledger.fleet_id, views)
            await self._read(partial(self._guard_reader.look, wanted), rules)
            if self._audit is not None:
                self._audit.look(checkpoint_audit.targets(now, rules.workloads, self._ledger.fleet_id))
            await self._keep_measured(rules)

    async def _keep_measured(self, rules: Rules) -> None:
        """Record the guards' measurements, before a loss that this pass finds is counted by them."""
        fleet = await self._fleet(rules)
        # A measurement that cannot be recorded now is among the facts of this pass, and fails there.
        with contextlib.suppress(LedgerError):
            await record.record(self._ledger, fleet, guard_measurements.new_measurements(fleet))
            # Which paused disks have their checkpoint in the bucket follows from the figures that were just recorded.
            fleet = await self._fleet(rules)
            await record.record(self._ledger, fleet, checkpoint_proofs.changes(fleet))

    def _facts(self, fleet: Fleet, reconciled: reconcile.Reconciliation, rules: Rules) -> tuple[Fact, ...]:
        """Return everything to record: facts, new alerts, progress, and the guards' measurements."""
        risks = tuple(alert for name in sorted(self._risks) for alert in self._risks[name])
        found = (*reconciled.facts, *risks, *self._alerts_beside(), *self._of_money(fleet, rules))
        self._alerts = tuple(fact for fact in found if isinstance(fact, Alert))
        news = (fact for fact in found if not isinstance(fact, Alert) or self._said.is_new(fact))
        return (
            *news,
            *progress_facts.new_progress(fleet),
            *guard_measurements.new_measurements(fleet),
            *host_checks.new_checks(fleet),
        )

    async def _record(self, rules: Rules, reconciled: reconcile.Reconciliation, facts: tuple[Fact, ...]) -> None:
        """Record the facts, and stop paying if they show a second daemon."""
        await record.record(self._ledger, await self._fleet(rules), facts)
        await account_keeping.keep(self._ledger, await self._fleet(rules))
        # An alert counts as told once the ledger has it; one that could not be recorded is told again.
        self._said, self._unwritten = self._said.after(self._alerts, self._clock.now()), ()
        second = second_daemon.second_daemon(reconciled.facts)
        if second:
            self._is_stopped = True
            self._stop_writing(second)

    async def _protect(self, fleet: Fleet, facts: tuple[Fact, ...]) -> None:
        self._is_review_due |= protection_cooldowns.is_due(facts, self._refused)
        if self._is_review_due:
            await protection_cooldowns.review(self._ledger, fleet)
            self._is_review_due = False

    async def _ask(self, fleet: Fleet, rules: Rules, faulty: frozenset[str]) -> None:
        needed = needs.needs(fleet, rules.caps, faulty, rules.tuned)
        for poller in self._pollers:
            asked = partial(poller.ask, needed, rules.workloads, needs.expensive_workloads(fleet))
            await self._read(asked, rules)

    async def _enrich(self, rules: Rules) -> Fleet:
        """Return the fleet with this pass's observations of speed, capacity and warm time, and keep them."""
        before = await self._fleet(rules)
        self._risks = risk.risks(before, rules.caps, self._risks)
        fleet = snapshot.enriched(before, rules.tuned)
        self._typical = fleet.typical
        self._idle_slots.note(before)
        await observed_facts.keep(self._ledger, before, fleet)
        return fleet

    async def _record_plan(self, planned: plan.Plan) -> tuple[Decision, ...]:
        seen = (row for poller in self._pollers for row in poller.searches.found)
        return await record.record_plan(self._ledger, planned, seen)

    def _ask_guards(self, planned: plan.Plan, rules: Rules) -> None:
        """Write the plan's orders for last checkpoints to guards; a plan that is not recorded asks for none."""
        if (
            self._orders is not None
            and not self._is_stopped
            and any(work.guard is not None for work in rules.workloads)
        ):
            now = self._ledger.recollection(self._clock.now())
            targets = guard_reader.targets(now, rules.workloads, self._ledger.fleet_id)
            folders = {each.lease: guard_orders.Folder(each.place, each.folder) for each in targets}
            self._orders.see(guard_orders.wanted(planned, now.leases, rules.workloads), folders)

    async def _end_only(self, rules: Rules, facts: reconcile.Reconciliation, last_seen: Mapping[str, datetime]) -> None:
        """Send the due endings although the ledger cannot be written; alerts are sent again when it can."""
        self._said = ToldAlerts()
        with contextlib.suppress(LedgerError):
            # One write may fail and the next succeed; then an ending would be metered without this pass's facts.
            await record.record_again(self._ledger, await self._fleet(rules), self._unwritten)
            self._unwritten = ()
        if self._unwritten:
            # This listing is not recorded, so the next one dates changes from the listing before.
            self._memory = replace(self._memory, last_seen=last_seen)
        fleet = front_drain.unasked(plan.unpaid(await self._fleet(rules), "the ledger cannot be written"))
        planned = await self._plan(fleet, rules, facts)
        ending = [decision for decision in planned.decisions if isinstance(decision, Release | Pause)]
        # Nobody could see later that these wait for a checkpoint, so they do not wait.
        await self._act([*ending, *(asked.ending for asked in planned.asked)], fleet, rules)

    async def _read(self, step: Callable[[], Awaitable[object]], rules: Rules) -> None:
        """Do one step of reading; if the reading takes long, send the due endings first."""
        if self._clock.monotonic() - self._acted_at >= SLOW_SECONDS:
            fleet = await self._fleet(rules)
            await self._act(immediate_endings.stops(fleet, rules.caps), fleet, rules)
        await self.reading.run(step)

    async def _act(self, decisions: Sequence[Decision], fleet: Fleet, rules: Rules) -> list[Intent]:
        """Carry out decisions; beside a second daemon only endings that a person or a hard cap ordered."""
        if self._is_dry:
            return []
        self._acted_at = self._clock.monotonic()
        if self._is_stopped:
            decisions = due_endings.last_orders(due_endings.endings_now(fleet, rules.caps))
        self._executor.see(billed_times.looks(fleet, self._memory))
        return await self._executor.run(decisions, {work.name: work for work in rules.workloads})

    async def _plan(self, fleet: Fleet, rules: Rules, reconciled: reconcile.Reconciliation) -> plan.Plan:
        """Return the plan. A strategy may raise any error; then the due endings are sent first."""
        try:
            planned = plan.plan(fleet, rules.tuned, rules.caps, reconciled.faulty)
        except Exception:
            await self._act(due_endings.orders(due_endings.endings_now(fleet, rules.caps)), fleet, rules)
            raise
        self._witness(fleet, rules.tuned, rules.caps, reconciled.faulty, planned)
        return planned

    async def _reconcile(self, rules: Rules) -> reconcile.Reconciliation:
        """Find what happened. Look again, and by id, before a loss or a disappearance is believed."""
        fleet = await self._fleet(rules)
        reconciled = reconcile.reconcile(fleet, self._memory)
        is_amiss = bool(reconciled.suspects or reconciled.to_probe or billed_times.wants_record(reconciled.facts))
        if is_amiss or reconciled.to_look:
            if reconciled.suspects:
                # This listing is not recorded, so the next one dates changes from the listing before.
                self._memory = replace(reconciled.memory, last_seen=self._memory.last_seen)
                await self._clock.sleep(SECOND_LOOK_SECONDS)
            for poller in self._pollers:
                if reconciled.suspects:
                    await self._read(poller.look, rules)
                if is_amiss:
                    mine = {lease.instance_id for lease in fleet.leases if lease.market == poller.market.name}
                    await self._read(partial(poller.look_closer, reconciled.to_probe & mine), rules)
                to_look = [at for market, at in reconciled.to_look if market == poller.market.name]
                await self._read(partial(poller.look_at, to_look), rules)
            reconciled = reconcile.reconcile(await self._fleet(rules), self._memory)
        self._memory = reconciled.memory
        return reconciled

    async def _fleet(self, rules: Rules) -> Fleet:
        """Return everything known now; the last fleet if neither time nor any part has changed."""
        instant = now, _ = self._clock.now(), self._clock.monotonic()
        known = self._ledger.recollection(now)
        views = (poller.view for poller in self._pollers)
        parts = (rules.workloads, known, self._typical, *self._told, *views)
        if self._built is None or self._built[0] != instant or not all(map(operator.is_, self._built[1], parts)):
            self._built = instant, parts, await self._build_fleet(rules, known, *instant)
        return self._built[2]

    @property
    def _told(self) -> tuple[Reports, Mapping[str, datetime], Proofs, FrontReports, DemandReports, TaskFigures]:
        """Return what guards, buckets, proxies, demands and estimates last reported."""
        return (
            self._guard_reader.reports if self._guard_reader is not None else NOTHING_TOLD,
            self._orders.written if self._orders is not None else NOTHING_TOLD,
            self._audit.proofs if self._audit is not None else NOTHING_TOLD,
            self._fronts.reports if self._fronts is not None else NOTHING_TOLD,
            self._demand.reports if self._demand is not None else NOTHING_TOLD,
            self._estimates.figures if self._estimates is not None else NOTHING_TOLD,
        )

    async def _build_fleet(self, rules: Rules, known: Recollection, now: datetime, monotonic: float) -> Fleet:
        views = [poller.view for poller in self._pollers]
        since = self._known_since = first_sights.in_this_run(rules.workloads, self._known_since, now)
        began, idle = self._started_at, self._idle_slots.at(rules.workloads, now)
        instant = snapshot.Instant(now, monotonic, began, rules.poll, since, self._typical, *self._told, idle)
        instances, intents = snapshot.unexplained_ids(views, self._ledger.fleet_id, known)
        past = await self._past(frozenset(instances), frozenset(intents))
        return snapshot.fleet(self._ledger.fleet_id, instant, rules.workloads, views, known, past)

    async def _past(self, instances: frozenset[str], intents: frozenset[str]) -> snapshot.Past:
        """Return the history of instances without an open lease; it changes only with the instances asked about.

        An instance that gets a lease is not asked about until that lease has ended: by then it is read again.
        """
        if not instances:
            self._past_of = UNREAD
        elif self._past_of[0] != (instances, intents):
            reader = await self._ledger.reader()
            past = snapshot.Past(
                {lease.instance_id: lease for lease in reversed(await reader.leases(instances=instances))},
                {intent.intent_id: intent for intent in await reader.intents(ids=intents)},
            )
            self._past_of = (instances, intents), past
        return self._past_of[1]

    def _of_money(self, fleet: Fleet, rules: Rules) -> tuple[Fact, ...]:
        """Return crossed thresholds, and problems of a market's credit."""
        now = limits.committed_by_fleet(fleet)
        self._marks, drained = credit_watch.watch(self._marks, fleet, now)
        crossed = budget_alerts.crossings(fleet, now, rules.caps)
        return (*crossed, *credit_watch.alerts(fleet, rules.caps), *drained)
