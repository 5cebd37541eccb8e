"""Filling of the memory from the tables, at start and after a failed commit."""

import datetime as dt

import sqlalchemy as sa

from agent.domain import warm_time
from agent.domain.market.gpu import GpuModel
from agent.domain.market.interruption import Loss
from agent.domain.money import ZERO
from agent.domain.record import metered_volume
from agent.domain.record.metered_volume import MeteredVolume
from agent.domain.record.task_account import TaskAccount
from agent.domain.slot import Slot
from agent.domain.slot_demand import HandDemand
from agent.domain.work.deadline import Start
from agent.domain.work.sign_of_life import ShortStarts
from agent.ledger.connection_thread import rows
from agent.ledger.memory import LOSSES_KEPT, STARTS_KEPT, Memory
from agent.ledger.single_facts import (
    ABSENT_UNTIL,
    ACCOUNT,
    ALERTED,
    COUNTED_AGAIN,
    FIRST_SEEN,
    HAND_DEMAND,
    LOST_RUNS,
    REFERENCE_DLPERF,
    SHORT_STARTS,
    WAS_LOST,
)
from agent.ledger.tables import credit_marks as credits_
from agent.ledger.tables import (
    decisions,
    event_rows,
    expiring_rows,
    guard_rows,
    host_rows,
    intent_rows,
    lease_rows,
    pool_rows,
    progress_rows,
    schema,
    spend_rows,
)
from agent.ledger.tables.event_rows import INTERRUPTED

MOST_LOSSES = 10_000

_CHECKS = (guard_rows.LAST_CHECKS, guard_rows.OPEN_CHECKS)


def recall(link: sa.Connection, now: dt.datetime) -> Memory:
    """Return the memory from the tables, with spend since the first day of last month, as clocks may be set back.

    If the clock is ahead at the start, nothing is dropped: records that seem over are in force once it is correct.
    """
    memory, now = Memory(), _no_later_than_recorded(link, now)
    _recall_leases(link, memory)
    for row in rows(link, intent_rows.OPEN):
        memory.put_intent(intent_rows.intent_of(row))
    _recall_spend(link, memory, now)
    for row in rows(link, expiring_rows.ALL):
        record = expiring_rows.record_of(row)
        memory.expiring[record.place] = record
    hosts = (host_rows.host_of(row) for row in rows(link, host_rows.HOSTS))
    memory.put_hosts({(host.market, host.host_id): host for host in hosts})
    for row in rows(link, pool_rows.POOLS):
        known = pool_rows.capacity_of(row)
        memory.capacity[known.market, known.pool] = known
    for row in rows(link, decisions.last_per_slot()):
        memory.decisions[Slot(row["workload"], row["slot"])] = decisions.decision_of(row).gist
    runs = (guard_rows.run_of(row) for row in rows(link, guard_rows.RUNS))
    memory.guard_runs = sorted(runs, key=lambda run: (run.begun_at, run.run))
    told_by = (guard_rows.LAST_FIGURES, guard_rows.OPEN_FIGURES)
    figures = (guard_rows.figures_of(row) for query in told_by for row in rows(link, query))
    memory.guard_figures = {told.lease_id: told for told in sorted(figures, key=lambda told: told.told_at)}
    given = (guard_rows.notice_of(row) for row in rows(link, guard_rows.LAST_NOTICES))
    memory.guard_notices = tuple(sorted(given, key=lambda notice: notice.told_at))
    checks = (guard_rows.check_of(row) for query in _CHECKS for row in rows(link, query))
    memory.host_checks = {each.lease_id: each for each in sorted(checks, key=lambda each: each.checked_at)}
    memory.put_signs({sign.key: sign for sign in (guard_rows.sign_of(row) for row in rows(link, guard_rows.SIGNS))})
    memory.losses = _losses(link, now)
    _recall_progress(link, now, memory)
    single = meta(link)
    memory.accounts = _under(ACCOUNT, single)
    memory.credits = {market: credits_.of(text) for market, text in _under(credits_.KEY, single).items()}
    memory.absent_until = dt.datetime.fromisoformat(single[ABSENT_UNTIL]) if ABSENT_UNTIL in single else None
    memory.hand_demands = {name: _hand_demand(name, text) for name, text in _under(HAND_DEMAND, single).items()}
    memory.volumes = volumes(single)
    memory.warm = {name: warm_time.decoded(text) for name, text in _under(warm_time.KEY, single).items()}
    memory.dlperf = dict(_slice_dlperf(*each) for each in _under(REFERENCE_DLPERF, single).items())
    memory.first_seen = {name: dt.datetime.fromisoformat(at) for name, at in _under(FIRST_SEEN, single).items()}
    memory.was_lost, memory.counted_again = WAS_LOST in single, set(_under(COUNTED_AGAIN, single))
    memory.has_lost_runs = LOST_RUNS in single
    starts = single.get(SHORT_STARTS, "0")
    memory.short_starts = ShortStarts(int(starts.rstrip(ALERTED)), is_alerted=starts.endswith(ALERTED))
    return memory


def _slice_dlperf(name: str, text: str) -> tuple[tuple[GpuModel, int], float]:
    gpus, _, model = name.partition("/")
    return (GpuModel(model), int(gpus)), float(text)


def _hand_demand(workload: str, text: str) -> HandDemand:
    slots, _, until = text.partition(" ")
    return HandDemand(workload, int(slots), dt.datetime.fromisoformat(until))


def _recall_leases(link: sa.Connection, memory: Memory) -> None:
    for row in rows(link, lease_rows.OPEN):
        memory.put_lease(lease_rows.lease_of(row))
    for row in rows(link, lease_rows.LAST_ENDED):
        memory.put_vacated(Slot(row["workload"], row["slot"]), row["ended_at"], row["market"])
    for row in rows(link, lease_rows.BY_SLOT):
        place, spent = Slot(row["workload"], row["slot"]), row["spent"]
        memory.tasks[place] = TaskAccount(row["began_at"], ZERO if spent is None else spent)
    for row in rows(link, lease_rows.RAN):
        memory.put_ran(row["workload"], row["ran_micros"])


def _recall_progress(link: sa.Connection, now: dt.datetime, memory: Memory) -> None:
    memory.progress = {row["workload"]: progress_rows.progress_of(row) for row in rows(link, progress_rows.PROGRESS)}
    memory.speeds = {
        (row["workload"], row["gpu"]): progress_rows.speed_of(row) for row in rows(link, progress_rows.SPEEDS)
    }
    for row in rows(link, progress_rows.first_runs(now - STARTS_KEPT)):
        seconds = max((row["at"] - row["opened_at"]).total_seconds(), 0.0)
        memory.put_start(Start(row["lease_id"], row["market"], row["at"], seconds))


def _recall_spend(link: sa.Connection, memory: Memory, now: dt.datetime) -> None:
    for row in rows(link, spend_rows.daily(_first_of_last_month(now))):
        memory.add_spend(row["day"], (row["workload"], row["market"]), row["amount"])
    for row in rows(link, spend_rows.ever()):
        memory.totals[row["workload"], row["market"]] = row["amount"]


def _losses(link: sa.Connection, now: dt.datetime) -> list[Loss]:
    found_rows = rows(link, event_rows.between(now - LOSSES_KEPT, None, None, (INTERRUPTED,), MOST_LOSSES))
    losses = (event_rows.loss_of(event_rows.event_of(row)) for row in reversed(list(found_rows)))
    return [loss for loss in losses if loss is not None]


def _under(prefix: str, single: dict[str, str]) -> dict[str, str]:
    return {key.removeprefix(prefix): value for key, value in single.items() if key.startswith(prefix)}


def volumes(single: dict[str, str]) -> dict[str, MeteredVolume]:
    """Return the network volumes among the single facts, by name."""
    return {name: metered_volume.decoded(text) for name, text in _under(metered_volume.KEY, single).items()}


def meta(link: sa.Connection) -> dict[str, str]:
    """Return everything in the table of single facts."""
    return {row["key"]: row["value"] for row in rows(link, sa.select(schema.meta))}


def _no_later_than_recorded(link: sa.Connection, now: dt.datetime) -> dt.datetime:
    """Return `now`, or the end of the last day on which anything was spent if that is earlier."""
    last: dt.date | None = link.execute(spend_rows.LAST_DAY).scalar()
    if last is None:
        return now
    return min(now, dt.datetime.combine(last, dt.time.max, dt.UTC))


def _first_of_last_month(now: dt.datetime) -> dt.date:
    today = now.astimezone(dt.UTC).date()
    return (today.replace(day=1) - dt.timedelta(days=1)).replace(day=1)
