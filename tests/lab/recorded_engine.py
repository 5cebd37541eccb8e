"""A market that answers as it was recorded: the lab's engine over views that a daemon really read.

The frames have the listings and offers. The daemon's memory is left out, and the engine builds it again. A rent
is granted where a listing soon shows a new instance on its host, and refused where none does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from agent.decide.plan import Plan
from agent.decide.plan_recording import Frame
from agent.domain.market.instance import Instance
from agent.domain.market.interruption import MarketEvent
from agent.domain.market.market_rules import MarketRules
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.lab.engine import recorded_frames
from agent.lab.engine.engine import Engine
from agent.markets import market_errors, port

SOON = 4
"""A rent shows in one of so many listings after it."""


@dataclass(slots=True)
class Recorded:
    """One market of a recording; `place` is the frame that is now."""

    name: str
    frames: Sequence[Frame]
    place: int = 0
    _given: set[str] = field(default_factory=set)

    async def rent(self, offer: Offer, terms: port.Terms, label: str) -> str:
        """Return the instance that was soon listed on the host; refuse if there was none."""
        del terms, label
        for one in self.frames[self.place + 1 : self.place + 1 + SOON]:
            for row in one.fleet.markets[self.name].instances:
                if row.host == offer.host and row.instance_id not in self._given:
                    self._given.add(row.instance_id)
                    return row.instance_id
        raise market_errors.Rejected("no_such_ask", "no instance of it was ever listed")

    async def rebid(self, instance_id: str, bid: UsdPerHour) -> None:
        """Do nothing: the next listing shows what came of it."""

    async def resume(self, instance_id: str) -> bool:
        """Return whether it starts at once, as the next listings show."""
        after = self.frames[self.place + 1 : self.place + 1 + SOON]
        rows = (one.fleet.markets[self.name].instance(instance_id) for one in after)
        return any(row is not None and row.is_wanted_running for row in rows)

    async def pause(self, instance_id: str) -> None:
        """Do nothing: the next listing shows what came of it."""

    async def release(self, instance_id: str, *, is_gone: bool = False, is_gentle: bool = False) -> None:
        """Do nothing: the next listing shows what came of it."""
        del instance_id, is_gone, is_gentle

    async def offers(self, query: port.OfferQuery) -> Sequence[Offer]:
        """Return the offers."""
        del query
        return self.frames[self.place].fleet.markets[self.name].offers

    async def instances(self) -> Sequence[Instance]:
        """Return the listed instances."""
        return self.frames[self.place].fleet.markets[self.name].instances

    async def instance(self, instance_id: str) -> Instance:
        """Return one instance that was listed."""
        row = self.frames[self.place].fleet.markets[self.name].instance(instance_id)
        if row is None:
            raise market_errors.NotFound("no_such_instance", "it was not listed")
        return row

    async def account(self) -> port.Account:
        """Return the recorded account."""
        view = self.frames[self.place].fleet.markets[self.name]
        return port.Account(view.account_id, view.credit, self.frames[self.place].fleet.now)

    async def charges(self, since: datetime, until: datetime) -> Sequence[port.Charge]:
        """Return nothing: a recording of plans has no bill."""
        del since, until
        return ()

    async def events(self, since: datetime) -> Sequence[MarketEvent]:
        """Return the events of the market."""
        events = self.frames[self.place].fleet.markets[self.name].events
        return [event for event in events if event.at >= since]

    async def logs(self, instance_id: str, lines: int) -> Sequence[str]:
        """Return nothing: the sightings have the results of logs."""
        del instance_id, lines
        return ()

    def search_delay(self, questions: int) -> float:  # noqa: ARG002 - as in the port
        """Return 0: it takes any number of questions."""
        return 0.0

    def instance_keys(self) -> None:
        """Return nothing: a recording has no shells."""

    def capabilities(self) -> frozenset[port.Capability]:
        """Return its capabilities."""
        return frozenset({port.Capability.INTERRUPTIBLE, port.Capability.REBID, port.Capability.EVENTS})

    def rules(self) -> MarketRules:
        """Return its rules."""
        return self.frames[self.place].fleet.markets[self.name].rules

    def not_sold(self) -> Mapping[Tenure, str]:
        """Return the tenures that it did not sell."""
        return self.frames[self.place].fleet.markets[self.name].not_sold

    def server_time(self) -> datetime | None:
        """Return nothing: there is one clock."""

    async def close(self) -> None:
        """Let go of nothing."""


def lived(frames: Sequence[Frame], registry: recorded_frames.Registry) -> list[Plan]:
    """Return the plans of an engine that saw each recorded view of the one market, and remembered for itself.

    Raises:
        RecordingError: a strategy is not installed, or there is more than one market.
    """
    first = frames[0]
    if len(first.fleet.markets) != 1:
        raise recorded_frames.RecordingError("the engine runs over one market; this recording has several")
    (name,) = first.fleet.markets
    market = Recorded(name, frames)
    tuned = recorded_frames.tuned(first, registry)
    engine = Engine(market, first.fleet.workloads, tuned, first.fleet.started_at, first.caps)
    made = []
    for place, one in enumerate(frames):
        market.place = place
        made.append(engine.see(one.fleet.markets[name], one.fleet.now))
    return made
