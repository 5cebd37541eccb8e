"""The judge's view after a cycle: the ledger's state, the truth, and the faults in between."""

import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence

from agent.app import App
from agent.domain.record.expiring_record import ExpiringRecord
from agent.domain.record.intent import Intent
from agent.domain.record.lease import Lease
from tests.disasters.story import Strike
from tests.disasters.truth import Truth

LISTED = frozenset({"listing", "look", "machines", "named", "notice", "project"})
"""What a market is asked for its instances."""


@dataclasses.dataclass(frozen=True, slots=True)
class Sight:
    """One instant. `began` is when the cycle began, `struck` what went wrong since the last sight."""

    cycle: int
    began: float
    now: float
    app: App
    truth: Truth
    struck: Sequence[Strike]
    has_ended: bool
    """Whether the cycle ran to its end: no death, no ledger that took no answer."""
    is_calm: bool
    is_shared: bool
    """Whether two daemons run."""

    @property
    def at(self) -> dt.datetime:
        """Return the instant as the program has it."""
        return self.app.clock.now()

    @property
    def leases(self) -> Sequence[Lease]:
        """Return the open leases."""
        return self.app.ledger.recollection(self.at).leases

    @property
    def intents(self) -> Sequence[Intent]:
        """Return the open intents."""
        return self.app.ledger.recollection(self.at).intents

    @property
    def expiring(self) -> Sequence[ExpiringRecord]:
        """Return the scopes in cooldown and the held ones."""
        return self.app.ledger.recollection(self.at).expiring

    @property
    def fresh(self) -> Mapping[str, bool]:
        """Return which markets' listings are fresh."""
        return {poller.view.market: poller.view.is_fresh for poller in self.app.pollers}

    def listed(self, market: str) -> float:
        """Return when a market was listed last, in the markets' time."""
        times = (poller.view.listed_at for poller in self.app.pollers if poller.view.market == market)
        return self.now - max(((self.at - at).total_seconds() for at in times if at is not None), default=0.0)

    def saw_truly(self, market: str) -> bool:
        """Return whether the cycle ended with a complete listing of a market, with no lie in it."""
        is_false = any(each.market == market and each.place in LISTED for each in self.struck)
        return self.has_ended and not is_false and self.fresh.get(market, False)


@dataclasses.dataclass(frozen=True, slots=True)
class Broken:
    """A point that does not hold."""

    point: int
    cycle: int
    sentence: str
