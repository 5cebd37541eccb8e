"""What looking teaches of capacity: it comes, it goes, a loss counts, and no answer is no answer."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from agent.decide.deadline import availability, hazards
from agent.decide.moves import cooldowns_after_writes
from agent.domain.fleet import Fleet
from agent.domain.market.capacity import Capacity
from agent.domain.market.interruption import Cause, Loss
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.record.cooldown import Cooldown
from agent.domain.record.lease import LeaseState
from agent.domain.slot import Slot
from agent.domain.work.deadline import Deadline
from agent.domain.work.decision import Reason, Rent
from tests.support import builders

NOW = builders.NOW
MINUTES = timedelta(minutes=10)


def seen(offers: Sequence[Offer], minutes: int = 0, **changes: Any) -> Fleet:
    work = builders.workload(strategy="deadline", deadline=Deadline(10.0, NOW + timedelta(hours=50)))
    markets = {"vast": builders.view(offers=tuple(offers))}
    return builders.fleet(workloads=(work,), markets=markets, now=NOW + timedelta(minutes=minutes), **changes)


def watched(*looks: Fleet) -> Capacity:
    known: Mapping[str, Capacity] = {}
    for fleet in looks:
        known = availability.watched(known, fleet)
    return known["train"]


ASK_ONLY = builders.offer(2, floor=None)


def test_capacity_first_seen_is_thought_an_hour_old_and_its_price_is_known() -> None:
    found = watched(seen([builders.offer(), ASK_ONLY]))
    assert (found.is_there, found.price) == (True, builders.offer().floor)
    assert NOW - found.since == timedelta(hours=hazards.FIRST_AGE_HOURS)


def test_what_goes_is_away_since_it_was_missed_and_weighs_against_the_pool() -> None:
    found = watched(seen([builders.offer()]), seen([ASK_ONLY], 10), seen([ASK_ONLY], 20))
    assert (found.is_there, found.since, found.price) == (False, NOW + MINUTES, builders.offer().floor)
    told = availability.learned(found)
    assert told.belief is not None
    assert told.belief.age == pytest.approx(1 / 6)
    begun = hazards.first(hazards.SHIPPED, is_up=True, age=hazards.FIRST_AGE_HOURS)
    lost = hazards.observe(hazards.SHIPPED, begun, is_up=False, hours=1 / 6)
    assert found.evidence == pytest.approx(
        tuple(hazards.observe(hazards.SHIPPED, lost, is_up=False, hours=1 / 6).evidence)
    )


def test_no_offers_at_all_are_no_answer_but_what_runs_is_one() -> None:
    first = seen([builders.offer()])
    assert watched(first, seen([], 10)) == watched(first)
    running = seen([], 10, leases=(builders.lease(9),))
    assert watched(first, running).seen_at == NOW + MINUTES


def test_a_loss_of_our_own_counts_although_another_host_has_capacity() -> None:
    loss = Loss(NOW + timedelta(minutes=5), Slot("train", 0), "vast", "h9", Cause.OUTBID)
    lost = seen([builders.offer()], 10, losses=(loss,))
    assert not watched(seen([builders.offer()]), lost).is_there
    again = watched(seen([builders.offer()]), lost, seen([builders.offer()], 20, losses=(loss,)))
    assert again.is_there
    assert again.since == NOW + 2 * MINUTES


def test_a_paused_lease_is_no_capacity_and_looking_twice_at_once_teaches_once() -> None:
    paused = builders.lease(9, state=LeaseState.PAUSED)
    assert not watched(seen([ASK_ONLY], leases=(paused,))).is_there
    once = watched(seen([builders.offer()]), seen([ASK_ONLY], 10))
    assert watched(seen([builders.offer()]), seen([ASK_ONLY], 10), seen([ASK_ONLY], 10)) == once


def test_evidence_of_other_models_is_not_believed() -> None:
    other = Capacity(is_there=True, since=NOW, seen_at=NOW, evidence=(1.0,))
    assert availability.learned(other).belief is None


def test_looking_often_says_no_more_than_looking_once() -> None:
    begin = [seen([ASK_ONLY]), seen([builders.offer()], 10)]
    seldom = watched(*begin, *[seen([builders.offer()], minutes) for minutes in range(20, 71, 10)])
    often = watched(*begin, *[seen([builders.offer()], minutes) for minutes in range(11, 71)])
    assert often.looks < 40, "looks that say the same again are not each kept"
    assert sum(often.there.hours) == pytest.approx(1.0)
    assert often.there.hours == pytest.approx(seldom.there.hours)
    mine, theirs = availability.learned(often).belief, availability.learned(seldom).belief
    assert mine is not None
    assert theirs is not None
    assert mine.weights(hazards.SHIPPED) == pytest.approx(theirs.weights(hazards.SHIPPED), abs=0.02)


def test_spells_are_counted_by_age_once_they_were_seen_to_begin() -> None:
    states = [True, True, False, False, True]
    looks = [seen([builders.offer() if is_up else ASK_ONLY], 10 * number) for number, is_up in enumerate(states)]
    known = watched(*looks)
    assert not known.there.ends, "the first spell was not seen to begin"
    assert sum(known.away.ends) == 1
    assert sum(known.away.hours) == pytest.approx(1 / 3)


def test_what_nobody_watched_is_no_evidence() -> None:
    before = watched(seen([builders.offer()]), seen([ASK_ONLY], 10), seen([builders.offer()], 20))
    after = watched(seen([builders.offer()]), seen([ASK_ONLY], 10), seen([builders.offer()], 20), seen([ASK_ONLY], 400))
    assert (after.is_there, after.is_begun) == (False, False)
    assert (after.there, after.away) == (before.there, before.away)
    assert sum(map(abs, after.evidence)) < sum(map(abs, before.evidence))


def test_evidence_that_a_newer_release_cannot_read_is_begun_anew() -> None:
    old = replace(watched(seen([builders.offer()])), version="of before", evidence=(5.0,) * 9)
    assert availability.learned(old).belief is None
    (after,) = availability.watched({"train": old}, seen([builders.offer()], 10)).values()
    assert after.version == availability.version(hazards.SHIPPED)
    assert max(map(abs, after.evidence)) < 1
    assert after.since == old.since


def test_workloads_that_ask_the_same_share_what_is_learned_and_others_do_not() -> None:
    one, other = builders.workload(), builders.workload("other")
    picky = builders.workload("picky", requirements=builders.requirements(regions=("SE",)))
    cheap = builders.workload("cheap", max_price=builders.per_hour("0.3"))
    offers = {"vast": builders.view(offers=(builders.offer(),))}
    fleet = builders.fleet(workloads=(one, other, picky, cheap), markets=offers)
    found = availability.watched({}, fleet)
    assert found["train"] == found["other"]
    assert len({each.pool for each in found.values()}) == 3
    kept = availability.news({}, found)
    assert len(kept) == 3
    assert availability.by_workload(kept, fleet) == found
    assert availability.news(found, availability.watched(found, fleet)) == ()


def test_only_so_many_pools_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "MOST_POOLS", 2)
    known = [Capacity(True, NOW, NOW, market="vast", pool=name) for name in ("a", "b")]
    newer = Capacity(True, NOW, NOW + MINUTES, market="vast", pool="c")
    assert availability.surplus(known, (newer,)) == (known[0],)


def refused(reason: str, minutes: int) -> tuple[Cooldown, ...]:
    """Return the cooldown of an offer that refused a rent for this reason."""
    bid = builders.per_hour("0.2")
    rent = Rent(Slot("train", 0), builders.offer(), Tenure.INTERRUPTIBLE, bid, bid, Reason("best_offer", "rent it"))
    found = cooldowns_after_writes.after_refusal(rent, reason, (), NOW + timedelta(minutes=minutes))
    return tuple(each for each in found if isinstance(each, Cooldown))


@pytest.mark.parametrize(
    ("reason", "is_there"), [("no_capacity", False), ("no_such_ask", False), ("rate_limited", True)]
)
def test_a_listed_offer_that_refused_a_rent_for_want_of_capacity_is_none(reason: str, is_there: bool) -> None:
    resting = refused(reason, 9)
    found = watched(seen([builders.offer()]), seen([builders.offer()], 10, cooldowns=resting))
    assert found.is_there is is_there
    again = watched(seen([builders.offer()]), seen([builders.offer()], 30, cooldowns=resting))
    assert again.is_there


def test_another_offer_is_capacity_after_one_refused() -> None:
    other = builders.offer(2)
    found = watched(seen([other]), seen([builders.offer(), other], 10, cooldowns=refused("no_capacity", 9)))
    assert found.is_there
