"""Events of a scenario: the residents when the world begins, and the climate's events at set times."""

import math
import random
from collections.abc import Sequence

from agent.simulator import demand
from agent.simulator.climate import Climate, Strike
from agent.simulator.event_queue import Timeline
from agent.simulator.vast.host_auction import Yard
from agent.simulator.vast.model import Host, Slice
from agent.simulator.vast.prices import Prices
from agent.simulator.vast.world_interface import Stage


def draw_residents(rng: random.Random, hosts: Sequence[Host], climate: Climate, start: float) -> dict[int, float]:
    """Draw the hosts that a long on-demand renter holds at the start, and until when."""
    count = round(climate.demand.taken * len(hosts))
    held = set(rng.sample(range(len(hosts)), count))
    return {host.machine_id: start + demand.residence_left(rng) for index, host in enumerate(hosts) if index in held}


def plan(world: Stage, timeline: Timeline, prices: Prices, rng: random.Random) -> None:
    """Put the climate's spikes, strikes and deposits on the timeline."""
    start = timeline.now
    for turn in prices.turns:
        timeline.put(turn, lambda: _reprice(world))
    for strike in world.climate.strikes:
        timeline.put(start + strike.at_seconds, lambda strike=strike: _strike(world, strike, rng))  # type: ignore[misc]
    for deposit in world.climate.deposits:
        timeline.put(
            start + deposit.at_seconds,
            lambda dollars=deposit.dollars: world.set_credit(world.credit + dollars),  # type: ignore[misc]
        )


def rivals_slice(world: Stage, yard: Yard, gpus: int) -> Slice:
    """Choose the slice that a competitor of that size wants: ours, else one that overlaps it, else the cheapest."""
    ours = [contract.slice for contract in yard.contracts]
    wanted = {gpu for slice_ in ours for gpu in slice_.gpus}
    slices = [slice_ for slice_ in yard.slices if slice_.num_gpus == gpus]
    if not slices:
        first = min(wanted, default=0)
        first = max(min(first, yard.host.gpu_count - gpus), 0)
        return Slice(0, yard.host.machine_id, yard.host, tuple(range(first, min(first + gpus, yard.host.gpu_count))))

    def rank(slice_: Slice) -> tuple[bool, int, float]:
        price = yard.price_to_win(slice_, world.now)
        overlap = len(wanted.intersection(slice_.gpus))
        return slice_ not in ours, -overlap, math.inf if price is None else price

    return min(slices, key=rank)


def _reprice(world: Stage) -> None:
    for yard in world.attended():
        yard.reprice(world.now)


def _strike(world: Stage, strike: Strike, rng: random.Random) -> None:
    """Strike a host: one that runs something of ours if the strike aims at that and there is one."""
    held = sorted(contract.slice.machine_id for contract in world.live_contracts() if contract.holds_gpu)
    machine_id = rng.choice(held if held and strike.aim == "held" else list(world.hosts))
    if strike.fault == "host_gone":
        world.set_host_gone(machine_id)
    elif strike.fault == "price_rise":
        world.landlord.raise_price(machine_id, strike.factor)
    elif strike.fault == "maintenance":
        world.landlord.plan_maintenance(machine_id, strike.notice_seconds, strike.seconds)
    else:
        world.set_host_offline(machine_id, world.now + strike.seconds)
