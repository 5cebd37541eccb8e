"""The workloads that need offers now.

Search rows are limited, so mostly a slot without a running lease is the reason.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from agent.decide import slots
from agent.decide.deadline import deadline_progress as tasks
from agent.decide.demand import waiting_slots
from agent.decide.limits import limits
from agent.decide.limits.limits import Limits
from agent.decide.moves import fallback_markets, recovery
from agent.decide.operators import operator_holds, reload
from agent.decide.pricing import cooldowns, protections, useful_hour
from agent.decide.pricing.cooldowns import InForce
from agent.decide.run_times import run_time_verdict, running_limits
from agent.decide.strategy import Tuned
from agent.domain.fleet import Fleet, MarketView
from agent.domain.market.host import HostKey
from agent.domain.market.tenure import Tenure
from agent.domain.record.cooldown import CooldownKind
from agent.domain.record.hold import EVERYTHING, Word
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.workload import Workload

PRESSED_HOURS = 0.5
"""Hours of slack below which on-demand prices must be known for the last call. With the shipped `reserve` and
`start_delay` that is one hour before the work would be late."""
PRESSED_EVERY = 120.0
"""Seconds between searches with so little slack: the time for which an offer may be used."""
DEAR_SHARE = 0.5
"""For a lease at or above this share of the slot's worth, better offers are searched more often. Chosen in
rehearsals."""
START_MBPS = 100.0
"""Bandwidth of the host of an on-demand offer that is not known yet, unless the workload requires more. Assumed: few
hosts have less."""
LIMITS = "limits"
COOLDOWNS_OF_RENTS = (CooldownKind.MARKET, CooldownKind.REJECTED, CooldownKind.STORM, CooldownKind.STARTS)
UNTUNED: Mapping[str, Tuned] = {}
_HOUR = timedelta(hours=1)
DOWN = frozenset({LeaseState.PAUSED, LeaseState.OFFLINE, LeaseState.RELEASING})


@dataclass(frozen=True, slots=True)
class Need:
    """A workload that has to choose.

    `key` changes when there is a new choice to make. `held_hosts` are the hosts of its paused leases, whose own price
    decides whether to stay. `bars` has, for each market, the reasons that forbid all rents there now. `is_pressed` says
    that a deadline may soon force it to on-demand capacity.
    """

    workload: Workload
    key: tuple[str, ...]
    held_hosts: tuple[HostKey, ...]
    bars: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    is_pressed: bool = False

    def bars_at(self, market: str) -> tuple[str, ...]:
        """Return the bars at one market; when one of them ends, offers are searched at once."""
        return self.bars.get(market, ())


def needs(
    fleet: Fleet, caps: Limits | None = None, faulty: frozenset[str] = frozenset(), tuned: Mapping[str, Tuned] = UNTUNED
) -> tuple[Need, ...]:
    """Return the workloads with a choice to make, in the order of the configuration.

    `tuned` are the strategies by name: their numbers say how much time a deadline job keeps free.
    """
    fleet, in_force = fallback_markets.with_warm_slots(fleet, tuned), cooldowns.in_force(fleet)
    if (Word.KILL, EVERYTHING) in in_force.holds:
        return ()
    needed = [
        need for work in fleet.workloads if (need := _need(fleet, work, in_force, tuned.get(work.strategy))) is not None
    ]
    if not needed:
        return ()
    now_standing, most = limits.committed_by_fleet(fleet), caps or Limits()

    def bars(need: Need, view: MarketView) -> tuple[str, ...]:
        is_forbidden = limits.forbids_all(view, need.workload, now_standing, most, faulty)
        cooldowns_now = (*_cool_offs(need, in_force), *_cooldowns(need.workload, view.market, in_force))
        return (*cooldowns_now, *([LIMITS] if is_forbidden else []))

    views = fleet.markets.items()
    return tuple(replace(need, bars={name: bars(need, view) for name, view in views}) for need in needed)


def _cool_offs(need: Need, in_force: InForce) -> Iterator[str]:
    """Yield the cool-offs of the slots with a choice to make; they apply at every market."""
    for place in need.workload.places:
        if f"{place}" in need.key and slots.cool_off(place, in_force) is not None:
            yield f"{CooldownKind.COOL_OFF.value} {place}"


def _cooldowns(work: Workload, market: str, in_force: InForce) -> Iterator[str]:
    """Yield the cooldowns of a market, or of its models that a workload accepts."""
    models = work.requirements.gpu_models
    mine = {market, *(protections.of_model(market, model) for model in models)}
    for kind in COOLDOWNS_OF_RENTS:
        for key in sorted(in_force.cooling.get(kind, {})):
            if key in mine or (not models and key.startswith(f"{market}/")):
                yield f"{kind.value} {key}"


def expensive_workloads(fleet: Fleet) -> frozenset[str]:
    """Return the workloads with an expensive lease: on demand, or near their price.

    They are searched for more often.
    """
    return frozenset(
        lease.slot.workload
        for lease in fleet.leases
        if lease.state is LeaseState.RUNNING
        and not lease.is_held
        and _is_dear(lease, fleet.workload(lease.slot.workload))
    )


def _is_dear(lease: Lease, work: Workload | None) -> bool:
    if lease.tenure is Tenure.ON_DEMAND:
        return True
    return work is not None and lease.gpu_rate + lease.disk_rate >= work.price_of(lease.gpu).scaled(DEAR_SHARE)


def _need(fleet: Fleet, work: Workload, in_force: InForce, tuned: Tuned | None) -> Need | None:
    key: list[str] = []
    hosts: list[HostKey] = []
    is_any_pressed = False
    waiting = waiting_slots.of(fleet, work, in_force.holds)
    for place in work.places:
        if place in waiting or operator_holds.why_idle(fleet, place, in_force.holds) is not None:
            continue
        if run_time_verdict.why_idle(fleet, place) is not None:
            continue
        leases = fleet.occupants_of(place)
        is_pressed = _is_pressed(fleet, work, leases, tuned)
        may_move = len(leases) == 1 and (is_pressed or _is_left(leases[0], work, fleet))
        is_served = any(not _is_down(lease) for lease in leases) and not may_move
        if is_served or fleet.paying_intent(place) is not None:
            continue
        # Near the last call prices are searched again every `PRESSED_EVERY` seconds.
        key += [f"{int(fleet.monotonic // PRESSED_EVERY)}"] if is_pressed else []
        is_any_pressed |= is_pressed
        key += [f"{place}", *(f"{lease.lease_id}@{lease.state_since.isoformat()}" for lease in leases)]
        hosts += [lease.host for lease in leases if lease.state is LeaseState.PAUSED]
    # A fallback that opens is a new choice: the offers of the searches before are too old by then.
    key += ["fallback"] if key and work.fallback.markets and not fallback_markets.closed(fleet, work) else []
    return Need(work, tuple(key), tuple(hosts), is_pressed=is_any_pressed) if key else None


def _is_pressed(fleet: Fleet, work: Workload, leases: Sequence[Lease], tuned: Tuned | None) -> bool:
    """Return whether a deadline may soon force a slot to on-demand capacity, which it does not have yet.

    The offer for that is not known yet, so the last call on each accepted model counts. Between two of them hourly
    prices suffice: search rows are rationed.
    """
    task = tasks.of(fleet, work)
    if task is None or task.todo <= 0 or any(lease.tenure is Tenure.ON_DEMAND and lease.is_live for lease in leases):
        return False
    reserve, start = tuned.params.kept_free() if tuned is not None else (timedelta(), timedelta())
    free = reserve / _HOUR + max(start / _HOUR, task.start_hours, _loading_hours(work))
    slacks = [
        task.left - task.todo / speed - tasks.restart_hours(work, task, speed) - free
        for speed in _speeds(task, work, leases)
    ]
    return max(slacks) < PRESSED_HOURS or any(abs(slack) < PRESSED_HOURS for slack in slacks)


def _speeds(task: tasks.Task, work: Workload, leases: Sequence[Lease]) -> list[float]:
    """Return the speeds at which a slot's work may go on: of its leases, and of the models that it accepts."""
    models = work.requirements.gpu_models
    known = [task.speed(model, task.typical.get(model, 0.0)) for model in models] or [1.0]
    return [*known, *map(task.of_lease, leases)]


def _loading_hours(work: Workload) -> float:
    """Return the hours of a start on a host of which only the workload's requirements are known."""
    speed = max(work.requirements.min_inet_down_mbps or 0.0, START_MBPS)
    return useful_hour.loading_hours(work.image_gb + work.dataset_gb, speed) / useful_hour.start_success(None)


def _is_left(lease: Lease, work: Workload, fleet: Fleet) -> bool:
    """Return whether a lease will be moved while it runs."""
    is_moved = reload.moves(lease, work) or running_limits.moves(fleet, lease, work)
    ends = lease.notice_at is not None or recovery.ends_soon(lease, fleet.now)
    return is_moved or (lease.state is LeaseState.RUNNING and ends)


def _is_down(lease: Lease) -> bool:
    return lease.state in DOWN
