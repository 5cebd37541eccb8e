"""A journal on a real ledger, in front of a real simulated market over TCP."""

import dataclasses
import itertools
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.act.executor import Executor
from agent.act.journal import Journal
from agent.clock import SteppedClock
from agent.domain.market.tenure import Tenure
from agent.domain.record.intent import Intent
from agent.domain.record.lease import Lease
from agent.domain.slot import Slot
from agent.domain.work.decision import Decision, Reason, Rent
from agent.domain.work.workload import Workload
from agent.ledger.store import Ledger
from agent.markets import labels, pace, port, transport
from agent.markets.vast import client
from agent.markets.vast.market import VastMarket
from agent.simulator.vast.http import call_gate
from tests.support import builders
from tests.support.market import START, Market, running_market

WHY = Reason("best_offer", "the slot is empty")


@dataclasses.dataclass(slots=True)
class Desk:
    """The acting parts, with their ledger and market."""

    market: Market
    vast: VastMarket
    ledger: Ledger
    clock: SteppedClock
    journal: Journal
    work: Workload
    denial: list[str]

    async def send(self, decision: Decision) -> Intent:
        """Carry out one decision; return the state of its intent in the ledger."""
        made = await self.journal.carry_out(decision, self.work)
        assert made is not None
        (kept,) = [intent for intent in await self.intents() if intent.intent_id == made.intent_id]
        assert kept.state is made.state
        return kept

    async def intents(self) -> list[Intent]:
        return list(await (await self.ledger.reader()).intents())

    async def kinds(self) -> list[str]:
        """Return the names of the events, oldest first."""
        events = await (await self.ledger.reader()).events()
        return [event.kind for event in sorted(events, key=lambda event: event.event_id or 0)]

    def lease(self) -> Lease:
        """Return the one open lease."""
        (held,) = self.ledger.recollection(self.clock.now()).leases
        return held

    def expiring(self) -> dict[str, str]:
        """Return the cooldowns and holds, by scope and key."""
        return {str(rest): rest.ground for rest in self.ledger.recollection(self.clock.now()).expiring}

    async def rent(self, *, bid: str | None = None, place: Slot = builders.TRAIN_0, over: float = 1.3) -> Rent:
        """Return a decision to rent the cheapest slice, by default a bid well over its floor."""
        rows = await self.vast.offers(port.OfferQuery(builders.requirements(gpu_models=(), verified_only=False), 20.0))
        offer = min(
            (row for row in rows if row.floor and row.ask and row.floor < row.ask), key=lambda row: row.offer_id
        )
        assert offer.floor is not None
        price = offer.floor.scaled(over) if bid is None else builders.per_hour(bid)
        return Rent(place, offer, Tenure.INTERRUPTIBLE, price, price + offer.disk_rate(self.work.disk_gb), WHY)

    async def rented(self) -> Lease:
        """Rent and return the lease, proven ours as the first cycle after it does."""
        await self.send(await self.rent())
        (held,) = await self.prove_all()
        return held

    async def prove_all(self) -> list[Lease]:
        """Write down that our label was seen twice on every open lease; return them."""
        now = self.clock.now()
        proven = [msgspec.structs.replace(held, proven_at=now) for held in self.ledger.recollection(now).leases]
        async with self.ledger.transaction() as tx:
            for held in proven:
                tx.update_lease(held)
        return proven

    async def advance(self, seconds: float) -> None:
        """Let time pass for both sides."""
        self.clock.advance(seconds)
        await self.market.advance(seconds)

    async def contracts(self) -> list[dict[str, Any]]:
        return list((await self.market.truth())["contracts"])

    async def writes(self, method: str = "PUT") -> list[str]:
        return [call["path"] for call in (await self.market.truth())["calls"] if call["method"] == method]


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    numbers = itertools.count(1)
    denial: list[str] = []
    async with running_market() as market:
        clock = SteppedClock(datetime.fromtimestamp(START, UTC))
        lanes, rows = pace.Pace(clock, client.LANES), pace.RowBudget(clock)
        link = transport.Transport(market.simulator.vast_url, lambda: call_gate.DEFAULT_KEY, clock, lanes, lambda: 0.5)
        vast = VastMarket(client.VastClient(link, lanes, rows, clock), rows, clock)
        ledger = await Ledger.open(tmp_path / "ledger.sqlite", clock=clock, fleet_id=builders.FLEET_ID)
        journal = Journal(
            ledger, {"vast": vast}, clock, lambda: f"{next(numbers):016x}", lambda _: denial[0] if denial else ""
        )
        yield Desk(market, vast, ledger, clock, journal, builders.workload(slots=9), denial)
        await vast.close()
        await ledger.close()


@pytest.fixture
def executor(desk: Desk) -> Executor:
    return Executor(desk.journal)


def label_of(intent: Intent) -> str:
    """Return the label that the instance of an intent carries."""
    return labels.text(builders.label(int(intent.intent_id, 16), place=intent.slot))
