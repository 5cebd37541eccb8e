"""Endings that leave although the ledger cannot be written, and what the ledger is owed for them.

Invariants:
1. A release that fails becomes a pause. Nothing is lost if both fail: the next cycle asks for both again.
2. What may have reached the market is recorded, in doubt, as soon as the ledger can be written and before the next
   listing is judged. Else our own pause would look like a stop by somebody else, and our release like a lost host.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial

import structlog

from agent.act.endings import begun_releases
from agent.decide.moves import due_endings
from agent.domain.record.event_kind import LoggedKind
from agent.domain.record.intent import Intent, IntentState
from agent.domain.work.decision import Decision, Pause, Release
from agent.ledger.ledger_errors import LedgerError
from agent.ledger.store import Ledger
from agent.ledger.transaction import Transaction
from agent.markets import market_errors, port

log = structlog.get_logger("gpubid.journal")


class UnjournaledEndings:
    """Sends releases and pauses without the ledger, and remembers those that may have left."""

    def __init__(self) -> None:
        """Owe nothing."""
        self._owed: dict[str, tuple[Intent, Release | Pause]] = {}
        """The last one of each lease, by the id of the lease."""

    async def send(self, intent: Intent, decision: Decision, market: port.Market, error: LedgerError) -> None:
        """Send an ending; any other order stays unsent."""
        log.error(LoggedKind.INTENT_UNJOURNALED, kind=intent.kind.value, lease=intent.lease_id, reason=str(error))
        if not isinstance(decision, Release | Pause):
            return
        for call in _calls(market, decision, intent.recorded_at):
            try:
                await call(intent.instance_id)
            except market_errors.Unfinished:
                self._owed[intent.lease_id] = intent, decision
                return
            except market_errors.MarketError as failure:
                log.error(LoggedKind.INTENT_UNSENT, kind=intent.kind.value, lease=intent.lease_id, code=failure.code)
                if isinstance(failure, market_errors.Ambiguous):
                    self._owed[intent.lease_id] = intent, decision
            else:
                self._owed[intent.lease_id] = intent, decision
                return

    async def settle(self, ledger: Ledger, now: datetime) -> None:
        """Record what may have left.

        Raises:
            LedgerError: it cannot be written; the ledger is owed it all the same.
        """
        if not self._owed:
            return
        owed = dict(self._owed)
        async with ledger.transaction() as tx:
            for intent, decision in owed.values():
                _record(tx, ledger, intent, decision, now)
        self._owed = {lease: each for lease, each in self._owed.items() if owed.get(lease) is not each}


def _calls(
    market: port.Market, decision: Release | Pause, now: datetime
) -> tuple[Callable[[str], Awaitable[None]], ...]:
    """Return the calls to try, one after the other until one succeeds."""
    if isinstance(decision, Pause):
        return (market.pause,)
    is_gone, is_gentle = due_endings.is_gone(decision), due_endings.is_gentle(decision, now)
    return partial(market.release, is_gone=is_gone, is_gentle=is_gentle), market.pause


def _record(tx: Transaction, ledger: Ledger, intent: Intent, decision: Release | Pause, now: datetime) -> None:
    known = ledger.recollection(now)
    lease = next((each for each in known.leases if each.lease_id == intent.lease_id and each.is_open), None)
    if lease is None:
        return
    state = next((each.state for each in known.intents if each.intent_id == intent.intent_id), None)
    if state is None:
        tx.record_intent(intent)
    if state in {None, IntentState.RECORDED}:
        tx.advance_intent(intent.intent_id, IntentState.SENT, at=intent.recorded_at, outcome="")
    if state in {None, IntentState.RECORDED, IntentState.SENT}:
        tx.advance_intent(intent.intent_id, IntentState.IN_DOUBT, at=now, outcome="sent without the ledger")
    if isinstance(decision, Release):
        begun_releases.begin(tx, decision, lease, now)
