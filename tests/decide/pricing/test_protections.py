"""Protections: the failures that they count, their limits, and the cooldowns that follow."""

from datetime import timedelta

import pytest

from agent.decide.pricing import protections, ranking
from agent.decide.pricing.offer_refusal import OrderedOffers, Unavailable
from agent.decide.pricing.protections import Incident
from agent.decide.pricing.useful_hour import Way
from agent.domain.market.interruption import Cause
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.record.cooldown import CooldownKind
from agent.domain.record.event_kind import EventKind
from tests.support import builders
from tests.support.expiring import in_force

NOW = builders.NOW
MODEL = "vast/RTX 4090"


def incidents(count: int, kind: str = "lease.interrupted", **changes: object) -> list[Incident]:
    values = {"market": "vast", "gpu": "RTX 4090", "owner_id": "o1", "cause": Cause.OUTBID, **changes}
    return [
        Incident(at=NOW - timedelta(minutes=1 + number), kind=kind, host_id=f"h{number}", **values)  # type: ignore[arg-type]
        for number in range(count)
    ]


def resting(
    found: list[Incident], exposed: dict[str, int] | None = None, since: dict[str, object] | None = None
) -> list[str]:
    trips = protections.tripped(found, exposed or {}, since or {}, NOW)  # type: ignore[arg-type]
    return [str(trip.cooldown) for trip in trips]


def test_a_storm_is_more_interruptions_by_the_market_than_one_bears() -> None:
    assert resting(incidents(3)) == []
    assert resting(incidents(4)) == [f"storm:{MODEL}"]
    assert resting(incidents(9, cause=Cause.CONTAINER_EXIT)) == []


def test_many_leases_bear_more_than_one() -> None:
    assert resting(incidents(4), exposed={MODEL: 1}) == []
    assert resting(incidents(5), exposed={MODEL: 1}) == [f"storm:{MODEL}"]


def test_what_is_long_ago_or_was_counted_before_does_not_count() -> None:
    old = [Incident(NOW - timedelta(hours=2), EventKind.LEASE_INTERRUPTED, "vast", "RTX 4090", cause=Cause.OUTBID)] * 9
    assert resting(old) == []
    assert resting(incidents(9), since={f"storm:{MODEL}": NOW - timedelta(minutes=3)}) == []


def test_starts_that_fail_on_many_hosts_and_not_on_one() -> None:
    failed = incidents(4, "lease.failed", cause=None)
    assert resting(failed) == [f"starts:{MODEL}"]
    assert resting([failed[0]] * 4) == []


def test_one_host_that_is_lost_again_and_again_is_a_storm_too() -> None:
    again = [
        Incident(NOW - timedelta(minutes=at), EventKind.LEASE_INTERRUPTED, "vast", "RTX 4090", "h1", cause=Cause.OUTBID)
        for at in range(1, 5)
    ]
    [trip] = protections.tripped(again, {}, {}, NOW)
    said = f"4 interruptions by the market within 1 h: {MODEL} gets a cooldown of 30 min"
    assert (trip.protection, trip.market, trip.sentence) == (CooldownKind.STORM, "vast", said)
    assert (*trip.cooldown.place, trip.cooldown.ground) == (CooldownKind.STORM, MODEL, said)
    assert trip.cooldown.until == NOW + timedelta(minutes=30)
    first = min(incident.at for incident in again)
    assert protections.tripped(again, {}, {f"storm:{MODEL}": first}, NOW) == ()


def test_refused_orders_rest_the_market() -> None:
    assert resting(incidents(8, "intent.rejected", cause=None)) == ["rejected:vast"]


@pytest.mark.parametrize(("earlier", "minutes"), [(0, 2), (1, 4), (4, 32), (5, 60), (99, 60)])
def test_each_rent_in_a_row_that_is_not_as_ordered_rests_its_market_twice_as_long(earlier: int, minutes: int) -> None:
    wrong = incidents(1, "lease.mismatched", cause=None)
    (trip,) = protections.tripped(wrong, {}, {}, NOW, {"market:vast": earlier, "market:runpod": 9})
    assert (str(trip.cooldown), trip.cooldown.until) == ("market:vast", NOW + timedelta(minutes=minutes))
    assert trip.sentence.startswith("1 rent that was not as ordered within 2 min: vast gets a cooldown of ")
    assert protections.tripped(wrong, {}, {"market:vast": NOW}, NOW) == ()


def test_an_hour_of_wrong_rents_is_five_rents_a_slot_and_then_one_an_hour() -> None:
    at, rents = timedelta(), list[timedelta]()
    while at < timedelta(hours=6):
        rents.append(at)
        (trip,) = protections.tripped(
            [Incident(NOW, EventKind.LEASE_MISMATCHED, "vast")], {}, {}, NOW, {"market:vast": len(rents) - 1}
        )
        at += trip.cooldown.until - NOW
    assert sum(each < timedelta(hours=1) for each in rents) == 5
    assert sum(each >= timedelta(hours=2) for each in rents) == 4


def test_hosts_of_one_owner_that_fall_silent_together_rest_the_owner() -> None:
    silent = incidents(3, "lease.offline", cause=Cause.HOST_OFFLINE)
    assert resting(silent) == ["owner:vast/o1"]
    assert resting(silent[:2]) == []


def test_a_trip_says_how_many_within_what_and_for_how_long() -> None:
    (trip,) = protections.tripped(incidents(4), {}, {}, NOW)
    assert trip.sentence == "4 interruptions by the market within 1 h: vast/RTX 4090 gets a cooldown of 30 min"
    assert trip.cooldown.until == NOW + timedelta(minutes=30)


@pytest.mark.parametrize(
    ("cooling", "tenures"),
    [
        ({}, [Tenure.INTERRUPTIBLE]),
        ({f"storm:{MODEL}": "why"}, [Tenure.ON_DEMAND]),
        ({"storm:vast/RTX 3090": "why"}, [Tenure.INTERRUPTIBLE]),
        ({f"starts:{MODEL}": "why"}, []),
        ({"rejected:vast": "why"}, []),
        ({"market:vast": "why"}, []),
        ({"owner:vast/o1": "why"}, []),
    ],
)
def test_what_rests_is_not_rented(cooling: dict[str, str], tenures: list[Tenure]) -> None:
    def both(row: Offer, /) -> list[Way]:
        assert row.ask is not None
        assert row.floor is not None
        return [Way(Tenure.INTERRUPTIBLE, row.floor), Way(Tenure.ON_DEMAND, row.ask)]

    taken = Unavailable(cooling=in_force(cooling).cooling)
    found = ranking.ranking(
        OrderedOffers([builders.offer()]), builders.workload(), both, ranking.Judged({}), taken, NOW, 0.1
    )
    assert [candidate.way.tenure for candidate in found] == tenures
