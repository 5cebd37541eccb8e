"""Other renters, who take stock and give it back, drawn per host so that our actions change no draw."""

import math
import random
from collections.abc import Callable, Mapping

from agent.simulator import demand
from agent.simulator import recorded_figures as shared
from agent.simulator.climate import Climate
from agent.simulator.event_queue import Timeline
from agent.simulator.runpod import assumed_figures
from agent.simulator.runpod.climate_table import Runpod
from agent.simulator.runpod.model import Guest, Host
from agent.simulator.runpod.stock import Holder, Stock

_MEAN_STAY_HOURS = (
    sum(share * minutes * math.exp(deviation**2 / 2) for share, minutes, deviation in shared.HOLDS) / 60.0
)
# A renter who finds no room goes elsewhere, so this many more must come for the climate's share in the long run.
_TURNED_AWAY = 0.75  # fitted: within 0.05 of the share for shares from 0.3 to 0.82
_MEAN_GPUS = sum(assumed_figures.GUEST_GPUS) / len(assumed_figures.GUEST_GPUS)


class Crowd:
    """Brings other renters and removes them."""

    def __init__(
        self,
        timeline: Timeline,
        climate: Climate,
        stock: Stock,
        hosts: Mapping[int, Host],
        seed: str,
        *,
        floor_of: Callable[[Host], float | None],
        displace: Callable[[list[Holder]], None],
    ) -> None:
        """Fill the hosts by the climate's share, and plan who comes next."""
        self._timeline = timeline
        self._climate = climate
        self._stock = stock
        self._floor_of = floor_of
        self._displace = displace
        self._count = 0
        for host in hosts.values():
            rng = random.Random(f"{seed}/crowd/{host.machine_id}")
            self._settle(host, rng)
            self._await_next(host, rng)

    def invite(self, host: Host, gpus: int, bid: float | None, until: float) -> Guest | None:
        """Let a renter take GPUs of a host, and displace others if it may; None if there is no room."""
        yielding = self._stock.yielding(host, gpus, bid)
        if yielding is None:
            return None
        self._displace(yielding)
        self._count += 1
        guest = Guest(self._count, host, gpus, bid, until)
        self._stock.add(guest)
        if until < math.inf:
            self._timeline.put(until, lambda: self._leave(guest))
        return guest

    def _leave(self, guest: Guest) -> None:
        self._stock.remove(guest)

    def _settle(self, host: Host, rng: random.Random) -> None:
        for _ in range(host.gpu_count):
            is_taken, stays, is_bid, over = rng.random(), _left(rng), rng.random(), rng.gauss(0.0, 1.0)
            if is_taken < self._climate.demand.taken:
                self.invite(host, 1, self._bid(host, is_bid, over), self._timeline.now + stays)

    def _await_next(self, host: Host, rng: random.Random) -> None:
        taken = min(self._climate.demand.taken, 0.95)
        per_hour = (
            self._climate.demand.arrivals
            * host.gpu_count
            * taken
            / (1.0 - taken) ** _TURNED_AWAY
            / _MEAN_GPUS
            / _MEAN_STAY_HOURS
        )
        gap = demand.gap(rng, per_hour)
        if gap < math.inf:
            self._timeline.put(self._timeline.now + gap, lambda: self._come(host, rng))

    def _come(self, host: Host, rng: random.Random) -> None:
        gpus, stays = rng.choice(assumed_figures.GUEST_GPUS), demand.stay(rng)
        is_bid, over = rng.random(), rng.gauss(0.0, 1.0)
        bid = self._bid(host, is_bid, over)
        self.invite(host, min(gpus, host.gpu_count), bid, self._timeline.now + stays)
        self._await_next(host, rng)

    def _bid(self, host: Host, drawn: float, over: float) -> float | None:
        floor = self._floor_of(host)
        if drawn >= self._climate.table(Runpod).bid_share or floor is None:
            return None
        median, deviation = assumed_figures.BID_OVER_FLOOR
        return round(min(floor * max(median * math.exp(deviation * over), 1.0), host.gpu.price(host.cloud)), 3)


def _left(rng: random.Random) -> float:
    """Draw the remaining stay of a renter seen at a random moment, seconds: long stays are seen more often."""
    _, minutes, deviation = shared.HOLDS[-1]
    return 60.0 * minutes * math.exp(deviation * rng.gauss(0.0, 1.0)) * 2.0 * rng.random()
