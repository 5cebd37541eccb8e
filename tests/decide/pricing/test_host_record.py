"""What our own record says of a host: decayed by timestamps, pooled over owners, corrected by exposure."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.pricing import host_record, useful_hour
from agent.domain.market.host import HALF_LIFE, HostKey, HostRecord, decayed
from tests.support import builders

NOW = builders.NOW
spans = st.timedeltas(timedelta(0), timedelta(days=400))


def record(host: str = "h1", owner: str = "o1", *, at: datetime = NOW, **counts: Any) -> HostRecord:
    return HostRecord("vast", host, owner, updated_at=at, **counts)


def test_counts_halve_in_a_half_life() -> None:
    old = record(at=NOW - HALF_LIFE, running_seconds=7200.0, market_losses=4.0, starts_failed=2.0)
    assert decayed(old, NOW) == record(running_seconds=3600.0, market_losses=2.0, starts_failed=1.0)


@given(spans, spans)
def test_looking_on_the_way_changes_nothing(first: timedelta, second: timedelta) -> None:
    old = record(at=NOW - first - second, running_seconds=7200.0, interruptions=3.0)
    twice = decayed(decayed(old, NOW - second), NOW)
    once = decayed(old, NOW)
    assert twice.running_seconds == pytest.approx(once.running_seconds)
    assert twice.interruptions == pytest.approx(once.interruptions)


def test_a_clock_that_went_back_decays_nothing() -> None:
    later = record(at=NOW + timedelta(days=3), running_seconds=7200.0)
    assert decayed(later, NOW) == later


def test_a_host_that_was_lost_often_is_expected_to_be_lost_again() -> None:
    hours = 3600.0
    busy, quiet = record(market_losses=3, bid_seconds=2 * hours), record(market_losses=0, bid_seconds=6 * hours)
    assert (
        useful_hour.contested_hazard(quiet, 0.2)
        < useful_hour.contested_hazard(None, 0.2)
        < useful_hour.contested_hazard(busy, 0.2)
    )
    # (0.2 x 2 + 3) / (2 + 2)
    assert useful_hour.contested_hazard(busy, 0.2) == pytest.approx(0.85)


def test_losses_to_the_market_are_no_fault_of_the_host() -> None:
    outbid = record(running_seconds=7200.0, interruptions=3, market_losses=3)
    silent = record(running_seconds=7200.0, interruptions=3)
    assert (
        useful_hour.host_hazard(0.99, outbid)
        < useful_hour.host_hazard(0.99, None)
        < useful_hour.host_hazard(0.99, silent)
    )


def test_an_unknown_host_of_a_known_owner_is_judged_by_the_owners_others() -> None:
    hosts = host_record.pooled({HostKey("vast", "h1"): record(market_losses=4, bid_seconds=3600.0)}, NOW)
    other = host_record.of_offer(hosts, builders.offer(2, owner_id="o1"))
    assert other is not None
    assert other.market_losses == pytest.approx(4 * host_record.OWNER_WEIGHT)
    assert host_record.of_offer(hosts, builders.offer(2, owner_id="o2")) is None
    assert host_record.of_offer(hosts, builders.offer(1, owner_id="o1", market="runpod")) is None


def test_a_host_does_not_count_twice_through_its_owner() -> None:
    alone = record(market_losses=4, bid_seconds=3600.0, starts_ok=2)
    found = host_record.of_offer(host_record.pooled({HostKey("vast", "h1"): alone}, NOW), builders.offer(1))
    assert found is not None
    assert (found.market_losses, found.bid_seconds, found.starts_ok) == pytest.approx((4, 3600.0, 2))


def test_the_market_is_every_host_together_by_its_exposure() -> None:
    hosts = [record("h1", market_losses=2, bid_seconds=6 * 3600.0), record("h2", interruptions=5, bid_seconds=3600.0)]
    assert host_record.market_hazard(hosts, NOW) == pytest.approx(useful_hour.market_hazard(2, 7))
    assert host_record.market_hazard([], NOW) == pytest.approx(useful_hour.market_hazard(0, 0))


def test_what_images_took_outweighs_what_a_host_advertises() -> None:
    slow = record(loaded_gb=15.0, loading_seconds=15.0 * 80)
    advertised = useful_hour.loading_hours(5.0, 800.0)
    # 10 s a gigabyte as advertised for 5 GB, 80 s for 15 GB: 62.5 s
    assert useful_hour.loading_hours(5.0, 800.0, slow) == pytest.approx(
        (5 * 62.5 + useful_hour.CONTAINER_SECONDS) / 3600
    )
    assert useful_hour.loading_hours(5.0, 800.0, record()) == advertised
