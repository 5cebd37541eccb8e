"""The content of the page as plain values, from the ledger's memory, the last cycle and its history.

Only the rows of one screen are computed: a fleet of a thousand leases costs no more than its first screen.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Any

from agent.act.orders import order_grounds
from agent.cycle import Pass
from agent.decide import explain
from agent.decide.operators import hold_words
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.expiring_record import ExpiringRecord
from agent.domain.record.guard_figures import GuardFigures
from agent.domain.record.intent import Intent
from agent.domain.record.lease import Lease
from agent.ledger.memory import Recollection
from agent.ledger.reader import Reader
from agent.web.feed import fleet_document, price_trail
from agent.web.feed.fleet_document import Sources
from agent.web.page import measured_words, shared_lines, slot_rows
from agent.web.reading import shadow_json, slot_leases, verb_json
from agent.web.reading.workload_rows import array_json

ROWS = 50
"""Slots and cooldowns on one screen."""
EVENTS = 30
DECISIONS = 50
MOST_POINTS = 300
"""Points in the chart of a lease's story."""
STORY_EVENTS = 500
TIMELINE = (
    EventKind.LEASE_INTERRUPTED,
    EventKind.LEASE_RESUMED,
    EventKind.LEASE_RUNNING,
    EventKind.LEASE_REASSIGNED,
    EventKind.LEASE_RELEASED,
    EventKind.LEASE_PAUSED,
    EventKind.LEASE_REBID,
)


async def board(sight: Sources, reader: Reader, page: int) -> dict[str, Any]:
    """Return the first screen, or a later one: money, markets, slots with charts, timeline, plan, cooldowns.

    Leases without a slot come after the slots.
    """
    known, seen, now = sight.known, sight.seen, sight.now
    places = [place for work in sight.rules.workloads for place in work.places]
    having = slot_leases.filled(places, known.leases)
    rows = await slot_rows.rows(sight, having, reader)
    many = {work.name for work in sight.rules.workloads if slot_rows.is_of_many(work)}
    pages = max(-(-len(rows) // ROWS), 1)
    page = min(max(page, 1), pages)
    first = await fleet_document.summary(sight, reader)
    return {
        "now": now,
        "page": page,
        "pages": pages,
        "alerts": first.alerts[:ROWS],
        "notes": first.notes[:ROWS],
        "is_stale": first.is_stale,
        "last_cycle_at": first.last_cycle_at,
        "money": first.money,
        "arrays": array_json.rows(sight.rules.workloads, known, now)[:ROWS],
        "demands": fleet_document.demands(seen)[:ROWS],
        "running": having.running,
        "wanted": len(places),
        "markets": _markets(seen),
        "since": now - price_trail.SPAN,
        "slots": await slot_rows.shown(rows[(page - 1) * ROWS : page * ROWS], having, sight, reader),
        "timeline": [event(each) for each in await reader.events(kinds=TIMELINE, limit=EVENTS)],
        **_plan(seen, many),
        "shadows": (await shadow_json.shown(reader, known.leases, now))["shadows"][:ROWS],
        "cooldowns": [_held_back(records) for records in shared_lines.of_holds(_holding_back(known, now), many)[:ROWS]],
    }


async def story(lease: Lease, reader: Reader, now: datetime, figures: GuardFigures | None = None) -> dict[str, Any]:
    """Return one lease's story: facts, bid against floor, all events, and `figures`, its guard's last ones."""
    happened = await reader.events(leases=[lease.lease_id], limit=STORY_EVENTS)
    until = lease.ended_at or now
    trails = await price_trail.trails([lease], reader, lease.opened_at, MOST_POINTS, lease.ended_at)
    return {
        "now": now,
        "lease": verb_json.lease(lease),
        "measured": measured_words.words(figures, now),
        "opened_at": lease.opened_at,
        "ended_at": lease.ended_at,
        "end_reason": lease.end_reason,
        "course": slot_rows.course(trails[lease.lease_id], lease.opened_at, until, now),
        "events": [event(each) for each in happened],
        "orders": [_order(each) for each in await reader.intents(STORY_EVENTS, leases=[lease.lease_id])],
        "is_cut": len(happened) == STORY_EVENTS,
        "is_open": lease.is_open,
    }


def event(each: Event) -> dict[str, Any]:
    """Return one event as the page shows it."""
    return {
        "at": each.at,
        "kind": each.kind,
        "slot": f"{each.workload}/{each.slot}" if each.slot is not None else "",
        "lease": each.lease_id,
        "market": each.market,
        "host": each.host_id,
        "cause": each.cause.value if each.cause is not None else "",
        "bid": each.bid.dollars if each.bid is not None else None,
        "amount": each.amount.dollars if each.amount is not None else None,
        "why": each.observation or each.reason,
    }


def _order(intent: Intent) -> dict[str, Any]:
    return {
        "at": intent.recorded_at,
        "intent": intent.intent_id,
        "kind": intent.kind.value,
        "state": intent.state.value,
        "price": intent.price.dollars if intent.price is not None else None,
        "why": intent.reason,
        "outcome": intent.outcome,
    }


def _markets(seen: Pass | None) -> list[dict[str, Any]]:
    if seen is None:
        return []
    return [
        {
            "name": name,
            "is_fresh": view.is_fresh,
            "listed_at": view.listed_at,
            "credit": view.credit.dollars if view.credit is not None else None,
            "no_spend": view.no_spend_because,
        }
        for name, view in seen.fleet.markets.items()
    ]


def _plan(seen: Pass | None, many: Collection[str]) -> dict[str, Any]:
    lines = shared_lines.of_plan(() if seen is None else seen.plan.decisions, many)
    return {
        "decisions": [
            said | {"slot": shared_lines.named(said["slot"], len(line))}
            for line in lines[:DECISIONS]
            for said in [explain.as_json(line[0])]
        ],
        "more_decisions": sum(len(line) for line in lines[DECISIONS:]),
    }


def _holding_back(known: Recollection, now: datetime) -> Iterator[ExpiringRecord]:
    return (record for record in known.expiring if order_grounds.holds_back(record) and not record.is_over(now))


def _held_back(records: Sequence[ExpiringRecord]) -> dict[str, Any]:
    first, count = records[0], len(records)
    return {
        "what": shared_lines.named(hold_words.meaning(str(first)), count),
        "target": str(first) if count == 1 else "",
        "until": first.until,
        "after": first.ground,
    }
