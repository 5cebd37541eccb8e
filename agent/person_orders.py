"""The orders of persons, carried out between two cycles.

1. An order and a cycle never run at once: each takes the turn. An order that ends something interrupts a cycle that
   only reads.
2. Endings are sent even if the ledger cannot be written.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import structlog

from agent.act.executor import Executor
from agent.act.orders import kill_order, lifted_holds, operator_orders, order_preview, ordered_endings, settled_work
from agent.act.orders.order_grounds import Grounds
from agent.clock import Clock
from agent.decide.operators import operator_holds
from agent.domain.record.event_kind import EventKind
from agent.domain.record.hold import Word
from agent.domain.record.intent import Intent
from agent.domain.record.lease import Bills
from agent.domain.work.decision import Pause, Release
from agent.domain.work.order import Order
from agent.ledger.store import Ledger
from agent.ledger.transaction import Transaction

log = structlog.get_logger("gpubid.app")


class PersonOrders:
    """Carries out the orders of persons."""

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        executor: Executor,
        turn: "Turn",
        grounds: Callable[[], Grounds],
        spread: Callable[[], Awaitable[str]],
    ) -> None:
        """Judge orders on `grounds`. `spread` writes an absence of the daemon to the guards, and returns its reach."""
        self._ledger, self._clock, self._executor, self._turn = ledger, clock, executor, turn
        self._grounds, self._spread = grounds, spread

    async def give(self, order: Order, who: str) -> tuple[str, list[Intent]]:
        """Record an order, carry it out at once, and return the result. `who` goes into the ledger.

        Raises:
            OrderError: it cannot be understood or does not fit the fleet; nothing was changed.
            LedgerError: it could not be written down.
        """
        if order.is_of_everything:
            return await self._stop_everything(order, who)
        async with self._turn.at_once() if order.verb in operator_orders.ENDING else self._turn.lock:
            grounds = self._grounds()
            meant = operator_orders.read(order, who, grounds)
            order_preview.refuse_changed(order, grounds)
            log.info(EventKind.OPERATOR_ORDERED, verb=order.verb, target=order.target, who=who)
            finished = await settled_work.of(self._ledger, order, meant.decisions)

            def write(tx: Transaction) -> None:
                meant.write(tx, order, who, grounds.now)
                settled_work.write(tx, finished, grounds.now)

            done = await self._carry_out(meant.decisions, who, write)
        reach = f"; {await self._spread()}" if meant.absence is not None else ""
        return meant.sentence + reach, done

    async def end(self, wanted: Sequence[Release | Pause], who: str) -> list[Intent]:
        """Carry out endings that a person ordered.

        Raises:
            LedgerError: it could not be written down that they were ordered; release and pause go on all the same.
        """
        async with self._turn.lock:
            return await self._carry_out(wanted, who)

    async def _stop_everything(self, order: Order, who: str) -> tuple[str, list[Intent]]:
        """Stop all spending, or end such a stop.

        Raises:
            LedgerError: it could not be written down.
        """
        if order.verb != Word.KILL:
            now = self._clock.now()
            holds = self._ledger.recollection(now).holds
            await kill_order.end(self._ledger, now, who)
            return lifted_holds.end_of_everything(holds, now), []
        await kill_order.begin(self._ledger, self._clock.now(), who, keep_disks=order.keep_disks)
        async with self._turn.at_once():
            # A cycle that was renting when the order came has finished first: the kill must also stop its lease.
            leases = operator_holds.open_bids_first(self._ledger.recollection(self._clock.now()).leases)
            reason = operator_holds.ordered(Word.KILL)
            kind = Pause if order.keep_disks else Release
            wanted = [kind(lease, reason) for lease in leases if lease.bills is not Bills.NOTHING]
            done = await self._carry_out(wanted, who) if wanted else []
        await kill_order.record_carried_out(self._ledger, self._clock.now())
        return "all spending is stopped", done

    async def _carry_out(
        self, wanted: Sequence[Release | Pause], who: str, write: ordered_endings.Write = lambda _: None
    ) -> list[Intent]:
        """Record an order with `write` and send its endings; the caller has the turn, so no cycle runs in between."""
        now, workloads = self._clock.now(), self._grounds().workloads

        def whole(tx: Transaction) -> None:
            write(tx)
            known = {lease.lease_id: lease for lease in self._ledger.recollection(now).leases if lease.is_open}
            ordered_endings.note(tx, wanted, who, now, known)

        return await ordered_endings.carry_out(self._ledger, self._executor, workloads, wanted, whole)


class Turn:
    """Lets one run at a time: a cycle or an order."""

    def __init__(self, interrupted: Callable[[], contextlib.AbstractContextManager[None]]) -> None:
        """Take the function whose context interrupts a cycle that only reads."""
        self.lock = asyncio.Lock()
        self._interrupted = interrupted

    @contextlib.asynccontextmanager
    async def at_once(self) -> AsyncIterator[None]:
        """Take the turn; cycles that only read give way to it."""
        with self._interrupted():
            await self.lock.acquire()
        try:
            yield
        finally:
            self.lock.release()
