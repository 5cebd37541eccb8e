"""The ledger's own estimate, from before a charge is read, agrees with the market's bill; a drift is reported."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from agent.act import bill_check
from agent.decide.operators import bill_drift
from agent.domain.money import Usd
from agent.markets import market_errors
from tests.support.both import both
from tests.support.world import Rehearsed, play, rehearsed, work

EVE = dt.datetime(2026, 7, 27, 22, 30, tzinfo=dt.UTC)
LATER = dt.timedelta(hours=3)
POLL_SECONDS = 15.0


@pytest.mark.parametrize("seed", [3, 11])
def test_a_day_is_within_half_a_per_cent_a_poll_a_transition_or_a_cent(seed: int) -> None:
    async def story(world: Rehearsed) -> None:
        await world.cycle(minutes=110)
        now = world.clock.now() + LATER
        found = await bill_check.reconcile(world.app.ledger, world.app.markets, now)
        assert [drift.day for drift in found] == [EVE.date()]
        [drift] = found
        reader = await world.app.ledger.reader()
        events = await reader.events(limit=10_000)
        turns = sum(event.kind.startswith("lease.") for event in events)
        rate = max(lease.gpu_rate.dollars for lease in await reader.leases())
        allowed = max(0.005 * drift.charged.dollars, turns * rate * POLL_SECONDS / 3600, 0.01)
        assert abs(drift.amount.dollars) <= allowed, (drift, allowed)
        assert drift.charged.micros > 0
        # A day is compared once, and its estimate from before its bill was read stays.
        assert await bill_check.reconcile(world.app.ledger, world.app.markets, now) == ()
        lines = await reader.bills(EVE.date(), EVE.date() + dt.timedelta(days=1))
        assert sum(line.estimate.micros for line in lines) == drift.estimate.micros

    play(story, seed=seed, workloads=(work(slots=2),), start=EVE)


@pytest.mark.parametrize("strategy", ["patient", "ondemand"])
async def test_a_day_on_runpod_agrees_with_its_bill(tmp_path: Path, strategy: str) -> None:
    works = work(slots=2, strategy=strategy)
    async with both(tmp_path, works, markets=("runpod",), seed=3, start=EVE) as world:
        await world.cycle(minutes=110)
        now = world.clock.now() + LATER
        world.clock.advance(LATER.total_seconds())
        [drift] = await bill_check.reconcile(world.app.ledger, world.app.markets, now)
        assert (drift.market, drift.day) == ("runpod", EVE.date())
        reader = await world.app.ledger.reader()
        turns = sum(event.kind.startswith("lease.") for event in await reader.events(limit=10_000))
        rate = max(lease.gpu_rate.dollars for lease in await reader.leases())
        allowed = max(0.005 * drift.charged.dollars, turns * rate * POLL_SECONDS / 3600, 0.01)
        midnight = dt.datetime(2026, 7, 28, tzinfo=dt.UTC).timestamp()
        truth = sum(charge.amount for charge in world.charges("runpod") if charge.day < midnight)
        assert drift.charged.dollars == pytest.approx(truth, abs=0.001)
        assert truth > 0.1
        assert abs(drift.amount.dollars) <= allowed, (drift, allowed)


class Dearer:
    """A market whose bill is a tenth above its listed rates, and that does not answer at first."""

    def __init__(self, market: Any) -> None:
        self._market = market
        self.name = market.name
        self.is_down = True

    async def charges(self, since: dt.datetime, until: dt.datetime) -> list[Any]:
        if self.is_down:
            raise market_errors.Unavailable("down")
        told = await self._market.charges(since, until)
        return [type(one)(one.instance_id, Usd(one.amount.micros * 11 // 10), one.day) for one in told]


async def test_a_bill_that_drifts_is_told_and_one_that_cannot_be_read_is_tried_again(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, seed=3, workloads=(work(slots=2),), start=EVE) as world:
        await world.cycle(minutes=110)
        now = world.clock.now() + LATER
        market: Any = Dearer(world.app.markets["vast"])
        assert await bill_check.reconcile(world.app.ledger, {"vast": market}, now) == ()
        reader = await world.app.ledger.reader()
        kept = await reader.bills(EVE.date(), EVE.date() + dt.timedelta(days=1))
        assert kept
        assert all(line.charged is None for line in kept)
        market.is_down = False
        [drift] = await bill_check.reconcile(world.app.ledger, {"vast": market}, now + dt.timedelta(hours=1))
        assert drift.share > bill_drift.MOST_DRIFT
        [event] = await reader.events(kinds=["bill.drifted"])
        assert event.amount == drift.amount
        after = await reader.bills(EVE.date(), EVE.date() + dt.timedelta(days=1))
        assert [line.estimate for line in after] == [line.estimate for line in kept]
