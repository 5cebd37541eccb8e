"""The truth: every instance of every market in one shape, straight from the simulators' own objects."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from agent.domain.market.label import Label
from agent.domain.slot import Slot
from agent.markets import labels
from agent.simulator.dstack.model import Run
from agent.simulator.dstack.world import World as Clouds
from agent.simulator.instances.billing import Till, Turn
from agent.simulator.instances.container_state import Container
from agent.simulator.mithril.model import Bid, Status
from agent.simulator.mithril.world import World
from agent.simulator.runpod import assumed_figures
from agent.simulator.runpod.model import Pod
from agent.simulator.vast.model import Contract, EndCause
from tests.support.scene import FLEET
from tests.support.steered import Simulator

ABORTED = "aborted_by_user"
"""How dstack's server calls an end by order."""


@dataclasses.dataclass(slots=True)
class Box:
    """One instance as it really is. `label` is the first of ours that it ever carried."""

    market: str
    instance_id: str
    thing: Contract | Pod | Bid | Run
    label: Label | None = None
    kept_for: Slot | None = None
    """The slot that it went on with after the one of its label, as the ledger has it."""

    @property
    def slot(self) -> Slot | None:
        """The slot that it is paid for; None for what is none of ours."""
        return self.kept_for or (self.label.slot if self.label is not None else None)

    @property
    def is_live(self) -> bool:
        """Whether it exists."""
        return self.thing.ended is None

    @property
    def was_destroyed(self) -> bool:
        """Whether somebody's order ended it, not its host."""
        if isinstance(self.thing, Run):
            return self.thing.reason == ABORTED
        return self.thing.end_cause in {EndCause.DESTROYED, EndCause.DESTROYED.value}

    @property
    def is_ending(self) -> bool:
        """Whether its server has begun to end it: it bills until its cloud has taken it back, or until ever."""
        return self.is_live and isinstance(self.thing, Run) and self.thing.reason is not None

    @property
    def is_ours(self) -> bool:
        """Whether it carries our label now."""
        return ours(self.thing.label) is not None

    @property
    def is_running(self) -> bool:
        """Whether its container runs on its GPU."""
        thing = self.thing
        return self.is_live and thing.holds_gpu and thing.container is Container.RUNNING and not thing.is_offline

    @property
    def is_waiting(self) -> bool:
        """Whether it is a bid without a machine that the next auction may start."""
        return self.is_live and isinstance(self.thing, Bid) and self.thing.status is Status.OPEN

    @property
    def charged(self) -> float:
        """Dollars that it cost so far; the till must be settled."""
        return sum(self.thing.charged.values())


def ours(label: str | None) -> Label | None:
    """Return the parts of a label of our fleet."""
    read = labels.parse(label or "")
    return read if read is not None and read.fleet_id == FLEET else None


def run_price(run: Run) -> float:
    """Return the dollars an hour of a run's machine; before it has one, the most that it may cost."""
    most = run.configuration.get("max_price") or 0.0
    return run.machine.kind.cents / 100 if run.machine is not None else float(most)


class Truth:
    """Every instance there ever was, found again after every step of the world."""

    def __init__(self, simulator: Simulator, markets: tuple[str, ...]) -> None:
        self._simulator = simulator
        self._markets = markets
        self._counts = dict.fromkeys(markets, 0)
        self._turns = dict.fromkeys(markets, 0)
        self._numbers: dict[tuple[str, int], Box] = {}
        self._slots: dict[str, Slot] = {}
        """By the intent: a short label names no workload."""
        self.boxes: dict[tuple[str, str], Box] = {}
        self.live: list[Box] = []

    @property
    def now(self) -> float:
        """Return the markets' time."""
        return self._simulator.world.now

    @property
    def auctions(self) -> World | None:
        """Return the market of auctions, None where a story has none."""
        return self._simulator.mithril.world if "mithril" in self._markets else None

    @property
    def clouds(self) -> Clouds | None:
        """Return dstack's server with its clouds, None where a story has none."""
        return self._clouds() if "dstack" in self._markets else None

    def hear(self, intent_id: str, place: Slot) -> None:
        """Note for which slot a rent leaves whose label is short."""
        self._slots[intent_id] = place

    def label(self, text: str | None) -> Label | None:
        """Return the parts of a label of our fleet; a short one names the workload of its intent."""
        label = ours(text)
        if label is None or label.slot.workload:
            return label
        return dataclasses.replace(label, slot=self._slots.get(label.intent_id, label.slot))

    def refresh(self, now: float) -> None:
        """Move the worlds to `now` and take in new instances."""
        self._simulator.advance_to(now)
        for market in self._markets:
            things = self._things(market)
            if len(things) > self._counts[market]:
                for key in list(things)[self._counts[market] :]:
                    self._take(Box(market, str(key), things[key]))
                self._counts[market] = len(things)
        for box in self.live:
            if box.label is None:
                box.label = self.label(box.thing.label)
        self.live = [box for box in self.live if box.is_live]

    def named(self, market: str, name: str) -> str:
        """Return the id of the newest instance of a name, or the name itself where a market knows none by names."""
        runs = self._clouds().runs.values() if market == "dstack" else ()
        return next((run.uuid for run in reversed(list(runs)) if run.name == name), name)

    def _clouds(self) -> Clouds:
        found: Clouds = self._simulator.sides["dstack"].world  # type: ignore[attr-defined]
        return found

    def _things(self, market: str) -> Mapping[Any, Any]:
        if market == "dstack":
            return self._clouds().runs
        if market == "vast":
            return self._simulator.world.contracts
        return self._simulator.pods.pods if market == "runpod" else self._simulator.mithril.world.bids

    def _till(self, market: str) -> Till:
        if market == "dstack":
            return self._clouds().till
        if market == "vast":
            return self._simulator.world._desk.till
        return self._simulator.pods.fleet.till if market == "runpod" else self._simulator.mithril.world.fleet.till

    def _take(self, box: Box) -> None:
        box.label = self.label(box.thing.label)
        self.boxes[box.market, box.instance_id] = box
        self._numbers[box.market, box.thing.contract_id] = box
        self.live.append(box)

    def settle(self) -> None:
        """Bring what everything was charged up to the present."""
        for market in self._markets:
            if market == "vast":
                self._simulator.world.settle()
            elif market == "runpod":
                self._simulator.pods.charged_total()
            elif market == "dstack":
                self._clouds().charged_total()
            else:
                self._simulator.mithril.world.charged_total()

    def gpu_rate(self, box: Box) -> float:
        """Return what its GPUs are charged an hour right now."""
        return self._rates(box)[0]

    def rate(self, box: Box) -> float:
        """Return its present charge an hour, without traffic."""
        gpu, disk = self._rates(box)
        return gpu + disk

    def full_rate(self, box: Box) -> float:
        """Return its charge an hour while it runs, without traffic."""
        thing = box.thing
        if isinstance(thing, Contract):
            gpu = thing.bid if thing.bid is not None else self._simulator.world.ask(thing.slice)
            return gpu + self._simulator.world.disk_rate(thing)
        if isinstance(thing, Bid):
            return thing.rate or min(self._spot(thing), thing.limit_cents) / 100
        if isinstance(thing, Run):
            return run_price(thing)
        return thing.rate + self._rates(box)[1]

    def _spot(self, bid: Bid) -> int:
        return self._simulator.mithril.world.pools[bid.pool.kind.fid, bid.pool.region].spot_cents

    def disk_rate(self, box: Box) -> float:
        """Return what its disk is charged an hour while it runs."""
        thing = box.thing
        if isinstance(thing, Contract):
            return self._simulator.world.disk_rate(thing)
        if isinstance(thing, Bid | Run):
            return 0.0
        disks = thing.disk_gb * assumed_figures.CONTAINER_DISK + thing.volume_gb * assumed_figures.VOLUME_RUNNING
        return disks / assumed_figures.MONTH_HOURS

    def _rates(self, box: Box) -> tuple[float, float]:
        meter = self._till(box.market)._meters.get(box.thing.contract_id)
        return (meter.rates.gpu, meter.rates.disk) if meter is not None else (0.0, 0.0)

    def turns(self) -> Iterator[tuple[Box, Turn]]:
        """Yield every change of an instance's cost since the last call."""
        for market in self._markets:
            turns = self._simulator.world.turns() if market == "vast" else self._till(market).turns
            for turn in turns[self._turns[market] :]:
                box = self._numbers.get((market, turn.contract_id))
                if box is not None:
                    yield box, turn
            self._turns[market] = len(turns)
