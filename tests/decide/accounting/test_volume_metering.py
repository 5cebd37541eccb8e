"""Network volumes are metered from the first pass that knew them, once each, to their workloads in equal parts."""

from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.accounting import volume_metering
from agent.domain.money import FREE, ZERO, Usd, UsdPerHour, total
from agent.domain.record import metered_volume
from agent.domain.record.metered_volume import MeteredVolume
from agent.domain.work.workload import Requirements, Workload
from tests.support import builders
from tests.support.builders import NOW

RATE = builders.per_hour("0.50")
HOUR = timedelta(hours=1)


def work(name: str = "train", volume: str = "nv1", **changes: Any) -> Workload:
    changes = {"markets": ("runpod",), "network_volume_rate": RATE} | changes
    return replace(builders.workload(name, **changes), requirements=Requirements(network_volume=volume))


def known(*volumes: MeteredVolume) -> dict[str, MeteredVolume]:
    return {volume.name: volume for volume in volumes}


ONE = MeteredVolume("nv1", NOW, RATE, ("train",), "runpod")


def test_a_volume_counts_from_when_it_is_first_known_and_once_for_all_its_workloads() -> None:
    assert volume_metering.turned({}, [work()], NOW) == [ONE]
    cheap = builders.per_hour("0.10")
    several = [work("b"), work("a", network_volume_rate=cheap, markets=()), work("c", "nv2"), builders.workload("d")]
    first, second = volume_metering.turned({}, several, NOW)
    assert (first.workloads, first.rate, first.market) == (("a", "b"), RATE, "runpod")
    assert (second.name, second.workloads) == ("nv2", ("c",))
    (unplaced,) = volume_metering.turned({}, [work(markets=("vast", "runpod"))], NOW)
    assert unplaced.market == ""


def test_a_volume_without_a_price_is_not_known() -> None:
    assert volume_metering.turned({}, [work(network_volume_rate=FREE), work(volume="")], NOW) == []


def test_an_unchanged_volume_is_recorded_every_five_minutes_and_a_changed_one_at_once() -> None:
    soon = NOW + volume_metering.METER_EVERY - timedelta(seconds=1)
    assert volume_metering.turned(known(ONE), [work()], soon) == []
    (due,) = volume_metering.turned(known(ONE), [work()], NOW + volume_metering.METER_EVERY)
    assert due == msgspec.structs.replace(ONE, until=NOW + volume_metering.METER_EVERY)
    (dearer,) = volume_metering.turned(known(ONE), [work(network_volume_rate=RATE + RATE)], soon)
    assert (dearer.rate, dearer.until) == (RATE + RATE, soon)


def test_a_volume_that_left_the_configuration_costs_nothing_until_it_is_known_again() -> None:
    later = NOW + HOUR
    (gone,) = volume_metering.turned(known(ONE), [], later)
    assert gone == MeteredVolume("nv1", later)
    assert [share.amount for share in volume_metering.shares(ONE, gone.until)] == [RATE.over(3600)]
    assert volume_metering.turned(known(gone), [], later + HOUR) == []
    assert list(volume_metering.shares(gone, later + HOUR)) == []
    assert volume_metering.burdens(known(gone), later + HOUR) == []
    (again,) = volume_metering.turned(known(gone), [work()], later + HOUR)
    assert again == msgspec.structs.replace(ONE, until=later + HOUR)


def test_a_clock_that_is_set_back_takes_nothing_back_and_counts_nothing_twice() -> None:
    (turned,) = volume_metering.turned(known(ONE), [], NOW - HOUR)
    assert turned.until == NOW
    assert volume_metering.outstanding(known(ONE), NOW - HOUR) == ZERO


@given(
    st.integers(1, 5_000_000),
    st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True),
    st.integers(0, 400_000),
)
def test_the_parts_add_up_to_the_volume_and_stay_within_their_day(micros: int, names: list[str], seconds: int) -> None:
    volume = MeteredVolume("nv1", NOW, UsdPerHour(micros), tuple(names))
    until = NOW + timedelta(seconds=seconds)
    shares = list(volume_metering.shares(volume, until))
    days: dict[date, Usd] = {}
    for share in shares:
        days[share.day] = days.get(share.day, ZERO) + share.amount
    for day, amount in days.items():
        begin = datetime(day.year, day.month, day.day, tzinfo=NOW.tzinfo)
        span = min(until, begin + timedelta(days=1)) - max(NOW, begin)
        assert amount == volume.rate.over(span.total_seconds())
    burdens = volume_metering.burdens(known(volume), until)
    assert sum(burden.rate.micros for burden in burdens) == micros
    assert total(burden.owed for burden in burdens) == volume.rate.over(seconds)
    assert max(burden.rate.micros for burden in burdens) - min(burden.rate.micros for burden in burdens) <= 1


def test_the_text_in_the_ledger_is_the_volume() -> None:
    assert metered_volume.decoded(metered_volume.encoded(ONE)) == ONE
