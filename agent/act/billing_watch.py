"""Finds instances that bill without an account after each pass, and reports them; it gives no orders."""

from collections.abc import Iterator, Sequence

from agent.act import bill_check
from agent.clock import Clock
from agent.decide.operators import bill_drift, unaccounted_costs
from agent.decide.operators.notices import Notice
from agent.ledger.store import Ledger
from agent.observe.poller import Poller


class BillingWatch:
    """Keeps the findings of the last pass (`seen`) and how each market's last compared day differed (`drifts`)."""

    def __init__(self, ledger: Ledger, pollers: Sequence[Poller], clock: Clock) -> None:
        """Compare the last listings of `pollers` with `ledger`."""
        self._ledger, self._pollers, self._clock = ledger, pollers, clock
        self.seen = unaccounted_costs.UnaccountedCosts()
        self.drifts: Sequence[bill_drift.Drift] = ()

    def look(self) -> None:
        """Compare the last listings with the ledger; also after a failed cycle, when it is needed most."""
        now, views = self._clock.now(), [poller.view for poller in self._pollers]
        self.seen = unaccounted_costs.findings(
            self.seen, self._ledger.fleet_id, views, self._ledger.recollection(now), now
        )

    async def read_bills(self) -> None:
        """Read from the ledger how much each market's last compared day differs from the ledger's count."""
        self.drifts = await bill_check.last(await self._ledger.reader(), self._clock.now())

    def notices(self) -> Iterator[Notice]:
        """Yield a notice for each finding."""
        yield from unaccounted_costs.notices(self.seen, self._clock.now())
        yield from bill_drift.notices(self.drifts)
