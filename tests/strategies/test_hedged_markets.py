"""hedged for a deadline on several markets: a running lease is priced at its cost, and no choice is for ever."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.decide import plan
from agent.decide.deadline import availability_by_market, regimes
from agent.decide.limits import limits
from agent.decide.moves import voluntary_move
from agent.domain.fleet import Fleet
from agent.domain.market import gpu
from agent.domain.market.capacity import Capacity
from agent.domain.market.host import POOL
from agent.domain.market.interruption import Cause
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.deadline import Deadline
from agent.domain.work.decision import Decision, Hold, Release, Rent, Resume
from agent.domain.work.workload import Checkpoint, CheckpointPlace, WorkloadKind
from strategies.hedged import Hedged
from strategies.hedged_rules.params import HedgedParams
from tests.support import builders
from tests.support.expiring import tally

NOW = builders.NOW
WORK = builders.workload(strategy="hedged", kind=WorkloadKind.BATCH, deadline=Deadline(12.0, NOW + timedelta(hours=40)))


def known(market: str, *, is_there: bool) -> Capacity:
    """What an hour of looking at a market showed."""
    shares = tuple(regimes.first(regimes.SHIPPED, is_up=is_there).shares.tolist())
    told = Capacity(is_there, builders.ago(hours=1), NOW, shares, builders.per_hour("0.20"), market)
    return replace(told, pool=f"{market}, by market", version=availability_by_market.version(regimes.SHIPPED))


def seen(offers: Sequence[Offer], leases: Sequence[Lease] = (), **changes: Any) -> Fleet:
    names = ("vast", "runpod")
    views = {name: builders.view(market=name, offers=tuple(o for o in offers if o.market == name)) for name in names}
    there = {o.market for o in offers if o.floor is not None}
    capacity = {f"train@{name}": known(name, is_there=name in there) for name in names}
    values = {"workloads": (WORK,), "markets": views, "leases": tuple(leases), "capacity": capacity, **changes}
    return builders.fleet(known_since={"train": NOW}, **values)


def decided(fleet: Fleet, **params: Any) -> Decision:
    tuned = builders.tuned(Hedged(), HedgedParams(**params), "hedged")
    (made,) = plan.plan(fleet, {"hedged": tuned}, limits.Limits()).decisions
    return made


def on_demand(rate: str, **changes: Any) -> Lease:
    return builders.lease(1, tenure=Tenure.ON_DEMAND, gpu_rate=builders.per_hour(rate), **changes)


def offer(number: int, ask: str, floor: str | None = None, **changes: Any) -> Offer:
    values = {"ask": builders.per_hour(ask), "floor": None if floor is None else builders.per_hour(floor), **changes}
    return builders.offer(number, **values)


def test_what_runs_on_demand_is_priced_at_its_own_rate_and_not_at_that_of_the_next_offer() -> None:
    """The host of a lease is no offer while it is held: by the next one's price it was left, and rented at once."""
    dearer = [offer(22, "0.64"), offer(20, "0.90", "0.45", market="runpod")]
    rented = decided(seen([offer(21, "0.15"), *dearer]))
    assert isinstance(rented, Rent)
    assert (rented.offer.host_id, rented.tenure) == ("h21", Tenure.ON_DEMAND)
    assert isinstance(decided(seen(dearer, [on_demand("0.15")])), Hold)


def test_a_host_that_leaves_the_market_is_left_while_it_runs() -> None:
    """A lease that stays the best choice does not move when its host leaves."""
    held = builders.lease(1, gpu_rate=builders.per_hour("0.20"), state_since=builders.ago(minutes=50))
    offers = [offer(22, "0.80", "0.22"), offer(20, "0.90", "0.45", market="runpod")]
    assert isinstance(decided(seen(offers, [held])), Hold)
    made = decided(seen(offers, [msgspec.structs.replace(held, ends_at=NOW + timedelta(minutes=40))]))
    assert isinstance(made, Rent)
    assert (made.reason.code, made.offer.host_id) == ("end_date", "h22")


def test_a_disk_that_may_not_be_left_is_started_again_whatever_markets_are_worth() -> None:
    """A pod that was stopped starts by nobody's hand but ours: to wait for another market would be to wait for ever."""
    bound = (replace(WORK, checkpoint=Checkpoint(place=CheckpointPlace.DISK)),)
    pod = builders.lease(
        1, market="runpod", host_id=f"{POOL}eu", state=LeaseState.PAUSED, interrupted_by=Cause.OUTBID, state_since=NOW
    )
    offers = [offer(22, "0.66"), offer(20, "0.90", market="runpod")]
    made = decided(seen(offers, [pod], workloads=bound))
    assert isinstance(made, Resume), made.reason


def test_what_runs_is_let_go_to_wait_only_while_the_day_has_moves_left() -> None:
    """An empty slot has no count of its own: without this bound, a released lease could be rented again for ever."""
    held = builders.lease(1, gpu_rate=builders.per_hour("0.60"), state_since=builders.ago(minutes=50))
    short = (replace(WORK, deadline=Deadline(4.0, NOW + timedelta(hours=40))),)
    offers = [offer(22, "0.66"), offer(20, "0.90", market="runpod")]
    ran = [
        tally("ran", f"train/0@vast-{number}", NOW + timedelta(hours=number), "ran")
        for number in range(1, voluntary_move.MOST_LEAVES + 1)
    ]
    made = decided(seen(offers, [held], workloads=short, tallies=tuple(ran[1:])))
    assert isinstance(made, Release)
    assert made.reason.code == "waits_for_capacity"
    assert isinstance(decided(seen(offers, [held], workloads=short, tallies=tuple(ran))), Hold)


PRICES = st.sampled_from(["0.10", "0.18", "0.30", "0.55"])


@settings(deadline=None, max_examples=12)
@given(asks=st.lists(PRICES, min_size=2, max_size=2), floors=st.lists(st.none() | PRICES, min_size=3, max_size=3))
@pytest.mark.nightly
def test_over_a_world_that_stands_still_a_slot_comes_to_rest(asks: list[str], floors: list[str | None]) -> None:
    """A lease is not released for a reason that was known at its rent, however often the strategy is asked."""
    offers = [
        offer(21, asks[0], floors[0]),
        offer(22, asks[1], floors[1]),
        offer(23, "0.80", floors[2], market="runpod"),
    ]
    held: list[Lease] = []
    made: list[Decision] = []
    for turn in range(5):
        decision = decided(seen(offers, held))
        made.append(decision)
        if isinstance(decision, Rent):
            taken = decision.offer
            rate = decision.bid or taken.ask
            assert rate is not None
            place: dict[str, Any] = {"market": taken.market, "host_id": taken.host_id, "owner_id": taken.owner_id}
            held = [builders.lease(turn, tenure=decision.tenure, gpu_rate=rate, opened_at=NOW, **place)]
        elif isinstance(decision, Release):
            held = []
    assert len([each for each in made if isinstance(each, Rent)]) <= 1
    assert not any(isinstance(each, Release) for each in made)


def test_what_waited_weighs_the_carrying_of_its_checkpoint_from_where_it_was_left() -> None:
    big = Checkpoint(timedelta(minutes=10), timedelta(minutes=2), 40.0, CheckpointPlace.REMOTE)
    dear = {"traffic_down_micros_per_gb": 40_000, "traffic_up_micros_per_gb": 40_000}
    offers = [offer(22, "0.80", "0.22", **dear), offer(20, "0.80", "0.20", market="runpod", **dear)]
    works = (replace(WORK, checkpoint=big),)

    def rented(**changes: Any) -> str:
        made = decided(seen(offers, workloads=works, **changes))
        assert isinstance(made, Rent)
        return made.offer.market

    assert rented() == "runpod"
    # Two cents an hour over twelve hours do not pay 3.20 $ of traffic.
    assert rented(left={builders.slot(): "vast"}) == "vast"
    assert rented(left={builders.slot(): "runpod"}) == "runpod"


def test_on_demand_is_the_cheapest_that_is_in_time_and_not_the_cheapest() -> None:
    slow, fast = gpu.model("RTX 3090"), builders.RTX_4090
    work = replace(
        WORK,
        deadline=Deadline(12.0, NOW + timedelta(hours=12.8), reference_gpu=fast),
        requirements=builders.requirements(gpu_models=(slow, fast)),
    )
    offers = [offer(21, "0.10", gpu=slow, dlperf=40.0), offer(22, "0.60"), offer(23, "0.70", market="runpod")]
    made = decided(seen(offers, workloads=(work,), typical={(fast, 1): 80.0, (slow, 1): 40.0}))
    assert isinstance(made, Rent)
    assert made.offer.host_id == "h22"


def test_a_market_is_seen_behind_any_number_of_cheaper_hosts_of_another() -> None:
    cheap = [offer(number, "0.90", "0.20") for number in range(100, 200)]
    made = decided(seen([*cheap, offer(20, "0.90", "0.30", market="runpod")]))
    assert {"interruptible on vast", "interruptible on runpod"} <= {each.name for each in made.reason.options}
