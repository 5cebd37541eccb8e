"""Releases that no strategy decides: unfinished ones, failed starts, leases that cannot start, old leases of moves."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from agent.decide.limits import limits
from agent.decide.operators import operator_holds
from agent.decide.pricing import cooldowns, useful_hour
from agent.decide.pricing.cooldowns import InForce
from agent.decide.reconcile import readback, workload_end
from agent.decide.reconcile.guards import guard_refusal, untaken_task
from agent.decide.reconcile.probes import idleness, liveness, lost_move, stalls, taken_over
from agent.decide.reconcile.tasks import failed_tasks
from agent.domain import span_text
from agent.domain.fleet import Fleet
from agent.domain.record import hold
from agent.domain.record.cooldown import CooldownKind
from agent.domain.record.hold import Word
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.record.tally import Counted
from agent.domain.work.decision import Reason, Release
from agent.domain.work.idle_rule import OnIdle
from agent.domain.work.only_copy import may_leave, may_leave_at_a_price
from agent.domain.work.workload import Workload

RELEASE_AGAIN = "release_again"
"""The code of a repeated release, because the market has not confirmed the first."""
OLD_IS_BACK = "old_is_back"
"""The code of the release of a move's new lease that is not needed any more."""
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
        workload_end.NO_CAPACITY,
        cooldowns.USED_BEFORE,
        stalls.NOT_READY,
        guard_refusal.GUARD_REFUSED,
        liveness.UNHEALTHY_HOST,
        liveness.UNHEALTHY,
        stalls.STALLED_HOST,
        stalls.STALLED,
    )
    return next((code for code in codes if lease.end_reason.startswith(code)), workload_end.START_FAILED)


def _fast_exit(fleet: Fleet, lease: Lease, in_force: InForce) -> Reason | None:
    """Return why a lease whose container ended at once is released for another try.

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
    work = fleet.workload(lease.slot.workload)
    is_elsewhere = work is not None and workload_end.is_avoided(work, lease.host, in_force)
    again = "on another host" if is_elsewhere else "again"
    return Reason(workload_end.FAST_EXIT, f"its container ended right after the start: it is tried {again}")


def _stuck(fleet: Fleet, lease: Lease, in_force: InForce) -> Reason | None:
    """Return why a stopped lease that cannot start is released; None if its disk is needed or kept."""
    work = fleet.workload(lease.slot.workload)
    # If its market was not listed in this cycle, or is listed and not recorded, the lease may run by now.
    if not fleet.is_seen(lease) or fleet.is_listed_running(lease):
        return None
    if work is None or not may_leave(lease, work) or is_kept(lease, in_force):
        return None
    if is_over(fleet, lease):
        return Reason(
            "contract_end", f"its host rented it out until {contract_end(fleet, lease)}: it cannot start again"
        )
    if _is_never_started(lease, in_force):
        # Even if the request is at fault and not the host, another rent is the only way to run.
        return Reason("host_full", "its market does not take the order to start it: it is released for another host")
    why = in_force.why_in_cooldown(CooldownKind.FULL, lease.lease_id)
    if not is_stuck(lease, in_force):
        return None
    return Reason("host_full", f"it cannot start on its host after {why}: it is released for another one")


def _idle(fleet: Fleet, lease: Lease, in_force: InForce) -> Reason | None:
    """Return why a lease with idle GPUs is released, once its slot is held for that."""
    work = fleet.workload(lease.slot.workload)
    if work is None or work.idle.then is not OnIdle.RELEASE or not may_leave(lease, work) or not fleet.is_seen(lease):
        return None
    held = in_force.holds.get((Word.HELD, hold.of_slot(lease.slot)))
    if held is None or not held.ground.startswith(idleness.GROUND):
        return None
    return Reason("idle", operator_holds.reason(held, work).sentence)


def _is_never_started(lease: Lease, in_force: InForce) -> bool:
    """Return whether the market has refused the start of a lease again and again since it stopped."""
    if lease.state is not LeaseState.PAUSED or lease.paused_by_us:
        return False
    tallies = in_force.tallies_of(Counted.UNTAKEN, lease.lease_id)
    # A refusal because of the account, or one that contradicts the listing, is no reason to give up a disk.
    refused = (each for each in tallies if each.where in _STARTS and each.ground in cooldowns.OF_THE_REQUEST)
    return any(each.count >= cooldowns.UNTAKEN_MOST and each.since >= lease.state_since for each in refused)


def is_kept(lease: Lease, in_force: InForce) -> bool:
    """Return whether a person's order stops a lease and keeps its disk."""
    return hold.keeps_disk(lease, in_force.holds)


def is_stuck(lease: Lease, in_force: InForce) -> bool:
    """Return whether a stopped lease waits because its host is full."""
    return lease.state is LeaseState.PAUSED and in_force.why_in_cooldown(CooldownKind.FULL, lease.lease_id) is not None


def is_over(fleet: Fleet, lease: Lease) -> bool:
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


def contract_end(fleet: Fleet, lease: Lease) -> str:
    """Return the end of a lease's contract in words."""
    return f"{_ends_at(fleet, lease):%Y-%m-%d %H:%M} UTC"


def _moved_away(fleet: Fleet, held: Lease, work: Workload | None) -> Reason | None:
    """Return why one lease of a move is released: the old one if the new one works, or a new one that was lost."""
    pair = [lease for lease in fleet.leases_of(held.slot) if lease.state is not LeaseState.RELEASING]
    others = [lease for lease in pair if lease is not held]
    if not others or work is None:
        return None
    if held is pair[-1]:
        if lost_move.is_lost(fleet, held, work):
            return Reason("move_lost", "lost before it was ready; the old lease stays")
        return _called_off(fleet, held, pair[0], work)
    # The strategy priced the work since the old lease's last checkpoint before it rented the new one.
    if any(taken_over.has_taken_over(fleet, lease, work) for lease in others) and may_leave_at_a_price(held, work):
        return Reason("moved", "the workload runs on another host")
    is_stopped = held.state is LeaseState.PAUSED and held.paused_by_us
    if is_stopped and lost_move.is_tied_to(fleet, pair[-1], work) and may_leave_at_a_price(held, work):
        return Reason("moved", f"its work went on on host {pair[-1].host_id}, whose disk may not go")
    return None


def _called_off(fleet: Fleet, new: Lease, old: Lease, work: Workload) -> Reason | None:
    """Return why the new lease of a move goes before it ran: the old one works again, and its disk may not be left."""
    if new.has_run or may_leave_at_a_price(old, work) or not taken_over.has_taken_over(fleet, old, work):
        return None
    return Reason(OLD_IS_BACK, f"the old lease on host {old.host_id} works again, and its disk may not be left")


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
