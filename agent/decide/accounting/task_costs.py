"""What the finished tasks of an array cost and how long they took, and what the others will cost by that.

Invariants:
1. Nothing is said from fewer than `LEAST` finished tasks.
2. An interval is one of the median from order statistics: it holds with at least `CONFIDENCE`, whatever the law of the
   costs, if tasks are alike.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.decide.accounting import meter
from agent.domain.money import ZERO, Usd
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.record.lease import Lease
from agent.domain.record.task_account import TaskAccount
from agent.domain.slot import Slot
from agent.domain.work.workload import Workload, new_names

LEAST = 5
"""The least number of finished tasks from which the others are judged."""
CONFIDENCE = 0.9


@dataclass(frozen=True, slots=True)
class Middle:
    """A median, with the ends of its interval."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ArrayFigures:
    """How far an array is. The cost and the hours that it still needs are None while they are not known."""

    slots: int
    done: int
    live: int
    held: int
    dollars_to_go: Middle | None
    hours_to_go: Middle | None


def middle(values: Sequence[float]) -> Middle | None:
    """Return the median of values with its interval; None if there are too few values."""
    number, ordered = len(values), sorted(values)
    if number < LEAST:
        return None
    rank = _rank(number)
    half = number // 2
    median = ordered[half] if number % 2 else (ordered[half - 1] + ordered[half]) / 2
    return Middle(median, ordered[rank], ordered[number - 1 - rank])


def _rank(number: int) -> int:
    """Return the highest rank from both ends at which the interval still holds with the wanted confidence."""
    outside, rank = 0.0, -1
    while True:
        outside += math.comb(number, rank + 1) / 2**number
        if 2 * outside > 1 - CONFIDENCE:
            return max(rank, 0)
        rank += 1


def costs(done: AbstractSet[Slot], accounts: Mapping[Slot, TaskAccount]) -> Middle | None:
    """Return the cost of a finished task in micro-dollars."""
    return middle([float(accounts[place].spent.micros) for place in done if place in accounts])


def hours(done_at: Mapping[Slot, datetime], accounts: Mapping[Slot, TaskAccount]) -> Middle | None:
    """Return the hours of a finished task, from its first rent until it was done."""
    return middle([_hours(at - accounts[place].began_at) for place, at in done_at.items() if place in accounts])


def renamed(accounts: Mapping[Slot, TaskAccount], workloads: Iterable[Workload]) -> Mapping[Slot, TaskAccount]:
    """Return the accounts with those of a workload's old name as its own. Ended leases keep the old name."""
    names = new_names(workloads)
    if not names:
        return accounts
    found: dict[Slot, TaskAccount] = {}
    for place, account in accounts.items():
        mine = Slot(names.get(place.workload, place.workload), place.index)
        other = found.get(mine)
        began, spent = (account.began_at, ZERO) if other is None else (other.began_at, other.spent)
        found[mine] = TaskAccount(min(account.began_at, began), account.spent + spent)
    return found


def marked(work: Workload, word: Word, holds: Iterable[OperatorHold], now: datetime) -> Mapping[Slot, datetime]:
    """Return the slots of a workload under a hold of that word, with the instant from which each is in force."""
    found: dict[Slot, datetime] = {}
    for each in holds:
        target = each.target
        if each.word is not word or target.workload != work.name or each.is_over(now):
            continue
        if target.index is None:
            found = dict.fromkeys(work.places, each.since) | found
        elif target.index < work.slots:
            found[Slot(work.name, target.index)] = each.since
    return found


def spent_on(place: Slot, leases: Sequence[Lease], accounts: Mapping[Slot, TaskAccount], now: datetime) -> Usd:
    """Return what a slot has cost up to now; `leases` are its open ones."""
    metered = accounts[place].spent if place in accounts else Usd(0)
    return metered + meter.outstanding(leases, now)


def spent_on_each(
    places: Iterable[Slot],
    leases: Iterable[Lease],
    accounts: Mapping[Slot, TaskAccount],
    now: datetime,
    was: Mapping[str, str],
) -> dict[Slot, Usd]:
    """Return what each slot has cost up to now. `was` has earlier names of workloads, under which it may have cost."""
    by_slot: dict[Slot, list[Lease]] = {}
    for lease in leases:
        by_slot.setdefault(lease.slot, []).append(lease)

    def spent(place: Slot) -> Usd:
        return spent_on(place, by_slot.get(place, ()), accounts, now)

    old = {place: was.get(place.workload) for place in places}
    return {place: spent(place) + (spent(Slot(name, place.index)) if name else ZERO) for place, name in old.items()}


def figures(
    work: Workload,
    leases: Sequence[Lease],
    holds: Sequence[OperatorHold],
    accounts: Mapping[Slot, TaskAccount],
    now: datetime,
) -> ArrayFigures:
    """Return how far an array is. Slots that are held for a person count neither as live nor in what is to go."""
    done_at = marked(work, Word.DONE, holds, now)
    held = marked(work, Word.HELD, holds, now).keys() - done_at.keys()
    by_slot: dict[Slot, list[Lease]] = {}
    for lease in leases:
        if lease.is_open and lease.slot.workload == work.name and lease.slot not in done_at and lease.slot not in held:
            by_slot.setdefault(lease.slot, []).append(lease)
    waiting = work.slots - len(done_at) - len(held) - len(by_slot)
    spent = [float(spent_on(place, mine, accounts, now).micros) for place, mine in by_slot.items()]
    cost = costs(done_at.keys(), accounts)
    ran = [now - min(lease.opened_at for lease in mine) for mine in by_slot.values()]
    took = hours(done_at, accounts)
    return ArrayFigures(
        slots=work.slots,
        done=len(done_at),
        live=len(by_slot),
        held=len(held),
        dollars_to_go=None if cost is None else _each(cost, lambda one: _left(one, waiting, spent) / 1e6),
        hours_to_go=None if took is None else _each(took, lambda one: _makespan(one, waiting, ran, work.most_live)),
    )


def _each(one: Middle, change: Callable[[float], float]) -> Middle:
    return Middle(change(one.median), change(one.low), change(one.high))


def _left(each: float, waiting: int, spent: Sequence[float]) -> float:
    """Return the cost of the tasks that wait, and what the live ones lack of the cost of one."""
    return waiting * each + sum(max(each - so_far, 0.0) for so_far in spent)


def _makespan(each: float, waiting: int, ran: Sequence[timedelta], lanes: int) -> float:
    """Return the hours until the last task is done, if each takes as long and `lanes` are live at once."""
    left = [max(each - _hours(so_far), 0.0) for so_far in ran]
    return max((waiting * each + sum(left)) / max(lanes, 1), each if waiting else 0.0, *left, 0.0)


def _hours(span: timedelta) -> float:
    return span / timedelta(hours=1)
