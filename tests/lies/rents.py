"""Tells one field wrong from before the first rent on, and returns what that costs: rents, slots and dollars.

A slot needs one rent. While a lie goes on, a rent that is shown on other terms than ordered must be released: what
counts then is how often that happens (`Rented.most_rents`), and that every slot runs once the lie is over.
"""

from dataclasses import dataclass

from agent.domain.record.intent import IntentKind
from agent.ledger.ledger_errors import LedgerError
from tests.lies import sweep
from tests.lies.fields import Lie
from tests.lies.sweep import Place
from tests.support.both import Both

AFTER_MINUTES = 100
"""How long a slot may be empty after a lie: the longest cooldown of a market, and the half hour of a pool."""


@dataclass(frozen=True, slots=True)
class Rented:
    """What became of the slots of a place under a lie."""

    rents: int
    """How many rents were sent."""
    most_rents: int
    """The most rents of one slot."""
    slots: int
    live: int
    """The instances that exist after the lie."""
    running: int
    miscounted: str
    """By how much the count differs from what the market charged; empty if it does not."""

    @property
    def harms(self) -> list[str]:
        """What a program that is told the truth does not do, in words."""
        said = [self.miscounted] if self.miscounted else []
        if self.rents != self.slots:
            said.append(f"{self.rents} rents for {self.slots} slots")
        if (self.live, self.running) != (self.slots, self.slots):
            said.append(f"{self.live} instances and {self.running} running leases for {self.slots} slots")
        return said


async def rented(market: str, lie: Lie, minutes: float) -> Rented | str:
    """Tell a lie about a market from the start for so many minutes; return the outcome, or why the program ended."""
    where = sweep.place(market)
    async with sweep.opened(where) as world:
        sweep.lying(world, market, lie)
        try:
            await world.cycle(minutes=minutes)
            sweep.still(world, market)
            await _until_running(world, where)
        except LedgerError as error:
            return f"ended: {error}"
        return await _outcome(world, where)


async def _until_running(world: Both, where: Place) -> None:
    """Run cycles for a while, until every slot runs."""
    slots = sum(work.slots for work in where.works)
    for _ in range(AFTER_MINUTES):
        await world.cycle(minutes=1)
        if len(world.running()) == slots:
            break
    await world.cycle(minutes=sweep.QUIET_MINUTES)


async def _outcome(world: Both, where: Place) -> Rented:
    reader = await world.app.ledger.reader()
    rents = [str(one.slot) for one in await reader.intents(10_000) if one.kind is IntentKind.RENT]
    after = await sweep.truth(world, where.market)
    return Rented(
        len(rents),
        max((rents.count(slot) for slot in rents), default=0),
        sum(work.slots for work in where.works),
        len(after.live),
        len(world.running()),
        sweep.miscounted(after.charged, after.counted),
    )
