"""One day of the auction lease by lease, for a picture. The day runs as in the bench, and is observed from outside.

After each look the market's own figures are recorded. No strategy sees them, so no decision depends on them.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from agent.domain.market import gpu
from agent.domain.market.interruption import Loss
from agent.domain.market.tenure import Tenure
from agent.lab.bids import day, hindsight, waste
from agent.lab.engine import run_timeline
from agent.simulator.vast.model import Contract
from agent.simulator.vast.world import World

HOUR = 3600.0
MOST_POINTS = 200
"""The approximate number of points of a bound's line."""


def bidder(strategy: str, lived: day.Day) -> run_timeline.Bidder:
    """Run a day and return its picture under the day's strategy."""
    recorder = _QuoteRecorder(lived.world)
    while lived.clock.now() < lived.setting.end:
        lived.step()
        recorder.look()
    parts = defaultdict(list)
    for part in lived.parts():
        if part.dollars > 0 or part.useful_hours > 0:
            parts[part.contract_id].append(_part(part))
    contracts = lived.world.contracts
    lost = _lost(contracts.values(), lived.engine.book.losses)
    leases = [
        _leased(each, recorder.quotes[number], parts[number], lost[number], lived.world.now)
        for number, each in contracts.items()
    ]
    return run_timeline.Bidder(strategy, tuple(leases))


def bound(found: hindsight.Bound) -> tuple[tuple[float, float], ...]:
    """Return points of (dollars, DLPerf-hours), from nothing to all possible work, the cheapest work first."""
    points, dollars, work = [(0.0, 0.0)], 0.0, 0.0
    for span in found.spans:
        dollars, work = dollars + span.price * span.work, work + span.work
        points.append((dollars, work))
    stride = max(len(points) // MOST_POINTS, 1)
    return (*points[:-1:stride], points[-1])


class _QuoteRecorder:
    """Records the state of a day's leases whenever it changes."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.quotes: dict[int, list[run_timeline.Quote]] = defaultdict(list)

    def look(self) -> None:
        for contract in self._world.live_contracts():
            known, quote = self.quotes[contract.contract_id], self._quote(contract)
            if not known or (known[-1].bid, known[-1].lowest, known[-1].ask) != (quote.bid, quote.lowest, quote.ask):
                known.append(quote)

    def _quote(self, contract: Contract) -> run_timeline.Quote:
        world, rented_slice = self._world, contract.slice
        # A rival that we outbid is gone, so only the host's own floor can interrupt us.
        lowest = world.host_floor(rented_slice) if contract.holds_gpu else world.true_floor(rented_slice)
        bid = contract.locked_ask if contract.bid is None else contract.bid
        return run_timeline.Quote(hour(world.now), bid, lowest, world.ask(rented_slice))


def hour(seconds: float) -> float:
    """Return hours since the day began."""
    return (seconds - day.START.timestamp()) / HOUR


def _part(part: waste.Part) -> run_timeline.Part:
    work = part.useful_hours * part.dlperf
    return run_timeline.Part(part.kind, hour(part.start), hour(part.end), part.dollars, work)


def _lost(contracts: Iterable[Contract], losses: Iterable[Loss]) -> dict[int, list[tuple[float, str]]]:
    """Return instant and cause of each contract's interruptions. A loss belongs to the last lease on its host."""
    found: dict[int, list[tuple[float, str]]] = defaultdict(list)
    by_host = {(str(each.host.machine_id), each.created): each.contract_id for each in contracts}
    for loss in losses:
        at = loss.at.timestamp()
        since = max(created for host, created in by_host if host == loss.host_id and created <= at)
        cause = "unknown" if loss.cause is None else loss.cause.value
        found[by_host[loss.host_id, since]].append((hour(at), cause))
    return found


def _leased(
    contract: Contract,
    quotes: Sequence[run_timeline.Quote],
    parts: Iterable[run_timeline.Part],
    lost: Iterable[tuple[float, str]],
    now: float,
) -> run_timeline.Leased:
    return run_timeline.Leased(
        host=str(contract.host.machine_id),
        card=gpu.model(contract.host.gpu.name),
        tenure=Tenure.INTERRUPTIBLE if contract.is_bid else Tenure.ON_DEMAND,
        start=hour(contract.created),
        end=hour(now if contract.ended is None else contract.ended),
        quotes=tuple(quotes),
        parts=tuple(sorted(parts, key=lambda part: (part.start, part.end))),
        lost=tuple(lost),
    )
