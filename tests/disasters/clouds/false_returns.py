"""Point 4: a machine that is over, and that the server falsely calls there again, counts until the next true listing.

It counts from the last look that called it over, if the program that runs has had two such looks in a row and the lease
had ended a quarter of an hour before; else from its end (spend-bounds.md).
"""

from collections.abc import Iterator

from agent.app import App
from agent.simulator.dstack.model import Run
from tests.disasters.clouds.cloud_draw import MARKET
from tests.disasters.orders import Order
from tests.disasters.sight import Sight
from tests.disasters.story import Strike
from tests.disasters.truth import Truth, run_price

LONG_SECONDS = 900.0
LOOKS = 2


class FalseReturns:
    """Knows since when each machine that is over may count again."""

    def __init__(self, truth: Truth, poll: float) -> None:
        self._truth = truth
        self._long = LONG_SECONDS + LOOKS * poll
        self._app: App | None = None
        self._looks: dict[str, int] = {}
        """How many true listings in a row have called each machine over, to the program that runs now."""
        self._leased: dict[str, float] = {}
        """When each run last had an open lease."""
        self._counted: float | None = None
        """Until when the bound has grown, since a listing was false."""
        self._owed = 0.0

    def hear(self, strike: Strike, order: Order | None, looked: float) -> None:
        """See that a listing of machines is false; `looked` is the time of the last true one."""
        if order is None or order.place != "machines" or strike.fault != "state" or self._counted is not None:
            return
        costs = (run_price(run) * (looked - self._since(run, looked)) / 3600 for run in self._over())
        self._owed, self._counted = max(costs, default=0.0), looked

    def grow(self, sight: Sight) -> float:
        """Return the dollars by which the bound has grown."""
        is_true = sight.saw_truly(MARKET)
        grown = self._grown(sight.now)
        self._counted = None if is_true or self._counted is None else sight.now
        self._see(sight, is_true=is_true)
        return grown

    def _grown(self, now: float) -> float:
        if self._counted is None:
            return 0.0
        owed, self._owed = self._owed, 0.0
        return owed + max(map(run_price, self._over()), default=0.0) * (now - self._counted) / 3600

    def _see(self, sight: Sight, *, is_true: bool) -> None:
        if self._app is not sight.app:
            self._app, self._looks = sight.app, {}
        self._leased |= {lease.instance_id: sight.now for lease in sight.leases if lease.market == MARKET}
        if is_true:
            self._looks = {run.uuid: self._looks.get(run.uuid, 0) + 1 for run in self._over()}

    def _since(self, run: Run, looked: float) -> float:
        is_known = self._looks.get(run.uuid, 0) >= LOOKS
        is_long = looked - self._leased.get(run.uuid, 0.0) >= self._long
        return looked if is_known and is_long else min(run.ended or looked, looked)

    def _over(self) -> Iterator[Run]:
        """Yield our runs whose machine is over, and called so."""
        for box in self._truth.boxes.values():
            run = box.thing
            if box.label is None or not isinstance(run, Run) or run.machine is None:
                continue
            if run.machine.ended is not None and run.machine.status == "terminated":
                yield run
