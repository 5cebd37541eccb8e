"""Reports add up to the last micro-dollar and microsecond, and savings compare with the price of that time."""

from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.accounting import accounts, savings
from agent.domain.market.gpu import GpuModel
from agent.domain.market.interruption import Cause
from agent.domain.market.price import PriceHour, PriceSample, PriceSpan
from agent.domain.market.tenure import Tenure
from agent.domain.money import Usd
from agent.domain.record.account import HOUR, Line, LostWork
from tests.support import builders

NOW = builders.NOW
DAY = NOW.date()


def line(**changes: Any) -> Line:
    """Build a day of a lease: ten paid hours for two dollars, six of them useful."""
    values: dict[str, Any] = {
        "lease_id": "l1", "day": DAY, "workload": "train", "market": "vast", "tenure": Tenure.INTERRUPTIBLE,
        "gpu_spend": builders.usd(2), "disk": builders.usd("0.2"), "traffic": builders.usd("0.1"),
        "paused_disk": builders.usd("0.05"), "paid": 10 * HOUR, "loading": HOUR, "restoring": HOUR, "useful": 6 * HOUR,
        "lost": 2 * HOUR, "gpu": builders.RTX_4090, "gpus": 1, "dlperf": 80.0, "ask": builders.per_hour("0.4"),
        "opened_at": NOW - timedelta(hours=10),
    }  # fmt: skip
    return Line(**{**values, **changes})


def test_waste_is_shown_and_the_useful_hour_bears_it() -> None:
    one = accounts.of_line(line())
    assert one.by_phase == {"loading": 200_000, "restoring": 200_000, "lost": 400_000, "useful": 1_200_000}
    assert one.waste == 850_000
    assert one.per_useful_hour == pytest.approx(2.3 / 6)
    assert one.per_useful_work == pytest.approx(2.3 / 6 / 80)
    assert accounts.of_line(line(useful=0, lost=8 * HOUR)).per_useful_hour is None


times = st.integers(0, 10 * HOUR)
money = st.integers(0, 10_000_000).map(Usd)


@st.composite
def lines(draw: st.DrawFn) -> Line:
    """Draw a line whose parts are its whole, as the ledger keeps it."""
    parts = {name: draw(times) for name in accounts.PHASES}
    return line(
        **parts,
        paid=sum(parts.values()),
        lease_id=draw(st.sampled_from(["l1", "l2"])),
        day=draw(st.sampled_from([DAY, date(2026, 12, 31), date(2027, 1, 1)])),
        workload=draw(st.sampled_from(["train", "serve", ""])),
        gpu=draw(st.sampled_from(["RTX 4090", ""])),
        gpu_spend=draw(money), disk=draw(money), traffic=draw(money),
    )  # fmt: skip


losses = st.builds(
    LostWork, st.sampled_from(["l1", "l2", "l3"]), st.just(NOW), st.sampled_from(Cause), st.integers(0, 2 * HOUR)
)


@given(st.lists(lines(), max_size=6), st.lists(losses, max_size=4), st.sampled_from([*accounts.KEYS, "cause"]))
def test_the_groups_of_a_report_are_its_total(told: list[Line], lost_work: list[LostWork], by: str) -> None:
    whole = accounts.total(accounts.grouped(by, told, lost_work).values())
    assert whole.amount == sum(one.amount.micros for one in told)
    assert whole.paid == sum(one.paid for one in told) == whole.loading + whole.restoring + whole.lost + whole.useful
    assert sum(whole.by_phase.values()) == whole.gpu


def test_by_cause_each_interruption_has_what_it_took() -> None:
    found = accounts.grouped("cause", [line()], [LostWork("l1", NOW, Cause.OUTBID, 2 * HOUR)])
    assert (found["outbid"].lost, found["outbid"].amount, found["outbid"].interruptions) == (2 * HOUR, 400_000, 1)
    assert (found["none"].lost, found["none"].amount) == (0, 1_900_000)


def sample(ask: str | None, at: datetime, host: str = "h1") -> PriceSample:
    rate = None if ask is None else builders.per_hour(ask)
    return PriceSample(at, "vast", host, builders.RTX_4090, 1, rate, None)


def history(samples: list[PriceSample], hours: list[PriceHour], now: datetime) -> savings.History:
    """Return the sums of samples, host by host as the ledger gives them."""
    known = savings.History(hours, now)
    for one in sorted(samples, key=lambda one: (one.market, one.host_id, one.gpus, one.at)):
        hour, ask = int(one.at.timestamp()) // 3600, one.ask.micros if one.ask is not None else None
        known.see(one.market, one.host_id, one.gpus, one.gpu, hour, ask)
    known.finish()
    return known


def price(samples: list[PriceSample], hours: list[PriceHour] | None = None, **changes: Any) -> float | None:
    found = history(samples, hours or [], NOW).price(line(**changes))
    return None if found is None else found / 1_000_000


def test_the_price_is_the_cheapest_known_ask_of_each_hour_then() -> None:
    opened, ended = NOW - timedelta(hours=2), NOW
    early = [sample("0.50", NOW - timedelta(hours=5)), sample("0.30", NOW - timedelta(hours=1), "h2")]
    assert price(early, opened_at=opened, ended_at=ended) == pytest.approx((0.5 + 0.3) / 2)
    later = [*early, sample("0.01", NOW + timedelta(hours=1), "h3")]
    assert price(later, opened_at=opened, ended_at=ended) == pytest.approx(0.4)
    gone = [*early, sample(None, NOW - timedelta(hours=1), "h2")]
    assert price(gone, opened_at=opened, ended_at=ended) == pytest.approx(0.5)


def test_a_slice_that_shows_another_card_keeps_what_each_card_asked() -> None:
    """One host may offer one GPU of two models in turn: the ask of neither ends the other's."""
    opened, ended = NOW - timedelta(hours=2), NOW
    seen = [sample("0.30", NOW - timedelta(hours=4)), sample("0.50", NOW - timedelta(hours=1))]
    other = PriceSample(NOW - timedelta(hours=3), "vast", "h1", GpuModel("A100"), 1, builders.per_hour("0.9"), None)
    assert price([*seen, other], opened_at=opened, ended_at=ended) == pytest.approx((0.3 + 0.5) / 2)


def test_a_host_unseen_for_a_day_is_no_price_and_the_own_host_stands_in() -> None:
    assert price([sample("0.50", NOW - timedelta(days=3))], opened_at=NOW - timedelta(hours=2)) == pytest.approx(0.4)
    assert price([], ask=None) is None
    span = PriceSpan(1, builders.per_hour("0.2"), builders.per_hour("0.3"), builders.per_hour("0.4"))
    hour = PriceHour(NOW.replace(hour=3), "vast", builders.RTX_4090, 1, span, None)
    assert price([], [hour]) == pytest.approx(0.2)


def test_an_hour_s_price_is_of_the_hours_of_its_day_in_which_it_lived() -> None:
    """Begun hours count whole; neither the hours before it opened nor those of the next day do."""
    midnight = NOW.replace(hour=0)
    asks = [sample(f"0.{10 + at}", midnight + timedelta(hours=at, minutes=7)) for at in range(24)]
    told = history([*asks, sample("0.90", midnight + timedelta(days=1))], [], NOW + timedelta(days=3))

    def mean(**changes: Any) -> float:
        found = told.price(line(**changes))
        assert found is not None
        return found / 1_000_000

    opened = midnight + timedelta(hours=2, minutes=59, seconds=59, microseconds=7)
    assert mean(opened_at=opened, ended_at=midnight + timedelta(hours=4, minutes=1)) == pytest.approx(0.13)
    assert mean(opened_at=midnight + timedelta(hours=22, minutes=30), ended_at=None) == pytest.approx(0.325)
    late = midnight + timedelta(days=2)
    assert mean(opened_at=midnight - timedelta(days=1), ended_at=late) == pytest.approx(sum(range(10, 34)) / 2400)
    assert mean(opened_at=None, ended_at=midnight + timedelta(hours=1)) == pytest.approx(0.10)


@pytest.mark.parametrize(("age", "is_known"), [(timedelta(hours=23), True), (timedelta(hours=24, seconds=1), False)])
def test_an_ask_is_known_for_a_day_after_it_was_seen(age: timedelta, is_known: bool) -> None:
    """From the end of the hour it is compared with."""
    hour = NOW.replace(hour=11)
    seen = [sample("0.50", hour + timedelta(hours=1) - age)]
    found = price(seen, opened_at=hour, ended_at=hour + timedelta(minutes=30))
    assert found == pytest.approx(0.5 if is_known else 0.4)


def test_savings_add_up_by_key_and_say_what_has_no_price() -> None:
    told = [line(), line(lease_id="l2"), line(workload="serve", gpu_spend=builders.usd(1)), line(workload="odd")]
    found = savings.grouped(told, lambda one: one.workload, lambda one: None if one.workload == "odd" else 400_000.0)
    assert list(found) == ["odd", "serve", "train"]
    assert found["train"] == savings.Saving(4_600_000, 4_800_000, 12 * HOUR, is_priced=True)
    assert found["serve"] == savings.Saving(1_300_000, 2_400_000, 6 * HOUR, is_priced=True)
    assert found["odd"] == savings.Saving(unknown=6 * HOUR, unpriced=2_300_000)
    assert found["odd"].ratio is None


def test_savings_count_all_that_was_spent_against_useful_hours_alone() -> None:
    found = savings.of_line(line(), 400_000.0)
    assert (found.spent, found.compared, found.useful) == (2_300_000, 2_400_000, 6 * HOUR)
    assert found.ratio == pytest.approx(1 - 2.3 / 2.4)
    wasted = savings.of_line(replace(line(), useful=0, lost=8 * HOUR), 400_000.0)
    assert (wasted.spent, wasted.compared) == (2_300_000, 0)
    assert wasted.saved == -2_300_000
    assert savings.of_line(line(), None) == savings.Saving(unknown=6 * HOUR, unpriced=2_300_000)


def test_what_has_no_price_and_no_useful_time_is_no_loss() -> None:
    idle = savings.of_line(replace(line(), useful=0, lost=8 * HOUR), None)
    assert (idle.spent, idle.unpriced, idle.saved, idle.ratio) == (0, 2_300_000, None, None)
    both = idle.plus(savings.of_line(line(), 400_000.0))
    assert (both.spent, both.unpriced, both.saved) == (2_300_000, 2_300_000, 100_000)
