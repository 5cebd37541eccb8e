"""hedged: slots spread over hosts, owners and markets; on demand by rule, and back with hysteresis."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide import plan
from agent.decide.limits import limits
from agent.decide.strategy import NEVER
from agent.domain.fleet import Fleet
from agent.domain.market.interruption import Cause, Loss
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.record import hold
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.decision import Decision, Hold, Pause, Rent
from agent.domain.work.workload import Fallback, Workload, WorkloadKind
from strategies.hedged import Hedged
from strategies.hedged_rules.params import HedgedParams
from tests.support import builders

NOW = builders.NOW
AGO = builders.ago


def work(**changes: Any) -> Workload:
    return builders.workload(strategy="hedged", **{"slots": 1, **changes})


def seen(
    offers: Sequence[Offer] = (),
    leases: Sequence[Lease] = (),
    *,
    of: Workload | None = None,
    losses: Sequence[Loss] = (),
    known_since: datetime = NOW,
    **changes: Any,
) -> Fleet:
    """Build a fleet of one hedged workload over as many markets as the offers name."""
    of = of or work()
    markets = {
        name: builders.view(market=name, offers=tuple(row for row in offers if row.market == name))
        for name in of.markets or ("vast",)
    }
    return builders.fleet(
        workloads=(of,),
        markets=markets,
        leases=tuple(leases),
        losses=tuple(losses),
        known_since={of.name: known_since},
        **changes,
    )


def decided(fleet: Fleet, **params: Any) -> tuple[Decision, ...]:
    tuned = builders.tuned(Hedged(), HedgedParams(**params), "hedged")
    return plan.plan(fleet, {"hedged": tuned}, limits.Limits()).decisions


def only(fleet: Fleet, **params: Any) -> Decision:
    (made,) = decided(fleet, **params)
    return made


def lost(**changes: Any) -> Lease:
    values = {"state": LeaseState.PAUSED, "interrupted_by": Cause.OUTBID, "state_since": AGO(minutes=30)}
    return builders.lease(9, **{**values, **changes})


def loss(minutes: float, host: str = "h9", cause: Cause = Cause.OUTBID, index: int = 0) -> Loss:
    return Loss(AGO(minutes=minutes), builders.slot("train", index), "vast", host, cause)


def on_demand(**changes: Any) -> Lease:
    values = {"tenure": Tenure.ON_DEMAND, "gpu_rate": builders.per_hour("0.80"), "state_since": AGO(hours=3)}
    return builders.lease(9, **{**values, **changes})


# --- filling and falling back ----------------------------------------------------------------------------------------
def test_an_empty_slot_bids_while_it_is_young() -> None:
    made = only(seen([builders.offer()]))
    assert isinstance(made, Rent)
    assert made.tenure is Tenure.INTERRUPTIBLE


def test_an_empty_slot_without_a_bid_waits_and_then_falls_back() -> None:
    offers = [builders.offer(floor=None)]
    young = only(seen(offers, known_since=AGO(minutes=19)))
    assert isinstance(young, Hold)
    assert young.reason.code == "waits_for_fallback"
    assert "falls back to on-demand after 20 min without a lease" in young.reason.sentence
    old = only(seen(offers, known_since=AGO(minutes=20)))
    assert isinstance(old, Rent)
    assert (old.tenure, old.reason.code) == (Tenure.ON_DEMAND, "fallback")


def test_a_slot_counts_as_empty_from_when_its_last_lease_ended() -> None:
    offers = [builders.offer(floor=None)]
    fleet = seen(offers, known_since=AGO(days=2), vacated={builders.slot(): AGO(minutes=5)})
    assert isinstance(only(fleet), Hold)


def test_never_means_never() -> None:
    offers = [builders.offer(floor=None)]
    made = only(seen(offers, known_since=AGO(days=9)), fallback_after=NEVER)
    assert isinstance(made, Hold)
    assert made.reason.sentence.startswith("no bid fits; `fallback_after` is never")


def test_a_lost_lease_first_cannot_start_by_itself_and_is_then_left_for_on_demand() -> None:
    offers = [builders.offer(floor=builders.per_hour("0.35"))]
    first = only(seen(offers, [lost()]))
    assert isinstance(first, Pause)
    then = only(seen(offers, [lost(paused_by_us=True)]))
    assert isinstance(then, Rent)
    assert (then.tenure, then.reason.code) == (Tenure.ON_DEMAND, "fallback")


def test_a_lease_that_was_just_lost_is_not_left_by_rule() -> None:
    fleet = seen([builders.offer(floor=None)], [lost(state_since=AGO(minutes=1))])
    assert only(fleet).reason.code != "fallback"


@pytest.mark.parametrize("cause", [Cause.CONTAINER_EXIT, Cause.OUT_OF_CREDIT, None])
def test_what_the_market_did_not_take_is_no_reason_to_pay_more(cause: Cause | None) -> None:
    fleet = seen([builders.offer(floor=None)], [lost(interrupted_by=cause, paused_by_us=True)])
    assert only(fleet).reason.code != "fallback"


def test_a_rough_pool_sends_an_empty_slot_on_demand_at_once() -> None:
    taken = [loss(10), loss(70), loss(150)]
    made = only(seen([builders.offer()], losses=taken), most_losses=1.0, pool_window=timedelta(hours=3))
    assert isinstance(made, Rent)
    assert made.tenure is Tenure.ON_DEMAND
    calm = only(seen([builders.offer()], losses=taken[:2]), most_losses=1.0, pool_window=timedelta(hours=3))
    assert isinstance(calm, Rent)
    assert calm.tenure is Tenure.INTERRUPTIBLE


def test_losses_that_the_market_did_not_cause_do_not_make_a_pool_rough() -> None:
    taken = [loss(10, cause=Cause.CONTAINER_EXIT) for _ in range(9)]
    made = only(seen([builders.offer()], losses=taken))
    assert isinstance(made, Rent)
    assert made.tenure is Tenure.INTERRUPTIBLE


# --- the way back ----------------------------------------------------------------------------------------------------
def test_on_demand_is_left_for_a_gain_after_its_dwell() -> None:
    made = only(seen([builders.offer()], [on_demand()]))
    assert isinstance(made, Rent)
    assert (made.tenure, made.reason.code) == (Tenure.INTERRUPTIBLE, "return")


@pytest.mark.parametrize(
    ("held", "params", "losses"),
    [
        ({"state_since": AGO(minutes=59)}, {}, []),
        ({"gpu_rate": builders.per_hour("0.22")}, {}, []),
        ({}, {"return_gain": 0.99}, []),
        ({}, {"return_after": NEVER}, []),
        ({}, {}, [loss(30, "h1")]),
        ({}, {"most_losses": 1.0}, [loss(30), loss(60)]),
    ],
    ids=["dwell", "no gain", "more gain", "never", "the host rests", "the pool is not calm"],
)
def test_hysteresis_keeps_what_runs(held: dict[str, Any], params: dict[str, Any], losses: list[Loss]) -> None:
    made = only(seen([builders.offer()], [on_demand(**held)], losses=losses), **params)
    assert isinstance(made, Hold)
    assert made.reason.code == "running"


def test_a_host_that_rested_long_enough_is_returned_to() -> None:
    fleet = seen([builders.offer()], [on_demand()], losses=[loss(200, "h1")])
    assert isinstance(only(fleet, most_losses=100), Rent)


def test_a_slot_that_moves_makes_no_second_move() -> None:
    arriving = builders.lease(8, state=LeaseState.STARTING, opened_at=AGO(minutes=1), state_since=AGO(minutes=1))
    made = only(seen([builders.offer()], [on_demand(), arriving]))
    assert isinstance(made, Hold)
    assert made.reason.code == "moving"


@pytest.mark.parametrize(
    ("minutes", "params", "is_left"),
    [(30, {}, True), (9, {}, False), (300, {"leave_after": NEVER}, False), (300, {"leave_gain": 0.99}, False)],
)
def test_a_healthy_dear_bid_is_left_for_a_cheap_one_while_it_goes_on(
    minutes: int, params: dict[str, Any], is_left: bool
) -> None:
    rates = {"gpu_rate": builders.per_hour("0.90"), "host_floor": builders.per_hour("0.85")}
    made = only(seen([builders.offer()], [builders.lease(9, state_since=AGO(minutes=minutes), **rates)]), **params)
    assert isinstance(made, Rent if is_left else Hold)


# --- spreading -------------------------------------------------------------------------------------------------------
def test_slots_go_to_both_markets() -> None:
    offers = [
        *(builders.offer(number) for number in range(1, 9)),
        *(
            builders.offer(number, market="runpod", floor=builders.per_hour("0.30"), ask=builders.per_hour("0.50"))
            for number in range(21, 29)
        ),
    ]
    fleet = seen(offers, of=work(slots=4, markets=("vast", "runpod")))
    rented = [made.offer for made in decided(fleet, share_of_market=0.5) if isinstance(made, Rent)]
    assert Counter(row.market for row in rented) == {"vast": 2, "runpod": 2}


def test_an_owner_gets_no_more_than_the_share_unless_crowding_is_allowed() -> None:
    offers = [builders.offer(number, owner_id="same") for number in range(1, 5)]
    fleet = seen(offers, of=work(slots=4))
    assert sum(isinstance(made, Rent) for made in decided(fleet, share_of_owner=0.5)) == 2
    assert sum(isinstance(made, Rent) for made in decided(fleet, share_of_owner=0.5, may_crowd=True)) == 4


def test_a_pool_of_hosts_takes_its_share_of_the_slots() -> None:
    offers = [
        builders.offer(1, host_id="pool/4090/eu", owner_id="", floor=builders.per_hour("0.10")),
        builders.offer(2, host_id="pool/4090/us", owner_id=""),
    ]
    standing = [
        builders.lease(11, host_id="pool/4090/eu", owner_id="", slot=builders.slot("train", 0)),
        builders.lease(12, host_id="pool/4090/eu/77", owner_id="", slot=builders.slot("train", 1)),
    ]
    fleet = seen(offers, standing, of=work(slots=4))
    rented = [made.offer.host_id for made in decided(fleet, share_of_host=0.5) if isinstance(made, Rent)]
    assert set(rented) == {"pool/4090/us"}
    free = [made.offer.host_id for made in decided(fleet) if isinstance(made, Rent)]
    assert "pool/4090/eu" in free


@pytest.mark.parametrize("is_held", [True, False])
def test_a_task_of_an_array_that_is_held_takes_no_room_from_another_one(*, is_held: bool) -> None:
    """One of three tasks may be live. Two were held, one on each market, and the third found no market for ever."""
    offers = [builders.offer(1), builders.offer(21, market="runpod")]
    state = LeaseState.PAUSED if is_held else LeaseState.RUNNING
    places = [builders.slot("train", index) for index in range(2)]
    leases = [
        builders.lease(11 + index, market=market, slot=place, state=state, paused_by_us=is_held, ran_micros=1)
        for index, (market, place) in enumerate(zip(("vast", "runpod"), places, strict=True))
    ]
    of = work(kind=WorkloadKind.BATCH, slots=4, markets=("vast", "runpod"), array=ArrayTerms(1 if is_held else 3))
    done = OperatorHold(Word.DONE, hold.of_slot(builders.slot("train", 3)), NOW, "its end")
    held = [OperatorHold(Word.HELD, hold.of_slot(place), NOW, "its work failed") for place in places]
    fleet = seen(offers, leases, of=of, holds=(done, *(held if is_held else ())))
    rented = [str(made.slot) for made in decided(fleet, share_of_market=0.5) if isinstance(made, Rent)]
    assert rented == (["train/2"] if is_held else [])


def test_one_market_alone_is_no_share_of_anything() -> None:
    offers = [builders.offer(number) for number in range(1, 5)]
    fleet = seen(offers, of=work(slots=4))
    assert sum(isinstance(made, Rent) for made in decided(fleet, share_of_market=0.25)) == 4


@pytest.mark.parametrize(("minutes", "count", "markets"), [(30, 4, {"vast", "dstack"}), (11, 3, {"vast"})])
def test_a_fallback_splits_no_market_and_has_no_share(minutes: float, count: int, markets: set[str]) -> None:
    of = work(slots=4, markets=("vast",), fallback=Fallback(("dstack",), timedelta(minutes=20)))
    offers = [builders.offer(number) for number in range(1, 4)]
    cloud = [builders.offer(number, market="dstack", host_id=f"pool/{number}", floor=None) for number in (21, 22)]
    views = {
        "vast": builders.view(offers=tuple(offers)),
        "dstack": builders.view(market="dstack", offers=tuple(cloud)),
    }
    fleet = builders.fleet(workloads=(of,), markets=views, leases=(), known_since={of.name: AGO(minutes=minutes)})
    rented = [made.offer.market for made in decided(fleet, share_of_market=0.25) if isinstance(made, Rent)]
    assert (len(rented), set(rented)) == (count, markets)


OFFERS = st.lists(
    st.tuples(st.sampled_from(["vast", "runpod"]), st.integers(1, 4), st.integers(15, 60), st.booleans()),
    min_size=0,
    max_size=24,
)
LEASES = st.lists(
    st.tuples(
        st.sampled_from(["vast", "runpod"]),
        st.integers(1, 4),
        st.sampled_from([LeaseState.RUNNING, LeaseState.PAUSED, LeaseState.STARTING]),
        st.sampled_from(list(Tenure)[:2]),
    ),
    max_size=6,
)


@given(OFFERS, LEASES, st.integers(1, 8), st.floats(0.05, 1), st.floats(0.05, 1), st.integers(0, 400))
def test_shares_hold_and_no_slot_moves_twice(
    rows: list[tuple[str, int, int, bool]],
    held: list[tuple[str, int, LeaseState, Tenure]],
    slots: int,
    owner_share: float,
    market_share: float,
    down_minutes: int,
) -> None:
    offers = [
        builders.offer(
            number,
            market=market,
            owner_id=f"o{owner}",
            floor=builders.per_hour(cents / 100) if has_floor else None,
            ask=builders.per_hour(cents / 100 + 0.2),
        )
        for number, (market, owner, cents, has_floor) in enumerate(rows, 1)
    ]
    leases = [
        builders.lease(
            100 + index,
            slot=builders.slot("train", index),
            market=market,
            owner_id=f"o{owner}",
            state=state,
            tenure=tenure,
            state_since=AGO(minutes=down_minutes),
            interrupted_by=Cause.OUTBID if state is LeaseState.PAUSED else None,
        )
        for index, (market, owner, state, tenure) in enumerate(held[:slots])
    ]
    of = work(slots=slots, markets=("vast", "runpod"))
    fleet = seen(offers, leases, of=of, known_since=AGO(minutes=down_minutes))
    made = decided(fleet, share_of_owner=owner_share, share_of_market=market_share)
    assert len(made) == slots
    rented = {each.slot: each.offer for each in made if isinstance(each, Rent)}
    hosts = [row.host_id for row in rented.values()]
    assert len(hosts) == len(set(hosts))
    # A lease that is stopped for a move counts on its new host, once it moves.
    leaving = {each.lease.slot for each in made if isinstance(each, Pause)}
    stands = {lease.slot: (lease.owner_id, lease.market) for lease in leases if lease.slot not in leaving}
    moved = stands | {slot: (row.owner_id, row.market) for slot, row in rented.items()}
    # The same id on two markets is two owners.
    owners, markets = Counter(moved.values()), Counter(market for _, market in moved.values())
    for row in rented.values():
        assert owners[row.owner_id, row.market] <= max(1, int(owner_share * slots + 1e-9))
        assert markets[row.market] <= max(1, int(market_share * slots + 1e-9))


@given(OFFERS, st.integers(0, 400))
def test_the_same_view_gives_the_same_plan(rows: list[tuple[str, int, int, bool]], down_minutes: int) -> None:
    offers = [
        builders.offer(number, market=market, floor=builders.per_hour(cents / 100) if has_floor else None)
        for number, (market, _, cents, has_floor) in enumerate(rows, 1)
    ]
    fleet = seen(offers, of=work(slots=3, markets=("vast", "runpod")), known_since=AGO(minutes=down_minutes))
    assert decided(fleet) == decided(msgspec.structs.replace(fleet))


@pytest.mark.parametrize("changes", [{"pool_window": timedelta(minutes=1)}, {"host_rest": timedelta(days=2)}], ids=str)
def test_what_cannot_be_remembered_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="write at"):
        HedgedParams(**changes)
