"""The metrics of a pass: the only module that reads a pass for Prometheus."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from agent.app import App
from agent.cycle import Pass
from agent.decide import slots
from agent.decide.accounting import unmetered_cost, useful_time, volume_metering
from agent.decide.arrays import array_window
from agent.decide.demand import demand_window
from agent.decide.facts import LeaseChanged
from agent.decide.limits import budget_alerts, credit_watch
from agent.decide.operators import operator_holds
from agent.decide.pricing import measured_checkpoints, offer_refusal
from agent.decide.reconcile.tasks import credited_work
from agent.decide.run_times import run_windows, running_limits
from agent.domain.fleet import Fleet
from agent.domain.market.tenure import Tenure
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import LeaseState
from agent.domain.record.paid_time import Phases
from agent.domain.slot import Slot
from agent.domain.work.decision import Hold
from agent.domain.work.workload import Workload
from agent.telemetry import recovery_metrics
from agent.telemetry.metric_updates import Metrics
from agent.telemetry.run_time_metrics import RunTimes

WAITING = frozenset(
    {
        run_windows.CODE,
        run_windows.NOT_BEFORE,
        run_windows.DOUBTED,
        running_limits.CODE,
        array_window.WAITS,
        array_window.UNPROVEN,
        array_window.WAITS_FOR_OTHERS,
        demand_window.CODE,
    }
)
"""The codes of holds by which a slot waits as the configuration says."""
BY_A_PERSON = frozenset({slots.STOPPED, *operator_holds.PAST.values()})
"""The codes of holds by which a slot stays as a person ordered, is done, or waits for a person."""
ENDS = frozenset({EventKind.LEASE_INTERRUPTED, EventKind.LEASE_EXITED})
"""The events of stretches that ended without an order of ours."""


class Figures:
    """Writes each pass to the metrics; remembers the slots that recover and the useful time that is counted."""

    def __init__(self, metrics: Metrics) -> None:
        """Write to `metrics`."""
        self._metrics = metrics
        self._recoveries = recovery_metrics.Recoveries()
        self._stretches: useful_time.Stretches | None = None
        self._unjudged: dict[str, float] = {}
        self._volumes: volume_metering.Volumes = {}

    def see(self, app: App, done: Pass) -> None:
        """Write the metrics of one pass of `app`."""
        metrics, works = self._metrics, done.fleet.workloads
        fleet = done.fleet
        owed = unmetered_cost.of(fleet.leases, volume_metering.burdens(fleet.volumes, fleet.now), fleet.now)
        metrics.see_fleet(fleet, (owed.today, owed.month), _not_running(done, BY_A_PERSON))
        faults = {alert.key for alert in done.alerts if alert.kind is EventKind.ALERT_MARKET_FAULT}
        metrics.see_faults(faults, app.markets)
        metrics.see_decisions(done.news)
        metrics.see_spares(done.fleet, done.plan.decisions)
        metrics.run_times.see(_run_times(done))
        metrics.see_intents(done.done)
        changes = [fact for fact in done.facts if isinstance(fact, LeaseChanged)]
        for beside in done.beside:
            kinds = [type(change).__name__.lower() for change in beside.news]
            metrics.see_shadow(
                beside.workload, beside.strategy, beside.spent, beside.useful_seconds, beside.interruptions, kinds
            )
        self._see_losses([fact for fact in changes if fact.kind == EventKind.LEASE_INTERRUPTED], done)
        self._see_charges(changes)
        self._see_useful(done.fleet, changes)
        self._see_finished(done.fleet, changes, credited_work.of(done.facts))
        self._see_prices(done.fleet)
        self._see_named(done)
        self.see_ledger(app)
        metrics.see_drifts({drift.market: drift.beyond_rounding for drift in app.billing_watch.drifts})
        for name, market in app.markets.items():
            metrics.rows_today.labels(name).set(getattr(market, "rows_today", None) or 0)
        self._see_caps(app, done)
        metrics.see_risks([work.name for work in works], [name for name, risks in done.risks.items() if risks])

    def _see_named(self, done: Pass) -> None:
        """Write services, measured checkpoints, silent guards and missing keys."""
        metrics, works = self._metrics, done.fleet.workloads
        metrics.named.see_services(*_warm(done))
        measured = {work.name: measured_checkpoints.of(done.fleet, work) for work in done.fleet.workloads}
        metrics.named.see_measured(
            {work: {name: one.figure for name, one in figures.items()} for work, figures in measured.items()}
        )
        metrics.named.see_silent(
            _alerted(done, EventKind.ALERT_GUARD_SILENT, [work for work in works if work.guard is not None]),
            _alerted(done, EventKind.ALERT_KEYS_MISSING, [work for work in works if work.ssh_keys]),
        )

    def _see_caps(self, app: App, done: Pass) -> None:
        """Write the caps, how much of them is used, and how long credit lasts."""
        caps = app.rules.caps
        self._metrics.see_caps(caps.per_hour, caps.per_day, caps.per_month)
        lasts = {each.market: each.lasts for each in credit_watch.outlooks(done.fleet, caps)}
        known = {name: span.total_seconds() for name, span in lasts.items() if span is not None}
        self._metrics.see_purse(budget_alerts.used(done.plan.standing, caps), known)

    def see_ledger(self, app: App) -> None:
        """Write what the ledger and the observers know, before the first pass and after each one, also a failed one."""
        self._metrics.poll.set(app.rules.poll.total_seconds())
        self._see_volumes(app.ledger.recollection(app.clock.now()).volumes)
        self._metrics.named.see_unsigned(app.signs.silences())
        self._metrics.named.see_demands(app.demand.silences())
        self._metrics.named.forget_fronts()
        for each in app.fronts.statuses.values():
            counts = {"wanted": each.wanted, "up": each.up, "draining": each.draining}
            self._metrics.named.see_front((each.name, each.workload), counts, is_troubled=bool(each.trouble))
        seen = app.billing_watch.seen
        self._metrics.see_unaccounted({name: (seen.count(name), seen.listings(name)) for name in app.markets})
        self._metrics.see_kill(len(seen.remaining), seen.killed_at)
        self._metrics.see_ledger(*app.ledger.room(), is_writable=app.ledger.is_writable)

    def _see_losses(self, losses: Sequence[LeaseChanged], done: Pass) -> None:
        for fact in losses:
            if fact.cause is not None:
                lease = fact.after
                self._metrics.see_interruption(lease.slot.workload, lease.market, fact.cause)
        self._metrics.see_flapping(done.fleet.losses, done.fleet.now)
        lost = [fact.after for fact in losses]
        self._metrics.see_recovery(self._recoveries.see(done.fleet, lost, done.plan.decisions, done.done))

    def _see_charges(self, changes: Sequence[LeaseChanged]) -> None:
        for fact in changes:
            lease = fact.after
            for charge in fact.charges:
                amount = charge.gpu + charge.disk + charge.traffic
                self._metrics.see_charge(lease.slot.workload, lease.market, lease.tenure, amount)
                if charge.phases is not None:
                    self._metrics.see_paid(lease.slot.workload, _seconds(charge.phases))

    def _see_volumes(self, volumes: volume_metering.Volumes) -> None:
        """Count the cost of network volumes that the ledger has recorded since the last look."""
        before, self._volumes = self._volumes, volumes
        for name, volume in volumes.items():
            for share in volume_metering.shares(before[name], volume.until) if name in before else ():
                self._metrics.see_charge(share.workload, share.market, Tenure.ON_DEMAND, share.amount)

    def _see_useful(self, fleet: Fleet, changes: Sequence[LeaseChanged]) -> None:
        """Count useful time when checkpoints keep it; time before this process began is not counted."""
        charged: dict[str, float] = {}
        for fact in changes:
            for charge in fact.charges:
                if charge.useful_seconds:
                    charged[charge.lease_id] = charged.get(charge.lease_id, 0.0) + charge.useful_seconds
        ended = {fact.after.lease_id: 0.0 for fact in changes if fact.kind in ENDS}
        if self._stretches is not None:
            for workload, seconds in useful_time.gained(self._stretches, fleet, ended | charged):
                self._metrics.see_useful(workload, seconds)
        self._stretches = useful_time.running(fleet)

    def _see_finished(
        self, fleet: Fleet, changes: Sequence[LeaseChanged], finished: Iterable[credited_work.Finished]
    ) -> None:
        """Count the useful time of a container that ended by itself once its work is known to be done."""
        for fact in changes:
            if fact.kind is EventKind.LEASE_EXITED and fact.cause is not None:
                self._unjudged[fact.after.lease_id] = credited_work.lost_by(fact) / 1_000_000
        for done in finished:
            self._metrics.see_useful(done.lease.slot.workload, self._unjudged.pop(done.lease.lease_id, 0.0))
        ended = {lease.lease_id for lease in fleet.leases if lease.state is LeaseState.EXITED}
        self._unjudged = {lease_id: lost for lease_id, lost in self._unjudged.items() if lease_id in ended}

    def _see_prices(self, fleet: Fleet) -> None:
        for work in fleet.workloads:
            for name, view in fleet.markets.items():
                prices = offer_refusal.cheapest(view.offers, work, fleet.now)
                self._metrics.see_prices(name, work.name, *prices, is_answered=work.name in view.answered)


def _not_running(done: Pass, codes: frozenset[str]) -> frozenset[Slot]:
    """Return the slots without a running lease that are held in this pass for a reason with one of these codes."""
    running = {lease.slot for lease in done.fleet.leases if lease.state is LeaseState.RUNNING}
    held = (each for each in done.plan.decisions if isinstance(each, Hold) and each.reason.code in codes)
    return frozenset(each.slot for each in held if each.slot not in running)


def _run_times(done: Pass) -> Mapping[str, RunTimes]:
    """Return the windows and running times of each workload, and how many of its slots wait by its own keys."""
    fleet = done.fleet
    waiting = Counter(place.workload for place in _not_running(done, WAITING))
    return {work.name: _times(fleet, work, waiting[work.name]) for work in fleet.workloads}


def _times(fleet: Fleet, work: Workload, waiting: int) -> RunTimes:
    window, ran = fleet.windows.get(work.name), running_limits.of_workload(fleet, work)
    return RunTimes(
        waiting,
        None if window is None else window.is_open,
        None if window is None else window.until,
        None if ran is None else ran.time,
        None if ran is None else ran.limit.most,
    )


def _alerted(done: Pass, kind: EventKind, works: Iterable[Workload]) -> Mapping[str, int]:
    """Return how many leases have an alert of this kind, by each of these workloads."""
    alerted = {alert.key for alert in done.alerts if alert.kind is kind}
    count = Counter(lease.slot.workload for lease in done.fleet.leases if lease.lease_id in alerted)
    return {work.name: count[work.name] for work in works}


def _seconds(paid: Phases) -> Mapping[str, float]:
    """Return paid seconds by phase. A counter cannot fall, so work that is lost later stays counted as worked."""
    micros = {
        "loading": paid.loading,
        "restoring": paid.restoring,
        "working": paid.useful + paid.redeemed,
        "lost": paid.spoiled,
    }
    return {phase: amount / 1_000_000 for phase, amount in micros.items()}


def _warm(done: Pass) -> tuple[dict[str, float], dict[str, float]]:
    """Return the availability of services and their targets, by workload."""
    recorded = {work.name: done.fleet.warm.get(work.name) for work in done.fleet.workloads}
    achieved = {name: time.availability for name, time in recorded.items() if time is not None}
    targets = {name: chosen.params.warm_target() for name, chosen in done.plan.tuned.items()}
    return (
        {name: share for name, share in achieved.items() if share is not None},
        {name: share for name, share in targets.items() if share},
    )


def lead_of(app: App) -> tuple[Callable[[], float], Callable[[], float], Callable[[], float]]:
    """Return the functions of the lead's metrics: whether it leads, since when, and its last beat's time."""

    def leads() -> float:
        leader = app.ledger.leader()
        return float(leader is not None and leader.is_shown)

    def since() -> float:
        leader = app.ledger.leader()
        return 0.0 if leader is None else leader.since.timestamp()

    def beat() -> float:
        leader = app.ledger.leader()
        return 0.0 if leader is None else app.clock.wall().timestamp() - leader.beat_age_seconds

    return leads, since, beat
