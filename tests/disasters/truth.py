"""The truth: every instance of both markets in one shape, straight from the simulators' own objects."""

import dataclasses
from collections.abc import Iterator

from agent.domain.market.label import Label
from agent.markets import labels
from agent.simulator.instances.billing import Turn
from agent.simulator.market_model import Container, Contract, EndCause
from agent.simulator.runpod import assumed_figures
from agent.simulator.runpod.model import Pod
from tests.support.scene import FLEET
from tests.support.steered import Simulator


@dataclasses.dataclass(slots=True)
class Box:
    """One instance as it really is. `label` is the first of ours that it ever carried."""

    market: str
    instance_id: str
    thing: Contract | Pod
    label: Label | None = None

    @property
    def is_live(self) -> bool:
        """Whether it exists."""
        return self.thing.ended is None

    @property
    def was_destroyed(self) -> bool:
        """Whether somebody's order ended it, not its host."""
        return self.thing.end_cause in {EndCause.DESTROYED, EndCause.DESTROYED.value}

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
    def charged(self) -> float:
        """Dollars that it cost so far; the till must be settled."""
        return sum(self.thing.charged.values())


def ours(label: str | None) -> Label | None:
    """Return the parts of a label of our fleet."""
    read = labels.parse(label or "")
    return read if read is not None and read.fleet_id == FLEET else None


class Truth:
    """Every instance there ever was, found again after every step of the world."""

    def __init__(self, simulator: Simulator, markets: tuple[str, ...]) -> None:
        self._simulator = simulator
        self._markets = markets
        self._counts = dict.fromkeys(("vast", "runpod"), 0)
        self._turns = dict.fromkeys(("vast", "runpod"), 0)
        self.boxes: dict[tuple[str, str], Box] = {}
        self.live: list[Box] = []

    @property
    def now(self) -> float:
        """Return the markets' time."""
        return self._simulator.world.now

    def refresh(self, now: float) -> None:
        """Move the worlds to `now` and take in new instances."""
        self._simulator.advance_to(now)
        for market in self._markets:
            things = self._simulator.world.contracts if market == "vast" else self._simulator.pods.pods
            if len(things) > self._counts[market]:
                for key in list(things)[self._counts[market] :]:
                    self._take(Box(market, str(key), things[key]))  # type: ignore[index]
                self._counts[market] = len(things)
        for box in self.live:
            if box.label is None:
                box.label = ours(box.thing.label)
        self.live = [box for box in self.live if box.is_live]

    def _take(self, box: Box) -> None:
        box.label = ours(box.thing.label)
        self.boxes[box.market, box.instance_id] = box
        self.live.append(box)

    def settle(self) -> None:
        """Bring what everything was charged up to the present."""
        for market in self._markets:
            if market == "vast":
                self._simulator.world.settle()
            else:
                self._simulator.pods.charged_total()

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
        return thing.rate + self._rates(box)[1]

    def disk_rate(self, box: Box) -> float:
        """Return what its disk is charged an hour while it runs."""
        thing = box.thing
        if isinstance(thing, Contract):
            return self._simulator.world.disk_rate(thing)
        disks = thing.disk_gb * assumed_figures.CONTAINER_DISK + thing.volume_gb * assumed_figures.VOLUME_RUNNING
        return disks / assumed_figures.MONTH_HOURS

    def _rates(self, box: Box) -> tuple[float, float]:
        till = self._simulator.world._desk.till if box.market == "vast" else self._simulator.pods.fleet.till
        meter = till._meters.get(box.thing.contract_id)
        return (meter.rates.gpu, meter.rates.disk) if meter is not None else (0.0, 0.0)

    def turns(self) -> Iterator[tuple[Box, Turn]]:
        """Yield every change of an instance's cost since the last call."""
        for market in self._markets:
            world = self._simulator.world
            turns = world.turns() if market == "vast" else self._simulator.pods.fleet.till.turns
            for turn in turns[self._turns[market] :]:
                key = str(turn.contract_id) if market == "vast" else self._simulator.pods.fleet.pod_id(turn.contract_id)
                box = self.boxes.get((market, key))
                if box is not None:
                    yield box, turn
            self._turns[market] = len(turns)
