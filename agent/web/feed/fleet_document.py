"""The document of the feed: ledger, last cycle and daemon, read once, as structs of the read model.

Slots are found by key, so that the cost of a document grows only with its rows, also at a thousand slots.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from agent import __version__
from agent.config.settings import Config
from agent.cycle import Pass, Rules
from agent.decide import explain
from agent.decide.accounting import phases, unmetered_cost, volume_metering
from agent.decide.limits import committed_spend, credit_watch
from agent.decide.limits.committed_spend import CommittedSpend
from agent.decide.operators import operator_holds
from agent.decide.operators.notices import Notice
from agent.domain import money
from agent.domain.market.tenure import Tenure
from agent.domain.record import hold
from agent.domain.record.account import Line
from agent.domain.record.budget import EVERYTHING, Window
from agent.domain.record.event import Event
from agent.domain.record.guard_figures import GuardFigures
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.record.shadow_account import Counted
from agent.domain.slot import Slot
from agent.domain.work.workload import Workload
from agent.ledger.memory import Recollection
from agent.ledger.reader import Reader
from agent.ledger.tables.decisions import RecordedDecision
from agent.markets.text import clean
from agent.web.feed import money_model, price_trail, read_model, runway, slot_model, workload_money
from agent.web.feed.price_trail import Trail
from agent.web.reading import slot_leases, status_json, verb_json
from agent.web.reading.workload_rows import array_json, demand_json, run_times_json

EVENTS = 30
MOST_ALERTS = 100
LONGEST_SENTENCE = 600
STALE_POLLS = 4


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of a document at `now`: rules and file in force, the ledger's memory, the last cycle, notices.

    `late` and `refused` are the daemon's late jobs and the mistakes of its last reload. `savings` are the last figures.
    """

    rules: Rules
    config: Config
    known: Recollection
    seen: Pass | None
    now: datetime
    notices: Sequence[Notice] = ()
    late: Sequence[str] = ()
    refused: Sequence[str] = ()
    savings: money_model.Savings | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """The fleet without its rows, also shown first on the page. Its cost does not grow with the number of slots."""

    alerts: list[read_model.Alert]
    notes: list[read_model.Alert]
    money: money_model.Money
    last_cycle_at: datetime | None
    is_stale: bool


async def summary(of: Sources, reader: Reader) -> Summary:
    """Return alerts, notes, money, and the age of the last cycle."""
    metered = await reader.sums(of.now.date(), of.now.date())
    known, caps, now = of.known, of.rules.caps, of.now
    standing = committed_spend.committed(
        known.leases, known.intents, known.total, known.spend_of, now, volumes=known.volumes
    )
    daemon = status_json.daemon_of(of.seen, of.config, of.late, of.refused)
    notes, troubles = status_json.conditions(known, standing, of.notices, caps, now, daemon)
    last = of.seen.fleet.now if of.seen is not None else None
    return Summary(
        alerts=[_alert(each) for each in troubles[:MOST_ALERTS]],
        notes=[
            _alert(each) for each in (*notes, *run_times_json.notices(of.rules.workloads, known, now))[:MOST_ALERTS]
        ],
        money=_money(of, standing, metered),
        last_cycle_at=last,
        is_stale=is_stale(last, of.config.poll.total_seconds(), now),
    )


async def document(of: Sources, reader: Reader) -> read_model.Fleet:
    """Return the fleet as of `of.now`."""
    known, first = of.known, await summary(of, reader)
    places = [place for work in of.rules.workloads for place in work.places]
    rows = await _slots(places, of, reader)
    views_of = of.seen.fleet.markets if of.seen is not None else {}
    return read_model.Fleet(
        version=__version__,
        as_of=of.now,
        last_cycle_at=first.last_cycle_at,
        poll_seconds=of.config.poll.total_seconds(),
        is_stale=first.is_stale,
        is_well=not first.alerts,
        is_killed=operator_holds.kill_of_everything(known.holds, of.now) is not None,
        alerts=first.alerts,
        notes=first.notes,
        refused_configuration=[_sentence(each) for each in of.refused[:MOST_ALERTS]],
        markets=[read_model.Market(view.market, view.is_fresh, view.listed_at) for _, view in sorted(views_of.items())],
        money=first.money,
        wanted=len(places),
        running=sum(row.is_configured and row.state == LeaseState.RUNNING.value for row in rows),
        in_doubt=len(known.intents),
        arrays=[read_model.Array(**row) for row in array_json.rows(of.rules.workloads, known, of.now)],
        demands=demands(of.seen),
        slots=rows,
        events=[_happened(each) for each in await reader.events(limit=EVENTS)],
    )


def demands(seen: Pass | None) -> list[read_model.Demand]:
    """Return the wanted slots of each demand, by the last pass."""
    return msgspec.convert(demand_json.rows(seen.fleet if seen is not None else None), list[read_model.Demand])


def is_stale(last_cycle_at: datetime | None, poll_seconds: float, now: datetime) -> bool:
    """Return whether the last cycle is more than four polls ago, or no cycle has ended yet."""
    return last_cycle_at is None or (now - last_cycle_at).total_seconds() > STALE_POLLS * poll_seconds


def _money(of: Sources, standing: CommittedSpend, metered: Mapping[str, Counted]) -> money_model.Money:
    known, caps, now = of.known, of.rules.caps, of.now
    owed = unmetered_cost.of(known.leases, volume_metering.burdens(known.volumes, now), now)
    rate = money.total_rate(lease.billing_rate for lease in known.leases) + volume_metering.rate(known.volumes, now)
    credit = [
        credit_watch.outlook(name, kept.amount, known.leases, caps.credit_floor(name))
        for name, kept in sorted(known.credits.items())
    ]
    hours, ends = runway.runway(standing, caps, credit, rate, now)
    hard = caps.hard(EVERYTHING)
    day, month = hard.amount(Window.DAY), hard.amount(Window.MONTH)
    return money_model.Money(
        today_dollars=(known.total.today + owed.today).dollars,
        day_cap_dollars=day.dollars if day is not None else None,
        month_dollars=(known.total.month + owed.month).dollars,
        month_cap_dollars=month.dollars if month is not None else None,
        dollars_per_hour=rate.dollars,
        hour_cap_dollars=hard.per_hour.dollars if hard.per_hour is not None else None,
        runway_hours=hours,
        runway_ends=ends,
        caps=[money_model.Cap(**row) for row in status_json.cap_rows(standing, caps)],
        credit=[
            money_model.Credit(
                each.market,
                each.credit.dollars if each.credit is not None else None,
                each.lasts.total_seconds() / 3600 if each.lasts is not None else None,
                each.sentence(),
            )
            for each in credit
        ],
        workloads=workload_money.by_workload(known, metered, now),
        savings=of.savings,
    )


async def _slots(places: Sequence[Slot], of: Sources, reader: Reader) -> list[slot_model.Slot]:
    """Return the configured slots in order, then each lease without a slot."""
    having = slot_leases.filled(places, of.known.leases)
    leads = [slot_leases.lead(mine) for mine in having.by_slot.values()]
    shown = [lease for lease in (*leads, *having.loose) if lease is not None]
    trails = await price_trail.trails(shown, reader, of.now - price_trail.SPAN)
    lines = {line.lease_id: line for line in await reader.lines(of.now.date())} if shown else {}
    recorded = {each.slot: each for each in await reader.decisions()}
    planned = dict(_planned(of.seen))
    works = {work.name: work for work in of.rules.workloads}
    holds = hold.in_force(of.known.holds, of.now)
    found = []
    for place in places:
        mine, last = having.by_slot.get(place, ()), recorded.get(place)
        said = verb_json.slot(place, holds, [last] if last else [], mine)
        decision = planned.get(str(place)) or (_recorded(last) if last else None)
        row = _row(str(place), mine, trails, _useful_share(mine, lines, works.get(place.workload), of.now), decision)
        measured = _measured(of.known.guard_figures.get(row.lease or ""))
        found.append(_with(row, state=said["state"], why=_sentence(said["why"]), is_configured=True, measured=measured))
    return found + [_row(str(each.slot), [each], trails, None, None) for each in having.loose]


def _row(
    name: str,
    mine: Sequence[Lease],
    trails: Mapping[str, Trail],
    share: float | None,
    decision: slot_model.Decision | None,
) -> slot_model.Slot:
    lease = slot_leases.lead(mine)
    prices = list(trails.get(lease.lease_id, price_trail.NOTHING).prices) if lease else []
    last = prices[-1] if prices else None
    floor = last.floor if last else None
    return slot_model.Slot(
        slot=name,
        state=lease.state.value if lease else "empty",
        is_configured=False,
        lease=lease.lease_id if lease else None,
        market=lease.market if lease else None,
        host=clean(lease.host_id) if lease else None,
        gpu=clean(lease.gpu) if lease else None,
        gpus=lease.gpus if lease else None,
        tenure=lease.tenure.value if lease else None,
        since=lease.state_since if lease else None,
        dollars_per_hour=money.total_rate(each.billing_rate for each in mine).dollars,
        bid=lease.bid.dollars if lease and lease.tenure is Tenure.INTERRUPTIBLE else None,
        floor=lease.host_floor.dollars if lease and floor is None and lease.host_floor else floor,
        ask=lease.ask.dollars if lease and lease.ask and (not last or last.ask is None) else last.ask if last else None,
        prices=prices,
        useful_share=share,
        decision=decision,
        why="",
        measured=None,
    )


def _measured(figures: GuardFigures | None) -> slot_model.Measured | None:
    if figures is None:
        return None
    size = figures.checkpoint_bytes
    return slot_model.Measured(
        told_at=figures.told_at,
        progress=figures.progress,
        kept_at=figures.kept_at,
        checkpoint_gb=round(size / 1e9, 6) if size is not None else None,
        took_seconds=figures.took_seconds,
        upload_seconds=figures.upload_seconds,
        restore_seconds=figures.restore_seconds,
    )


def _with(row: slot_model.Slot, **changes: Any) -> slot_model.Slot:  # noqa: ANN401 - fields of any type
    return msgspec.structs.replace(row, **changes)


def _useful_share(
    mine: Sequence[Lease], lines: Mapping[str, Line], work: Workload | None, now: datetime
) -> float | None:
    """Return the useful share of the paid time of these leases today, or None without paid time.

    `lines` are today's by lease, up to the ledger's last metering. The time since then is added.
    """
    today = [lines[each.lease_id] for each in mine if each.lease_id in lines]
    promise = phases.promise(work)
    since = [
        part
        for lease in mine
        for part in phases.split(lease, now, (), promise, phases.Ran(lease.run_since))
        if part.day == now.date()
    ]
    paid = sum(line.paid for line in today) + sum(part.paid for part in since)
    useful = sum(line.useful for line in today) + sum(part.useful + part.redeemed - part.spoiled for part in since)
    return round(useful / paid, 4) if paid else None


def _planned(seen: Pass | None) -> Iterator[tuple[str, slot_model.Decision]]:
    """Yield the decisions of the last cycle with their slots. The first of a slot's decisions is carried out next."""
    seen_slots: set[str] = set()
    for decision in seen.plan.decisions if seen is not None else ():
        row = explain.as_json(decision)
        if seen is not None and row["slot"] not in seen_slots:
            seen_slots.add(row["slot"])
            yield (
                row["slot"],
                slot_model.Decision(seen.plan.now, row["kind"], row["code"], _sentence(row["sentence"]), row["limit"]),
            )


def _recorded(decision: RecordedDecision) -> slot_model.Decision:
    reason = decision.reason
    return slot_model.Decision(
        decision.at, decision.kind, reason.code, _sentence(reason.sentence), reason.limit or None
    )


def _happened(each: Event) -> read_model.Happened:
    return read_model.Happened(
        id=each.event_id,
        at=each.at,
        kind=each.kind,
        slot=f"{each.workload}/{each.slot}" if each.slot is not None else None,
        lease=each.lease_id or None,
        market=each.market or None,
        host=clean(each.host_id) or None,
        cause=each.cause.value if each.cause is not None else None,
        bid=each.bid.dollars if each.bid is not None else None,
        dollars=each.amount.dollars if each.amount is not None else None,
        why=_sentence(each.observation or each.reason),
    )


def _alert(notice: Notice) -> read_model.Alert:
    return read_model.Alert(clean(notice.about), notice.code, _sentence(notice.sentence))


def _sentence(text: str) -> str:
    return clean(text, LONGEST_SENTENCE)
