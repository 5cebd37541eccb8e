"""Tells one field of a market's answers wrong and returns what the program did otherwise.

The world is still: a program that is told the truth sends no order after its slots run. Two harms count: paying for
what nobody uses, and letting go of what somebody uses.
"""

import dataclasses
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

from agent.domain import money
from agent.domain.market import gpu
from agent.domain.work.order import Order
from agent.domain.work.workload import Requirements, Workload
from agent.ledger.ledger_errors import LedgerError
from agent.markets.dstack.vendor_record import DstackOptions
from agent.markets.market_record import MarketOptions
from agent.markets.mithril.vendor_record import MithrilOptions
from agent.simulator import faults
from tests.lies.fields import Lie
from tests.support import builders
from tests.support.both import OF_THE_PAST, Both, both
from tests.support.world import in_memory

SLACK = 0.02
"""Dollars by which the count may miss the market's charges in a stretch: one poll at the rate, and rounding."""
QUIET_MINUTES = 6.0
"""How long the market tells the truth after a lie, so that what the lie began has ended."""
LIES_OF_A_WORLD = 20
ONCE, HOUR = 0.0, 60.0
"""Minutes for which a lie is told: in one cycle, and for an hour."""


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """A market, the work on it and the keys of its own table."""

    market: str
    works: tuple[Workload, ...]
    options: Mapping[str, MarketOptions] | None = None


def place(market: str) -> Place:
    """Return the place whose program is told lies about a market."""
    return _PLACES[market]


@asynccontextmanager
async def opened(where: Place) -> AsyncIterator[Both]:
    """Run the program on a still market while the block runs."""
    with TemporaryDirectory(prefix="gpubid-lies-", dir=in_memory()) as folder:
        async with both(
            Path(folder),
            *where.works,
            markets=(where.market,),
            climate=OF_THE_PAST,
            options=where.options,
            is_wired=False,
        ) as world:
            yield world


@dataclasses.dataclass(frozen=True, slots=True)
class Truth:
    """What is so, whatever anybody says: the instances that exist, what they were charged, and what is counted."""

    live: frozenset[str]
    charged: float
    counted: float


async def truth(world: Both, market: str) -> Truth:
    """Return the truth of a market, and the ledger's count of it."""
    side = world.simulator.sides[market]
    side.wake(world.clock.time())
    told = side.truth()
    live = frozenset(str(each["id"]) for each in told["contracts"] if each["ended"] is None)
    return Truth(live, float(told["charged_total"]), await world.spend())


async def until_running(world: Both, where: Place) -> None:
    """Run cycles until every slot has a running lease."""
    slots = sum(work.slots for work in where.works)
    await world.until(lambda: len(world.running()) == slots)
    await world.cycle(minutes=QUIET_MINUTES)


async def pause(world: Both, where: Place) -> None:
    """Pause every slot as a person does, and run cycles until that is done."""
    for work in where.works:
        await world.app.say(Order("pause", work.name), "a person")
    await world.cycle(minutes=QUIET_MINUTES)


async def swept(market: str, lies: Iterable[Lie], minutes: float, *, is_paused: bool = False) -> dict[str, list[str]]:
    """Tell each lie about a market for so many minutes; return the harms by lie, without the lies that did none.

    Every slot runs, or is paused. A world is used again after a lie without harm, for as long as its account has
    credit.
    """
    where, left, found = place(market), list(lies), dict[str, list[str]]()
    while left:
        async with opened(where) as world:
            await until_running(world, where)
            if is_paused:
                await pause(world, where)
            for _ in range(min(LIES_OF_A_WORLD, len(left))):
                lie = left.pop(0)
                try:
                    harms = await told(world, where, lie, minutes)
                except LedgerError as error:
                    harms = [f"ended: {error}"]
                if harms:
                    found[str(lie)] = harms
                    break
    return found


async def told(world: Both, where: Place, lie: Lie, minutes: float) -> list[str]:
    """Tell a lie while nothing changes; return the harms, or nothing if the program did what it does without it."""
    before, orders = await truth(world, where.market), await _orders(world)
    kept = _standing(world)
    lying(world, where.market, lie)
    await world.cycle(minutes=minutes)
    still(world, where.market)
    await world.cycle(minutes=QUIET_MINUTES)
    after = await truth(world, where.market)
    harms = [f"sent {order}" for order in (await _orders(world))[len(orders) :]]
    if lost := before.live - after.live:
        harms.append(f"lost {sorted(lost)}")
    if kept != _standing(world):
        harms.append(f"leases {sorted(_standing(world))}")
    said = miscounted(after.charged - before.charged, after.counted - before.counted)
    return [*harms, said] if said else harms


def lying(world: Both, market: str, lie: Lie) -> None:
    """Begin a lie."""
    weather = world.simulator.sides[market].weather
    assert weather is not None
    fields = {"fault": "field_lie", "market": market, "field": lie.field.name, "route": lie.field.route, **lie.change}
    weather.add(faults.parse(fields))


def still(world: Both, market: str) -> None:
    """End every lie."""
    weather = world.simulator.sides[market].weather
    assert weather is not None
    weather.clear_all()


def _standing(world: Both) -> set[tuple[str, str]]:
    return {(lease.instance_id, lease.state.value) for lease in world.leases()}


def miscounted(charged: float, counted: float) -> str:
    """Return by how much a count in dollars misses the market's charges, or an empty text."""
    return "" if abs(counted - charged) <= SLACK else f"counted ${counted:.3f} of ${charged:.3f}"


async def _orders(world: Both) -> list[str]:
    reader = await world.app.ledger.reader()
    return [
        f"{one.kind.value} of {one.slot} {one.state.value} ({one.reason})"
        for one in reversed(await reader.intents(10_000))
    ]


_PLACES = {
    "mithril": Place(
        "mithril",
        (
            builders.workload(
                "auctioned",
                requirements=Requirements(gpu_models=(gpu.model("A100 SXM4"),)),
                markets=("mithril",),
                max_price=money.per_hour(3),
                slots=2,
            ),
        ),
        {"mithril": MithrilOptions(project="proj_mine", disk_per_gb_month=Decimal("0.1"))},
    ),
    "dstack": Place(
        "dstack",
        (
            builders.workload(
                "clouded",
                strategy="ondemand",
                requirements=Requirements(gpu_models=(gpu.model("RTX 4090"),)),
                markets=("dstack",),
                max_price=money.per_hour(3),
                slots=2,
            ),
        ),
        {"dstack": DstackOptions(fleet="mine", backends=("aws", "cloudrift"))},
    ),
    "vast": Place(
        "vast",
        (
            builders.workload(
                "steady",
                strategy="ondemand",
                requirements=builders.requirements(gpu_models=(gpu.model("RTX 3090"),)),
                markets=("vast",),
            ),
            builders.workload(
                "cheap",
                requirements=builders.requirements(),
                markets=("vast",),
                # Too low for an ask: it bids.
                max_price=money.per_hour("0.5"),
            ),
        ),
    ),
    "runpod": Place(
        "runpod",
        (
            builders.workload(
                "steady",
                strategy="ondemand",
                requirements=builders.requirements(gpu_models=(gpu.model("RTX A5000"),)),
                markets=("runpod",),
            ),
            builders.workload(
                "cheap",
                strategy="patient",
                requirements=builders.requirements(gpu_models=(gpu.model("RTX 4090"),)),
                markets=("runpod",),
                max_price=money.per_hour("0.6"),
            ),
        ),
    ),
}
