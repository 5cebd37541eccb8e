"""Decisions are kept for a month, and a slot's last one and its last that weighed several ways until another comes."""

from datetime import timedelta

from agent.clock import SteppedClock
from agent.domain.slot import Slot
from agent.domain.work.decision import Option, Reason
from agent.ledger.store import Ledger
from agent.ledger.tables import decisions
from agent.ledger.tables.decisions import RecordedDecision
from tests.ledger.values import NOW

BUSY, IDLE = Slot("train", 0), Slot("serve", 1)
WAYS = (Option("wait", 0.1, ()), Option("move", 0.2, ()))
DAY = timedelta(days=1)


async def made(ledger: Ledger, place: Slot, *days_ago: float, options: tuple[Option, ...] = ()) -> None:
    """Write down decisions of a slot, the oldest first."""
    async with ledger.transaction() as tx:
        for days in days_ago:
            tx.record_decision(RecordedDecision(NOW - days * DAY, place, "hold", Reason(f"{days:g}", "waits", options)))


async def codes(ledger: Ledger) -> list[str]:
    rows = await ledger._tables.run(
        lambda link: link.exec_driver_sql("SELECT code FROM decisions ORDER BY decision_id").fetchall()
    )
    return [code for (code,) in rows]


async def test_only_what_is_old_and_superseded_is_given_up(ledger: Ledger, clock: SteppedClock) -> None:
    await made(ledger, IDLE, 300, 200)
    await made(ledger, BUSY, 100, 90, options=WAYS)
    await made(ledger, BUSY, 80, decisions.KEPT_DAYS + 0.1, decisions.KEPT_DAYS - 0.1, 1)
    reader = await ledger.reader()
    before = await reader.decisions(), await reader.weighed()
    await ledger.tidy()
    assert await codes(ledger) == ["200", "90", "29.9", "1"]
    assert (await reader.decisions(), await reader.weighed()) == before
    # A deleted decision is news again only if the slot decides it anew: its last one is still known.
    await made(ledger, IDLE, 200)
    assert await codes(ledger) == ["200", "90", "29.9", "1"]
    clock.advance(60 * DAY.total_seconds())
    await ledger.tidy()
    assert await codes(ledger) == ["200", "90", "1"]
