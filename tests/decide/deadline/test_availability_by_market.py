"""What looks teach of each market apart: only where it is needed, by the hours between, kept in the ledger's rows."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from agent.decide.deadline import availability, availability_by_market, regimes
from agent.domain.fleet import Fleet
from agent.domain.market.capacity import Capacity
from agent.domain.market.interruption import Cause, Loss
from agent.domain.work.deadline import Deadline
from agent.web.reading import learned_json
from tests.support import builders

BY = builders.NOW + timedelta(hours=20)
WORK = builders.workload(deadline=Deadline(8.0, BY))


def seen(minutes: float, *, has_floor: bool = True, **changes: Any) -> Fleet:
    now = builders.NOW + timedelta(minutes=minutes)
    floor = builders.per_hour("0.20") if has_floor else None
    markets = {
        "vast": builders.view(offers=(builders.offer(floor=floor),), listed_at=now),
        "runpod": builders.view(market="runpod", offers=(builders.offer(2, market="runpod"),), listed_at=now),
    }
    return builders.fleet(**{"now": now, "workloads": (WORK,), "markets": markets, **changes})


def test_each_market_is_watched_apart_and_found_again_in_what_the_ledger_kept() -> None:
    known: dict[str, Capacity] = {}
    for minutes in (0, 10, 20):
        known = availability_by_market.watched(known, seen(minutes, has_floor=minutes != 20))
    told = availability_by_market.known(seen(20, capacity=known), WORK)
    assert {name: each.belief.is_up for name, each in told.items()} == {"vast": False, "runpod": True}
    assert told["vast"].price == builders.per_hour("0.20")
    assert availability_by_market.by_workload(known.values(), seen(20)) == known
    assert set(availability.by_workload(known.values(), seen(20))) == set()


def test_looks_that_say_the_same_count_by_the_hours_between() -> None:
    begun = availability_by_market.watched({}, seen(0))
    belief = regimes.first(regimes.SHIPPED, is_up=True)
    for minutes in (10, 11, 20):
        begun = availability_by_market.watched(begun, seen(minutes))
    for _ in range(2):
        belief = regimes.observe(regimes.SHIPPED, belief, is_up=True, hours=1 / 6)
    assert begun["train@vast"].evidence == pytest.approx(tuple(belief.shares))


def test_one_market_or_no_deadline_is_not_watched_apart() -> None:
    fleet = seen(0)
    assert availability_by_market.watched({}, msgspec.structs.replace(fleet, workloads=(builders.workload(),))) == {}
    assert (
        availability_by_market.watched({}, msgspec.structs.replace(fleet, markets={"vast": fleet.markets["vast"]}))
        == {}
    )


def test_a_stretch_that_nobody_watched_turns_regimes_and_begins_a_spell() -> None:
    begun = availability_by_market.watched({}, seen(0))
    after = availability_by_market.watched(begun, seen(60 * 200))["train@vast"]
    assert after.evidence == pytest.approx(tuple(regimes.SHIPPED.prior), abs=1e-3)
    assert (after.seen_at - after.since) / timedelta(hours=1) == regimes.FIRST_AGE


@pytest.mark.parametrize("names", [("train", "second"), ("second", "train")])
def test_a_loss_of_one_of_two_jobs_with_equal_requirements_counts_for_both(names: tuple[str, str]) -> None:
    """The ledger has one row for both: what the later one had not seen there was written over it."""
    works = tuple(replace(WORK, name=name) for name in names)
    begun = availability_by_market.watched({}, seen(0, workloads=works))
    loss = Loss(builders.NOW + timedelta(minutes=9), builders.slot("train"), "vast", "h9", Cause.OUTBID)
    after = availability_by_market.watched(begun, seen(10, workloads=works, losses=(loss,), capacity=begun))
    rows = availability.news(begun, after)
    assert {row.market: row.is_there for row in rows} == {"vast": False, "runpod": True}
    kept = availability_by_market.by_workload(rows, seen(10, workloads=works))
    assert {kept[f"{name}@vast"].is_there for name in names} == {False}
    assert kept == after


def test_evidence_of_other_regimes_is_dropped() -> None:
    old = {key: replace(each, version="older") for key, each in availability_by_market.watched({}, seen(0)).items()}
    belief = availability_by_market.known(seen(0, capacity=old), WORK)["vast"].belief
    assert belief.shares == pytest.approx(regimes.first(regimes.SHIPPED, is_up=True).shares)


def test_what_is_shown_of_a_market_watched_apart_are_its_regimes() -> None:
    known = availability_by_market.watched({}, seen(0))
    for minutes in range(10, 600, 10):
        known = availability_by_market.watched(known, seen(minutes))
    (market,) = (
        row for row in learned_json.learned([], known.values(), builders.NOW)["markets"] if row["market"] == "vast"
    )
    (pool,) = market["pools"]
    assert sum(model["weight"] for model in pool["models"]) == pytest.approx(1.0)
    assert pool["loss_factor"] < 0.5
    assert pool["turns_per_hour"] == pytest.approx(
        availability_by_market.belief(known["train@vast"]).rate(regimes.SHIPPED)
    )
