"""An array of tasks of unequal length on a simulated market, in memory: what it cost, how long it took, and a bound.

A task that is interrupted begins anew on its next host: nothing is kept but what is done. The bound knows all prices:
it does the same hours of work on the cheapest capacity of each look, as many tasks at once as the array, without
starts, transfers and interruptions, and never pays more than the lowest price of a look.
"""

import datetime as dt
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.domain.record.hold import TargetKind, Word
from agent.domain.record.lease import LeaseState
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.order import Order
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Workload, WorkloadKind
from agent.lab.bids.bid_market import WorldMarket
from agent.lab.engine import engine
from agent.markets import port
from agent.simulator import climate_files
from tests.support.world import Rehearsed, Scene, rehearsed, work

POLL = dt.timedelta(minutes=1)
LOOK_SECONDS = 600.0
MINUTES = (20.0, 90.0)
MOST_HOURS = 600.0


@dataclass(frozen=True, slots=True)
class Day:
    """What became of an array.

    `marked` has how often each slot was marked as done. `finished` has how many containers of each slot did its whole
    work: two if it moved from a host that had fallen silent and worked on. `rented_again` counts rents of slots that
    were marked before. `by_hand` counts holds that a person lifted.
    """

    marked: tuple[int, ...]
    finished: tuple[int, ...]
    rented_again: int
    dollars: float
    hours: float
    bound_dollars: float
    bound_hours: float
    most_live: int
    by_hand: int


def array(tasks: int, at_once: int, seed: int, minutes: tuple[float, float] = MINUTES) -> Workload:
    """Return an array whose tasks work for a time of their own, drawn from the seed."""
    dice = random.Random(f"{seed}/tasks")
    seconds = tuple(f"{60 * dice.uniform(*minutes):.0f}" for _ in range(tasks))
    return work(
        "sweep",
        kind=WorkloadKind.BATCH,
        slots=tasks,
        array=ArrayTerms(at_once),
        done_line="done",
        values=(("SIM_DONE_AFTER", seconds),),
        checkpoint=Checkpoint(place=CheckpointPlace.NONE),
    )


async def play(place: Path, weather: str, seed: int, made: Workload, hosts: int = 300, *, is_checked: bool) -> Day:
    """Let an array run to its end; a person settles at once what is held. Raises AssertionError if it does not end."""
    scene = Scene(climate_files.named(weather), seed=seed, hosts=hosts, workloads=(made,), poll=POLL)
    async with rehearsed(place, scene) as world:
        world.is_checked = is_checked
        looks: list[float] = []
        began, most, looked, by_hand = world.clock.now(), 0, -LOOK_SECONDS, 0
        ended_by_hand: dict[int | None, dt.datetime] = {}
        while (done := _done(world)) < made.slots or world.leases():
            ran = (world.clock.now() - began).total_seconds()
            assert ran < MOST_HOURS * 3600, f"{done} of {made.slots} are done after {MOST_HOURS:.0f} h: {world.told()}"
            if ran - looked >= LOOK_SECONDS:
                looked = ran
                looks.append(_cheapest(world, made))
            await world.cycle()
            by_hand += await _settle(world, made, ended_by_hand)
            most = max(most, len({lease.slot for lease in world.leases() if lease.state is not LeaseState.RELEASING}))
        hours = (world.clock.now() - began) / dt.timedelta(hours=1)
        work_hours = [float(each) / 3600 for each in made.values[0][1]]
        bound_hours = max(*work_hours, sum(work_hours) / made.most_live)
        bound = _bound(looks, sum(work_hours), made.most_live)
        events = await world.events("workload.done", "lease.opened")
        done_at = ended_by_hand | {each.slot: each.at for each in events if each.kind == "workload.done"}
        marks = Counter([*ended_by_hand, *(each.slot for each in events if each.kind == "workload.done")])
        marked = tuple(marks[index] for index in range(made.slots))
        again = sum(each.kind == "lease.opened" and each.at > done_at[each.slot] for each in events)
        return Day(marked, _finished(world, made), again, await world.spend(), hours, bound, bound_hours, most, by_hand)


def _done(world: Rehearsed) -> int:
    holds = world.app.ledger.recollection(world.clock.now()).holds
    return sum(each.word.value == "done" for each in holds)


async def _settle(world: Rehearsed, made: Workload, ended: dict[int | None, dt.datetime]) -> int:
    """Lift the holds that wait for a person, as one who looked at the work would, and return how many there were.

    Slots whose work the person found finished are added to those that a person `ended`.
    """
    held = [each for each in world.app.ledger.recollection(world.clock.now()).holds if each.word is Word.HELD]
    for each in held:
        index = int(each.target.spoken.rpartition("/")[2]) if each.target.kind is TargetKind.SLOT else None
        is_finished = index is not None and _finished(world, made)[index] > 0
        if is_finished:
            ended[index] = world.clock.now()
        await world.app.say(Order("done" if is_finished else "resume", each.target.spoken), "a test")
    return len(held)


def _finished(world: Rehearsed, made: Workload) -> tuple[int, ...]:
    """Return how many containers of each slot worked to their end."""
    found = [0] * made.slots
    for contract in world.contracts():
        index = int(contract.env["GPUBID_SLOT"])
        found[index] += contract.worked >= float(made.values[0][1][index]) - 1.0
    return tuple(found)


def _cheapest(world: Rehearsed, made: Workload) -> float:
    """Return the lowest price of an hour that anybody could pay now, in dollars, without the disk."""
    query = port.OfferQuery(made.requirements, made.disk_gb, gpu_models=made.requirements.gpu_models, max_rows=10_000)
    offers = engine.at_once(WorldMarket(world.market).offers(query))
    prices = (price.dollars for each in offers for price in (each.floor, each.ask) if price is not None)
    return min(prices, default=float("inf"))


def _bound(looks: Sequence[float], hours: float, lanes: int) -> float:
    left, dollars, span = hours, 0.0, lanes * LOOK_SECONDS / 3600
    for price in sorted(looks):
        dollars += price * min(span, left)
        left -= min(span, left)
    return dollars
