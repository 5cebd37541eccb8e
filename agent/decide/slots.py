"""Steps for a slot before any strategy is asked: wait for doubt to settle, pause, restart, hold."""

from collections.abc import Sequence

from agent.decide import slot_releases
from agent.decide.operators import operator_holds
from agent.decide.pricing import cooldowns
from agent.decide.pricing.cooldowns import InForce
from agent.decide.reconcile import doubt, orphans, workload_end
from agent.decide.reconcile.guards import checkpoint_proofs, guard_switch
from agent.decide.reconcile.losses import failed_start
from agent.decide.reconcile.probes import kept_pairs, liveness
from agent.decide.reconcile.workload_end import COOL_OFF
from agent.decide.run_times import run_time_verdict, run_windows
from agent.decide.strategy import Down, Proposal, SlotView
from agent.domain import span_text
from agent.domain.fleet import Fleet
from agent.domain.market.instance import InstanceState
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.record.cooldown import CooldownKind
from agent.domain.record.hold import EVERYTHING, Word
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.record.tally import Counted
from agent.domain.slot import Slot
from agent.domain.work.decision import Reason

MACHINE_FAILED = "machine_failed"
"""The code of a pause of a machine that failed after it ran."""
STOPPED = "stopped"
"""The code of a hold of any slot while a kill of everything is in force."""


def view_or_proposal(fleet: Fleet, place: Slot, in_force: InForce) -> SlotView | Proposal:
    """Return the slot for the strategy, or the proposal that comes before any strategy."""
    kill = in_force.holds.get((Word.KILL, EVERYTHING))
    if kill is not None:
        return _hold(place, STOPPED, f"stopped after {kill.ground}; `gpubid kill --lift` ends that")
    word = operator_holds.why_idle(fleet, place, in_force.holds)
    if word is not None:
        return Proposal(place, None, word)
    over = run_time_verdict.why_idle(fleet, place)
    if over is not None:
        return Proposal(place, None, over)
    doubted = fleet.paying_intent(place)
    if doubted is not None:
        return _hold(place, "in_doubt", doubt.why_open(fleet, doubted))
    pair = fleet.occupants_of(place)
    if any(lease.state is LeaseState.RELEASING for lease in pair):
        return _hold(place, "releasing", "a release is not confirmed yet")
    if not pair:
        return _empty(fleet, place, in_force)
    return _taken(fleet, place, pair, in_force)


def _empty(fleet: Fleet, place: Slot, in_force: InForce) -> SlotView | Proposal:
    orphan = orphans.claimant(fleet, place)
    if orphan:
        return _hold(
            place, "stranger", f"instance {orphan} carries its label: gpubid settles first whether it belongs there"
        )
    why = in_force.why_in_cooldown(CooldownKind.SLOT, str(place))
    waits = cool_off(place, in_force) or run_windows.why_too_late(fleet, place)
    if waits is not None:
        return Proposal(place, None, waits)
    return _hold(place, "slot_rests", f"in cooldown after {why}") if why else SlotView(place, None)


def _taken(fleet: Fleet, place: Slot, pair: Sequence[Lease], in_force: InForce) -> SlotView | Proposal:
    lease, arriving = pair[0], pair[1] if len(pair) > 1 else None
    if lease.state is LeaseState.MISSING:
        return _hold(
            place, "missing", f"instance {lease.instance_id} is not listed; it counts as running until proven gone"
        )
    if unsettled := _unsettled(fleet, lease):
        return _hold(place, "settling", unsettled)
    over = _why_over(fleet, lease)
    if over is not None:
        return Proposal(place, IntentKind.PAUSE, over, lease=lease)
    stuck = _kept_although_stuck(fleet, lease, in_force)
    # While a move goes on, the new lease takes over.
    if stuck is None:
        stuck = _restarted(fleet, lease, in_force) if arriving is None else _moving(fleet, pair, in_force)
    if stuck is not None:
        return stuck
    cooldown = cool_off(place, in_force)
    if cooldown is not None and lease.state in {LeaseState.PAUSED, LeaseState.OFFLINE}:
        return Proposal(place, None, cooldown)
    down = None
    if lease.state in {LeaseState.PAUSED, LeaseState.OFFLINE}:
        why_kept = checkpoint_proofs.why_not(fleet, lease)
        down = Down(lease.state_since, _quotes(fleet, lease), why_kept, _refused(fleet, lease, in_force))
    may_move = down is not None or lease.tenure is Tenure.ON_DEMAND
    runs = _runs(place, in_force) if may_move or _has_choice(fleet) else 0
    return SlotView(place, lease, arriving, down, runs, hours_left=run_windows.hours_left(fleet, place))


def _why_over(fleet: Fleet, lease: Lease) -> Reason | None:
    """Return why nothing works on a lease any more although its GPU bills, or None."""
    if lease.state is LeaseState.EXITED:
        return Reason("container_exit", "the container ended: pause it, nobody uses it")
    if _has_failed_machine(fleet, lease):
        return Reason(MACHINE_FAILED, "its machine failed and bills on: pause it, nobody uses it")
    return None


def _has_failed_machine(fleet: Fleet, lease: Lease) -> bool:
    """Return whether a lease that ran is listed as failed for a while, and its GPU bills for nobody."""
    view = fleet.markets.get(lease.market)
    row = view.instance(lease.instance_id) if view is not None and view.is_fresh else None
    is_down = lease.state is LeaseState.PAUSED and not lease.paused_by_us and lease.bills is Bills.GPU_AND_DISK
    is_shown = row is not None and row.state is InstanceState.FAILED
    return is_down and is_shown and fleet.now - lease.state_since >= failed_start.SHOWN_FOR


def _restarted(fleet: Fleet, lease: Lease, in_force: InForce) -> Proposal | None:
    """Return the stop or the start of a restart in place, or None if none is due or its market is dark."""
    if not fleet.is_seen(lease):
        return None
    if liveness.is_stop_due(lease):
        said = lease.end_reason.partition(": ")[2]
        of_service = f"its service does not answer ({said}): restart {lease.restarts} in place"
        is_service = lease.unhealthy_since is not None
        reason = Reason(liveness.RESTART, of_service if is_service else f"{said} (restart {lease.restarts})")
        return Proposal(lease.slot, IntentKind.PAUSE, reason, lease=lease)
    if liveness.is_start_due(lease, fleet.now) and cooldowns.RESUME not in _refused(fleet, lease, in_force):
        reason = Reason(liveness.RESTART, "start it again: it was stopped for its restart")
        return Proposal(lease.slot, IntentKind.RESUME, reason, lease=lease)
    return None


def _moving(fleet: Fleet, pair: Sequence[Lease], in_force: InForce) -> Proposal | None:
    """Return the start of a move's stopped new lease, or the hold of a slot that keeps both leases; None for neither.

    Beside a lease that works, the other one is not started.
    """
    place = pair[0].slot
    is_kept = kept_pairs.is_kept(fleet, pair, fleet.workload(place.workload))
    if not (is_kept and pair[0].is_live):
        start = _continued(fleet, pair[1], in_force)
        if start is not None:
            return start
    return _hold(place, "two_leases", kept_pairs.sentence(pair)) if is_kept else None


def _continued(fleet: Fleet, arriving: Lease, in_force: InForce) -> Proposal | None:
    """Return the start of a move's new lease that we stopped, as by a kill that is lifted; None if none is due.

    The slot waits for that lease, so that no strategy would start either of the two.
    """
    is_stopped = arriving.state is LeaseState.PAUSED and arriving.paused_by_us and fleet.is_seen(arriving)
    if (
        not is_stopped
        or slot_releases.is_kept(arriving, in_force)
        or cooldowns.RESUME in _refused(fleet, arriving, in_force)
    ):
        return None
    reason = Reason("move_continued", "we stopped the new lease of this move: it is started again")
    return Proposal(arriving.slot, IntentKind.RESUME, reason, lease=arriving)


def _unsettled(fleet: Fleet, lease: Lease) -> str:
    """Return why the end of a lease's run is not judged yet, or an empty text."""
    if guard_switch.is_stop_awaited(fleet, lease):
        return "it stopped while this daemon was cut off or away, and its guard's bucket is not read yet"
    if workload_end.is_settling(fleet, lease):
        return "its container ended; the next cycle shows whether the work is done"
    if lease.state is LeaseState.EXITED and (workload_end.is_fresh(fleet, lease) or not fleet.is_seen(lease)):
        return "its container ended; it may run again, which the next listing shows"
    return ""


def cool_off(place: Slot, in_force: InForce) -> Reason | None:
    """Return why a slot is not moved again yet, or None."""
    cooldown = in_force.why_in_cooldown(CooldownKind.COOL_OFF, str(place))
    return Reason("cool_off", f"one move in {span_text.of(COOL_OFF)}: {cooldown}") if cooldown else None


def _kept_although_stuck(fleet: Fleet, lease: Lease, in_force: InForce) -> Proposal | None:
    """Return a hold of a slot whose lease cannot start and was not released."""
    if slot_releases.is_over(fleet, lease):
        until = slot_releases.contract_end(fleet, lease)
        sentence = f"its host rented it out until {until}, so it cannot start again; its disk may not be lost"
        return _hold(lease.slot, "contract_end", f"{sentence}: copy it, then `gpubid release {lease.lease_id}`")
    if slot_releases.is_stuck(lease, in_force):
        why = in_force.why_in_cooldown(CooldownKind.FULL, lease.lease_id)
        sentence = f"in cooldown after {why}; its disk may not be lost, so it is tried again later"
        return _hold(lease.slot, "host_full", sentence)
    return None


def _has_choice(fleet: Fleet) -> bool:
    """Return whether there are any offers, since only then a healthy lease is compared with them."""
    return any(view.offers for view in fleet.markets.values())


def _runs(place: Slot, in_force: InForce) -> int:
    """Return the number of leases on which a slot began to run within the last day."""
    return len(in_force.tallies_of(Counted.RAN, str(place)))


def _quotes(fleet: Fleet, lease: Lease) -> tuple[UsdPerHour, ...]:
    view = fleet.markets.get(lease.market)
    rows = view.offers_on(lease.host_id) if view is not None else ()
    return tuple(
        row.floor
        for row in rows
        if row.gpus == lease.gpus and row.floor is not None and row.seen_at >= lease.state_since
    )


def _refused(fleet: Fleet, lease: Lease, in_force: InForce) -> frozenset[str]:
    tallies = in_force.tallies_of(Counted.UNTAKEN, lease.lease_id)
    # A refusal from before the lease's last change of state says nothing about the present state.
    current = (each for each in tallies if each.since >= lease.state_since)
    refused = frozenset(each.where for each in current if cooldowns.has_no_way(each, fleet.now))
    # An instance in an unclear state may run again already: a higher bid would win nothing more.
    return refused | {cooldowns.RAISE} if fleet.is_listed_unclear(lease) else refused


def _hold(place: Slot, code: str, sentence: str) -> Proposal:
    return Proposal(place, None, Reason(code, sentence))
