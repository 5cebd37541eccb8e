"""Price history: thinned by change, rolled up after two weeks, nothing lost that a mean needs."""

import asyncio
import datetime as dt
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.clock import SteppedClock
from agent.domain.market.gpu import GpuModel
from agent.domain.market.price import PriceSample, PriceSpan
from agent.domain.money import UsdPerHour
from agent.ledger.ledger_errors import LedgerError
from agent.ledger.store import Ledger
from agent.ledger.tables import price_history
from tests.ledger.values import NOW, sample
from tests.support import engines

MINUTE = dt.timedelta(minutes=1)


async def observe(ledger: Ledger, *samples: PriceSample) -> None:
    async with ledger.transaction() as tx:
        tx.observe_prices(samples)


async def kept(ledger: Ledger) -> list[tuple[int | None, int | None]]:
    history = await (await ledger.reader()).prices()
    return [(one.ask.micros if one.ask else None, one.floor.micros if one.floor else None) for one in reversed(history)]


async def test_only_changes_are_kept(ledger: Ledger) -> None:
    seen = [(300, 150), (300, 150), (310, 150), (310, None), (310, None), (None, None), (310, 150), (310, 150)]
    for minute, (ask, floor) in enumerate(seen):
        await observe(ledger, sample(ask, floor, at=NOW + minute * MINUTE))
    assert await kept(ledger) == [(300, 150), (310, 150), (310, None), (None, None), (310, 150)]


async def test_what_was_kept_last_is_known_after_a_restart(path: Path, clock: SteppedClock) -> None:
    for minute, ask in enumerate([300, 300, 310, 310]):
        ledger = await Ledger.open(engines.place(path), clock=clock)
        await observe(ledger, sample(ask, at=NOW + minute * MINUTE))
        await ledger.close()
    ledger = await Ledger.open(engines.place(path), clock=clock)
    assert await kept(ledger) == [(300, 150_000), (310, 150_000)]
    await ledger.close()


async def test_hosts_markets_and_sizes_are_apart(ledger: Ledger) -> None:
    places: tuple[dict[str, Any], ...] = ({}, {"host_id": "h2"}, {"market": "runpod"}, {"gpus": 2})
    for minute in range(3):
        await observe(ledger, *(sample(at=NOW + minute * MINUTE, **place) for place in places))
    assert len(await kept(ledger)) == len(places)


async def test_two_slices_of_one_size_do_not_take_turns(ledger: Ledger) -> None:
    for minute in range(4):
        at = NOW + minute * MINUTE
        pair = [sample(300, 100, at=at), sample(200, None, at=at), sample(250, 90, at=at)]
        await observe(ledger, *(pair if minute % 2 else reversed(pair)))
    assert await kept(ledger) == [(250, 90)]


async def test_old_samples_become_hours_and_later_ones_stay(ledger: Ledger, clock: SteppedClock) -> None:
    start = NOW.replace(minute=0)
    for minute, ask in enumerate([300, 100, 200]):
        await observe(ledger, sample(ask, 50, at=start + minute * MINUTE))
    await observe(ledger, sample(400, None, host_id="h2", at=start + 5 * MINUTE))
    await observe(ledger, sample(400, None, host_id="h2", gpu=GpuModel("H100 SXM"), gpus=8, at=start + 5 * MINUTE))
    clock.advance(3600)
    await observe(ledger, sample(500, 60, at=clock.now()))
    clock.advance(dt.timedelta(days=price_history.RAW_DAYS).total_seconds())
    await ledger.tidy()
    reader = await ledger.reader()
    assert [(one.at, one.ask) for one in await reader.prices()] == [(start + 60 * MINUTE, UsdPerHour(500))]
    hours = {(hour.gpu, hour.gpus): hour for hour in await reader.price_hours()}
    assert set(hours) == {("RTX 4090", 1), ("H100 SXM", 8)}
    hour = hours[GpuModel("RTX 4090"), 1]
    assert (hour.hour, hour.market) == (start, "vast")
    assert hour.ask == PriceSpan(4, UsdPerHour(100), UsdPerHour(250), UsdPerHour(400))
    assert hour.floor == PriceSpan(3, UsdPerHour(50), UsdPerHour(50), UsdPerHour(50))
    assert hours[GpuModel("H100 SXM"), 8].floor is None
    assert await reader.price_hours(gpu=GpuModel("A100")) == []
    assert len(await reader.price_hours(market="vast", since=start, until=start + 60 * MINUTE)) == 2


async def test_an_unchanged_price_is_kept_again_once_its_sample_is_rolled_up(
    ledger: Ledger, clock: SteppedClock
) -> None:
    await observe(ledger, sample(at=clock.now()))
    clock.advance(dt.timedelta(days=price_history.RAW_DAYS, hours=2).total_seconds())
    await observe(ledger, sample(at=clock.now()))
    await ledger.tidy()
    assert await kept(ledger) == []
    await observe(ledger, sample(at=clock.now()))
    assert await kept(ledger) == [(300_000, 150_000)]


@pytest.mark.only_sqlite
async def test_a_tidying_that_fails_halfway_keeps_what_it_did_and_the_next_one_does_the_rest(
    ledger: Ledger, clock: SteppedClock, path: Path
) -> None:
    """One that took too long once had more to do each night, and never succeeded again."""
    days = [NOW.replace(minute=0) + dt.timedelta(days=day) for day in range(4)]
    for number, at in enumerate(days):
        await observe(ledger, sample(100 + number, 50, at=at), sample(200, 60, host_id="h2", at=at + MINUTE))
    clock.advance(dt.timedelta(days=price_history.RAW_DAYS + 5).total_seconds())
    micros = int(days[2].timestamp() * 1_000_000)
    engines.execute(
        path,
        f"CREATE TRIGGER late BEFORE DELETE ON prices WHEN OLD.at >= {micros} BEGIN SELECT RAISE(ABORT, 'late'); END",
    )
    with pytest.raises(LedgerError):
        await ledger.tidy()
    reader = await ledger.reader()
    assert {one.at for one in await reader.prices()} == {days[2], days[3]}
    engines.execute(path, "DROP TRIGGER late")
    await ledger.tidy()
    assert await reader.prices() == []
    hours = sorted(await reader.price_hours(), key=lambda hour: hour.hour)
    assert [hour.hour for hour in hours] == days
    assert [hour.ask.samples if hour.ask else 0 for hour in hours] == [2, 1, 1, 1], "each sample counts once"


observed = st.tuples(st.integers(0, 40 * 24 * 60), st.integers(0, 2), st.none() | st.integers(0, 9))


async def assert_rolled_alike(path: Path, seen: list[tuple[int, int, int | None]], tidies: list[int]) -> None:
    """Observe and tidy in order of time, then compare the hours with sums made by hand."""
    clock = SteppedClock(NOW)
    ledger = await Ledger.open(engines.place(path), clock=clock)
    raw: list[PriceSample] = []
    last: dict[str, PriceSample] = {}
    steps = sorted(
        [(minute, host, ask) for minute, host, ask in seen] + [(day * 1440, -1, None) for day in tidies], key=str
    )
    for minute, host, ask in sorted(steps, key=lambda step: step[0]):
        clock.advance((NOW + minute * MINUTE - clock.now()).total_seconds())
        if host < 0:
            await ledger.tidy()
            before = price_history.raw_before(clock.now())
            last = {name: one for name, one in last.items() if one.at >= before}
            continue
        one = sample(ask, None, host_id=f"h{host}", at=clock.now())
        await observe(ledger, one)
        if one.host_id not in last or last[one.host_id].ask != one.ask:
            raw = [other for other in raw if (other.host_id, other.at) != (one.host_id, one.at)] + [one]
            last[one.host_id] = one
    clock.advance(dt.timedelta(days=price_history.RAW_DAYS + 1).total_seconds())
    await ledger.tidy()
    by_hour: dict[dt.datetime, list[int]] = defaultdict(list)
    for one in raw:
        by_hour[one.at.replace(minute=0)] += [one.ask.micros] if one.ask is not None else []
    expected = {
        hour: PriceSpan(
            len(asks), UsdPerHour(min(asks)), UsdPerHour(round(sum(asks) / len(asks))), UsdPerHour(max(asks))
        )
        if asks
        else None
        for hour, asks in by_hour.items()
    }
    found = await (await ledger.reader()).price_hours()
    assert {hour.hour: hour.ask for hour in found} == expected
    await ledger.close()


@settings(max_examples=30, deadline=None)
@given(st.lists(observed, max_size=25), st.lists(st.integers(0, 50), max_size=3))
@pytest.mark.nightly
def test_hours_are_the_same_however_often_they_are_rolled_up(
    seen: list[tuple[int, int, int | None]], tidies: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(assert_rolled_alike(Path(folder) / "ledger.sqlite", seen, tidies))
