"""A rehearsed day on PostgreSQL in which the lead passes every ten minutes, and the same day under one leader.

Both days have one market, whose clock only the day moves, and the same losses. A leader's sessions are ended at the
server, as those of a killed daemon; some leaders stop in order instead. A standby on another box, which has looked
before, takes the lead after a gap, in which the market goes on.

1. Whatever is ordered, is ordered on both days, and as often: no lease ends, moves or doubles because of a failover.
2. The spend differs by 2 % at most, and what the gaps cost at the day's mean rate.
"""

import asyncio
import contextlib
import dataclasses
from collections import Counter
from pathlib import Path
from random import Random

from agent.domain.record.lease import LeaseState
from agent.ledger import storage
from agent.ledger.ledger_errors import LedgerError
from tests.support import engines, postgres
from tests.support.postgres import Server
from tests.support.scene import MINUTE, Scene, strategies, work
from tests.support.world import Rehearsed, rehearsed

FAILOVER_MINUTES = 10
SLOTS = 3
TROUBLE_MINUTES, RIVAL_STAYS_MINUTES = 70, 50
"""Something befalls one slot after another so often. A rival stays until so long after the last failover before it."""
MOST_GAP_SECONDS = 20.0
"""More than a standby needs to replace a leader that froze."""
IN_ORDER_SHARE = 0.25
"""Of the leaders that stop in order, as for an upgrade."""
SPEND_SHARE = 0.02


@dataclasses.dataclass(frozen=True, slots=True)
class Day:
    """Its orders by kind, the rented hosts, the leases that run at its end, dollars, failovers and their gaps."""

    orders: Counter[str]
    hosts: tuple[int, ...]
    running: int
    dollars: float
    failovers: int
    gap_seconds: float


def wrong(day: Day, calm: Day, hours: float) -> list[str]:
    """Return how a day with failovers differs from the one without, as sentences."""
    found = [
        f"{name}: {one} with failovers, {other} without"
        for name, one, other in (
            ("orders", dict(day.orders), dict(calm.orders)),
            ("rented hosts", day.hosts, calm.hosts),
            ("running at the end", day.running, calm.running),
        )
        if one != other
    ]
    allowed = SPEND_SHARE * calm.dollars + day.gap_seconds / 3600 * calm.dollars / hours
    if abs(day.dollars - calm.dollars) > allowed:
        found.append(f"spend: ${day.dollars:.4f} with failovers, ${calm.dollars:.4f} without")
    return found


def scene() -> Scene:
    """Return a market in which only trouble happens, and whose every search shows all offers that fit.

    A search of more offers would show a sample of them, and the two days search at different times.
    """
    return Scene(seed=3, workloads=(work(slots=SLOTS),), tuned=strategies(), hosts=60, poll=MINUTE)


async def played(place: Path, hours: float, server: Server | None = None, seed: int = 1) -> Day:
    """Play a day: with a failover every ten minutes if its ledger is on a server, else under one leader."""
    boxes = _Boxes(place, server, Random(seed)) if server is not None else None
    on = engines.played_on(engines.role_url(server.url)) if server is not None else contextlib.nullcontext()
    with on:
        async with rehearsed(place, scene(), is_wired=False) as world:
            trouble, began = _Trouble(world, Random(seed)), world.clock.monotonic()
            for minute in range(0, round(hours * 60), FAILOVER_MINUTES):
                if boxes is not None and minute:
                    await boxes.fail_over(world)
                for until in (trouble.due(minute), minute + FAILOVER_MINUTES):
                    # A gap takes the time of cycles, so both days have the same hours.
                    await world.cycle(minutes=until - (world.clock.monotonic() - began) / 60)
                    trouble.act(minute)
            return await _came_to(world, boxes)


async def _came_to(world: Rehearsed, boxes: "_Boxes | None") -> Day:
    return Day(
        orders=Counter(order.kind.value for order in world.orders),
        hosts=tuple(contract.slice.machine_id for contract in world.contracts()),
        running=sum(lease.state is LeaseState.RUNNING for lease in world.leases()),
        dollars=await world.spend(),
        failovers=boxes.failovers if boxes else 0,
        gap_seconds=boxes.gap_seconds if boxes else 0.0,
    )


class _Trouble:
    """What befalls the slots of a day, one after another: a higher bid, a renter on demand, a host that is gone."""

    def __init__(self, world: Rehearsed, chance: Random) -> None:
        self._world, self._chance = world, chance
        self._due_minute = 0.0
        self._count = 0
        self._is_done = True
        self._rivals: list[int] = []

    def due(self, minute: int) -> float:
        """Return the minute, from this one to the next failover, at which something happens, if it does."""
        self._due_minute = minute + self._chance.uniform(1.0, FAILOVER_MINUTES)
        self._is_done = minute % TROUBLE_MINUTES != FAILOVER_MINUTES
        return self._due_minute

    def act(self, minute: int) -> None:
        """Let what is due happen, once; what a rival took comes back later."""
        if minute % TROUBLE_MINUTES == RIVAL_STAYS_MINUTES:
            for number in self._rivals:
                self._world.market.remove_rival(number)
            self._rivals.clear()
        if self._is_done:
            return
        self._is_done = True
        lease = next(each for each in self._world.leases() if each.slot.index == self._count % SLOTS)
        kind = self._count // SLOTS % 3
        self._count += 1
        if kind == 2:
            self._world.market.destroy(int(lease.instance_id))
        else:
            bid = lease.gpu_rate.dollars * 1.2 if kind == 0 else None
            self._rivals.append(self._world.rival(int(lease.host_id), bid=bid))


class _Boxes:
    """Two boxes whose daemons take the lead in turns."""

    def __init__(self, place: Path, server: Server, chance: Random) -> None:
        self._server, self._chance = server, chance
        self._small_files = [place / name / "ledger.sqlite" for name in "ab"]
        for each in self._small_files:
            each.parent.mkdir(parents=True, exist_ok=True)
        self.failovers = 0
        self.gap_seconds = 0.0

    async def fail_over(self, world: Rehearsed) -> None:
        """Let a standby look, end the leader, and let the standby lead after a gap."""
        address = world.config.ledger_server
        assert address is not None
        self.failovers += 1
        campaign = storage.campaign(self._small_files[self.failovers % 2], address, lambda *_: "")
        leader = await asyncio.to_thread(campaign.look)
        assert leader is not None, "a standby sees who leads"
        if self._chance.random() >= IN_ORDER_SHARE:
            self._end_sessions()
        with contextlib.suppress(LedgerError):
            await world.close()
        gap = self._chance.uniform(0.0, MOST_GAP_SECONDS)
        self.gap_seconds += gap
        world.clock.advance(gap)
        while not campaign.has_won:
            await asyncio.to_thread(campaign.look)
        await world.open(campaign.storage)

    def _end_sessions(self) -> None:
        """End the sessions that hold the lead and write."""
        import psycopg

        with psycopg.connect(self._server.url, autocommit=True) as raw:
            raw.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted")


def compared(place: Path, hours: float) -> tuple[list[str], list[str]]:
    """Play both days in a folder. Return their figures, and what is wrong, as lines."""
    with postgres.serving() as server:
        engines.make_role(server.url)
        calm, day = (asyncio.run(_placed(place / name, hours, on)) for name, on in (("calm", None), ("day", server)))
    orders = ", ".join(f"{count} {kind}s" for kind, count in sorted(day.orders.items()))
    figures = f"{day.failovers} failovers in {hours:g} rehearsed hours, {day.gap_seconds:.0f} s without a leader"
    spend = f"spend with failovers ${day.dollars:.4f}, without ${calm.dollars:.4f}; {orders}"
    return [figures, spend], wrong(day, calm, hours)


async def _placed(place: Path, hours: float, server: Server | None) -> Day:
    await asyncio.to_thread(place.mkdir)
    return await played(place, hours, server)
