"""Steps for a slot before any strategy is asked: finish moves, end failed starts, wait for doubt to settle."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from agent.decide.limits import limits
from agent.decide.operators import operator_holds
from agent.decide.pricing import cooldowns, useful_hour
from agent.decide.pricing.cooldowns import InForce
from agent.decide.reconcile import doubt, orphans, readback, workload_end
from agent.decide.reconcile.guards import checkpoint_proofs, guard_refusal, guard_switch, untaken_task
from agent.decide.reconcile.probes import liveness, lost_move, readiness, stalls, taken_over
from agent.decide.reconcile.tasks import failed_tasks
from agent.decide.reconcile.workload_end import COOL_OFF
from agent.decide.run_times import run_time_verdict
from agent.decide.strategy import Down, Proposal, SlotView
from agent.domain import span_text
from agent.domain.fleet import Fleet
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.record.cooldown import CooldownKind
from agent.domain.record.hold import DISKS, EVERYTHING, Word
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.record.tally import Counted
from agent.domain.slot import Slot
from agent.domain.work import usefulness
from agent.domain.work.decision import Reason, Release
from agent.domain.work.idle_rule import OnIdle
from agent.domain.work.only_copy import may_leave, may_leave_at_a_price
from agent.domain.work.workload import Workload

RELEASE_AGAIN = "release_again"
"""The code of a repeated release, because the market has not confirmed the first."""
RESTART = "restart"
"""The code of both halves of a restart in place."""
_STARTS = frozenset({cooldowns.RESUME, cooldowns.RAISE})
"""Kinds of orders after which a stopped lease may run again."""
LOADING_SPARE = timedelta(minutes=20)
SLOW_MBPS = 200.0
"""The assumed load rate of a host that advertises none."""
LEAST_MBPS = 20.0
"""The least assumed load rate: a start on a slower host is not waited for longer than with this rate."""
LOADING_FACTOR = 5.0
"""A start is ended after this many times the expected pull plus the spare, because real pulls have a long tail."""


def releases(fleet: Fleet) -> Iterator[Release]:
    """Yield the releases that no strategy decides: unfinished ones, failed starts, and old leases of finished moves."""
    in_force = cooldowns.in_force(fleet)
    for lease in fleet.leases:
        if not lease.is_open or (lease.is_held and lease.state is not LeaseState.RELEASING):
            continue
        reason = _release_reason(fleet, lease) or _fast_exit(fleet, lease, in_force) or _stuck(fleet, lease, in_force)
        reason = reason or _idle(fleet, lease, in_force) or failed_tasks.release_reason(fleet, lease, in_force)
        if reason is not None:
            yield Release(lease, reason)


def _release_reason(fleet: Fleet, lease: Lease) -> Reason | None:
    if lease.state is LeaseState.RELEASING:
        done = lease.bills is Bills.NOTHING
        return None if done else Reason(RELEASE_AGAIN, "the market has not confirmed the release")
    if lease.has_failed:
        return Reason(_failure_code(lease), f"the instance is unusable: {lease.end_reason or 'it did not start'}")
    view = fleet.markets.get(lease.market)
    if view is None or not view.is_fresh:
        # The last known state of a lease that may run by now is no reason to end it.
        return None
    if untaken := untaken_task.release_reason(fleet, lease):
        return untaken
    work = fleet.workload(lease.slot.workload)
    if work is not None and is_overdue(fleet, lease, work):
        return Reason("start_overdue", _why_overdue(fleet, lease))
    return _moved_away(fleet, lease, work)


def _failure_code(lease: Lease) -> str:
    if lease.end_reason.startswith(readback.PREFIX):
        return "mismatch"
    codes = (
        workload_end.IMAGE_REFUSED,
        readiness.NOT_READY,
        guard_refusal.GUARD_REFUSED,
        liveness.UNHEALTHY_HOST,
        liveness.UNHEALTHY,
        stalls.STALLED_HOST,
        stalls.STALLED,
    )
    return next((code for code in codes if lease.end_reason.startswith(code)), workload_end.START_FAILED)


def _fast_exit(fleet: Fleet, lease: Lease, in_force: InForce) -> Reason | None:
    """Return why a container that ended at once is tried on another host.

    The last one is kept, paused, for a person.
    """
    is_over = lease.end_reason == workload_end.FAST_EXIT and lease.state in {LeaseState.EXITED, LeaseState.PAUSED}
    if (
        not is_over
        or not fleet.is_seen(lease)
        or workload_end.is_settling(fleet, lease)
        or operator_holds.find(in_force.holds, (Word.HELD,), operator_holds.of_slot(lease.slot))
    ):
        return None
    return Reason(workload_end.FAST_EXIT, "its container ended right after the start: it is tried on another host")


def _stuck(fleet: Fleet, lease: Lease, in_force: InForce) -> Reason | None:
    """Return why a stopped lease that cannot start is released; None if its disk is needed or kept."""
    work = fleet.workload(lease.slot.workload)
    # If its market was not listed in this cycle, or is listed and not recorded, the lease may run by now.
    if not fleet.is_seen(lease) or fleet.is_listed_running(lease):
        return None
    if work is None or not may_leave(lease, work) or _is_kept(lease, in_force):
        return None
    if _is_over(fleet, lease):
        return Reason("contract_end", f"its host rented it out until {_end(fleet, lease)}: it cannot start again")
    if _is_never_started(lease, in_force):
        # Even if the request is at fault and not the host, another rent is the only way to run.
        return Reason("host_full", "its market does not take the order to start it: it is released for another host")
    why = in_force.why_in_cooldown(CooldownKind.FULL, lease.lease_id)
    if not _is_stuck(lease, in_force):
        return None
    return Reason("host_full", f"it cannot start on its host after {why}: it is released for another one")


def _idle(fleet: Fleet, lease: Lease, in_force: InForce) -> Reason | None:
    """Return why a lease with idle GPUs is released, once its slot is held for that."""
    work = fleet.workload(lease.slot.workload)
    if work is None or work.idle.then is not OnIdle.RELEASE or not may_leave(lease, work) or not fleet.is_seen(lease):
        return None
    held = operator_holds.find(in_force.holds, (Word.HELD,), operator_holds.of_slot(lease.slot), work)
    if held is None or not usefulness.is_idle(lease, work, fleet.now):
        return None
    return Reason("idle", held.sentence)


def _is_never_started(lease: Lease, in_force: InForce) -> bool:
    """Return whether the market has refused the start of a lease again and again since it stopped."""
    if lease.state is not LeaseState.PAUSED or lease.paused_by_us:
        return False
    tallies = in_force.tallies_of(Counted.UNTAKEN, lease.lease_id)
    # A refusal because of the account, or one that contradicts the listing, is no reason to give up a disk.
    refused = (each for each in tallies if each.where in _STARTS and each.ground in cooldowns.OF_THE_REQUEST)
    return any(each.count >= cooldowns.UNTAKEN_MOST and each.since >= lease.state_since for each in refused)


def _is_kept(lease: Lease, in_force: InForce) -> bool:
    """Return whether a person's order stops a lease and keeps its disk."""
    words = (Word.PAUSE, Word.HELD)
    is_kill = (Word.KILL, DISKS) in in_force.holds
    return is_kill or operator_holds.find(in_force.holds, words, operator_holds.of_lease(lease)) is not None


def _is_stuck(lease: Lease, in_force: InForce) -> bool:
    return lease.state is LeaseState.PAUSED and in_force.why_in_cooldown(CooldownKind.FULL, lease.lease_id) is not None


def _is_over(fleet: Fleet, lease: Lease) -> bool:
    """Return whether a lease is stopped and its contract has ended, by a clock that its market confirms."""
    view, ends_at = fleet.markets.get(lease.market), _ends_at(fleet, lease)
    if view is None or not view.is_fresh or not view.is_clock_read or limits.is_skewed(view):
        # A clock that is a day ahead would end each contract of the next day.
        return False
    return lease.state is LeaseState.PAUSED and ends_at is not None and ends_at <= fleet.now


def _ends_at(fleet: Fleet, lease: Lease) -> datetime | None:
    """Return the end of a lease's contract: the recorded one, or a later one as listed now, since a host may extend it.

    An earlier one is recorded once more than one listing shows it.
    """
    view = fleet.markets.get(lease.market)
    row = view.instance(lease.instance_id) if view is not None else None
    known = [each for each in (lease.ends_at, row.ends_at if row is not None else None) if each is not None]
    return max(known) if lease.ends_at is not None else None


def _end(fleet: Fleet, lease: Lease) -> str:
    return f"{_ends_at(fleet, lease):%Y-%m-%d %H:%M} UTC"


def _moved_away(fleet: Fleet, held: Lease, work: Workload | None) -> Reason | None:
    """Return why one lease of a move is released: the old one if the new one works, or a new one that was lost."""
    pair = [lease for lease in fleet.leases_of(held.slot) if lease.state is not LeaseState.RELEASING]
    others = [lease for lease in pair if lease is not held]
    if not others or work is None:
        return None
    if held is pair[-1]:
        is_lost = lost_move.is_lost(fleet, held, work)
        return Reason("move_lost", "lost before it was ready; the old lease stays") if is_lost else None
    # The strategy priced the work since the old lease's last checkpoint before it rented the new one.
    if any(taken_over.has_taken_over(fleet, lease, work) for lease in others) and may_leave_at_a_price(held, work):
        return Reason("moved", "the workload runs on another host")
    is_stopped = held.state is LeaseState.PAUSED and held.paused_by_us
    if is_stopped and lost_move.is_tied_to(fleet, pair[-1], work) and may_leave_at_a_price(held, work):
        return Reason("moved", f"its work went on on host {pair[-1].host_id}, whose disk may not go")
    return None


def is_overdue(fleet: Fleet, lease: Lease, work: Workload) -> bool:
    """Return whether a first start has taken longer than any reasonable pull of its image."""
    # Before a listing is reconciled with it, it may have run, and saved work, while nobody looked.
    if lease.state is not LeaseState.STARTING or lease.has_run or lease.accrued_until <= lease.opened_at:
        return False
    if fleet.is_listed_running(lease):
        return False
    view = fleet.markets.get(lease.market)
    row = view.instance(lease.instance_id) if view is not None else None
    known = row.inet_down_mbps if row is not None else 0.0
    speed = max(known, LEAST_MBPS) if known > 0 else max(work.requirements.min_inet_down_mbps or 0.0, SLOW_MBPS)
    expected = timedelta(hours=useful_hour.loading_hours(work.image_gb, speed))
    return _loaded(fleet, lease) > LOADING_SPARE + LOADING_FACTOR * expected


def _loaded(fleet: Fleet, lease: Lease) -> timedelta:
    return fleet.now - (lease.loads_since or lease.state_since)


def _why_overdue(fleet: Fleet, lease: Lease) -> str:
    if lease.loading_since is None:
        return f"loading since {lease.state_since:%H:%M}, which is too long"
    return f"it has loaded for {span_text.minutes(_loaded(fleet, lease))}, silent times not counted, which is too long"


def view_or_proposal(fleet: Fleet, place: Slot, in_force: InForce) -> SlotView | Proposal:
    """Return the slot for the strategy, or the proposal that comes before any strategy."""
    kill = in_force.holds.get((Word.KILL, EVERYTHING))
    if kill is not None:
        return _hold(place, "stopped", f"stopped after {kill.ground}; `gpubid kill --lift` ends that")
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
    cooldown = cool_off(place, in_force)
    if cooldown is not None:
        return Proposal(place, None, cooldown)
    return _hold(place, "slot_rests", f"in cooldown after {why}") if why else SlotView(place, None)


def _taken(fleet: Fleet, place: Slot, pair: Sequence[Lease], in_force: InForce) -> SlotView | Proposal:
    lease, arriving = pair[0], pair[1] if len(pair) > 1 else None
    if lease.state is LeaseState.MISSING:
        return _hold(
            place, "missing", f"instance {lease.instance_id} is not listed; it counts as running until proven gone"
        )
    if unsettled := _unsettled(fleet, lease):
        return _hold(place, "settling", unsettled)
    if lease.state is LeaseState.EXITED:
        reason = Reason("container_exit", "the container ended: pause it, nobody uses it")
        return Proposal(place, IntentKind.PAUSE, reason, lease=lease)
    stuck = _kept_although_stuck(fleet, lease, in_force)
    # While a move goes on, the new lease takes over.
    if stuck is None:
        stuck = _restarted(fleet, lease, in_force) if arriving is None else _continued(fleet, arriving, in_force)
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
    return SlotView(place, lease, arriving, down, _runs(place, in_force) if may_move or _has_choice(fleet) else 0)


def _restarted(fleet: Fleet, lease: Lease, in_force: InForce) -> Proposal | None:
    """Return the stop or the start of a restart in place, or None if none is due or its market is dark."""
    if not fleet.is_seen(lease):
        return None
    if liveness.is_stop_due(lease):
        said = lease.end_reason.partition(": ")[2]
        of_service = f"its service does not answer ({said}): restart {lease.restarts} in place"
        is_service = lease.unhealthy_since is not None
        reason = Reason(RESTART, of_service if is_service else f"{said} (restart {lease.restarts})")
        return Proposal(lease.slot, IntentKind.PAUSE, reason, lease=lease)
    if liveness.is_start_due(lease, fleet.now) and cooldowns.RESUME not in _refused(fleet, lease, in_force):
        reason = Reason(RESTART, "it was stopped to be started anew, and is started again")
        return Proposal(lease.slot, IntentKind.RESUME, reason, lease=lease)
    return None


def _continued(fleet: Fleet, arriving: Lease, in_force: InForce) -> Proposal | None:
    """Return the start of a move's new lease that we stopped, as by a kill that is lifted; None if none is due.

    The slot waits for that lease, so that no strategy would start either of the two.
    """
    is_stopped = arriving.state is LeaseState.PAUSED and arriving.paused_by_us and fleet.is_seen(arriving)
    if not is_stopped or _is_kept(arriving, in_force) or cooldowns.RESUME in _refused(fleet, arriving, in_force):
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
    return Reason("cool_off", f"one move in {COOL_OFF}: {cooldown}") if cooldown else None


def _kept_although_stuck(fleet: Fleet, lease: Lease, in_force: InForce) -> Proposal | None:
    """Return a hold of a slot whose lease cannot start and was not released."""
    if _is_over(fleet, lease):
        sentence = (
            f"its host rented it out until {_end(fleet, lease)}, so it cannot start again; its disk may not be lost"
        )
        return _hold(lease.slot, "contract_end", f"{sentence}: copy it, then `gpubid release {lease.lease_id}`")
    if _is_stuck(lease, in_force):
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
    return frozenset(each.where for each in current if cooldowns.has_no_way(each, fleet.now))


def _hold(place: Slot, code: str, sentence: str) -> Proposal:
    return Proposal(place, None, Reason(code, sentence))
