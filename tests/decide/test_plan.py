"""The plan: its order, its vetoes, and properties that hold for every fleet."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.decide import plan
from agent.decide.limits.limits import Limits
from agent.decide.plan import Plan
from agent.decide.strategy import Params, Proposal, Tuned, View
from agent.domain.fleet import Fleet, Spend
from agent.domain.market.host import HostRecord
from agent.domain.market.interruption import Cause
from agent.domain.market.tenure import Tenure
from agent.domain.money import Usd, UsdPerHour
from agent.domain.record.cooldown import Cooldown, CooldownKind
from agent.domain.record.intent import IntentKind, IntentState
from agent.domain.record.lease import Bills, LeaseState
from agent.domain.slot import Slot
from agent.domain.work.decision import (
    Decision,
    Hold,
    Pause,
    Reason,
    Rebid,
    Release,
    Rent,
    Resume,
    raises_spend,
    slot_of,
)
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from strategies.ondemand import OnDemand, OnDemandParams
from strategies.patient import Patient, PatientParams
from tests.support import builders
from tests.support.expiring import held
from tests.support.expiring import holds as holds_shown

NOW = builders.NOW
TUNED = {
    "patient": builders.tuned(Patient(), PatientParams()),
    "ondemand": builders.tuned(OnDemand(), OnDemandParams(), "ondemand"),
}
WHY = Reason("because", "because")


def planned(caps: Limits = Limits(), tuned: dict[str, Tuned] | None = None, **changes: Any) -> Plan:
    return plan.plan(builders.fleet(**changes), tuned or TUNED, caps)


def market(*offers: Any, **changes: Any) -> dict[str, Any]:
    return {"vast": builders.view(offers=offers or (builders.offer(),), **changes)}


def only(made: Plan) -> Decision:
    assert len(made.decisions) == 1
    return made.decisions[0]


class Says(Params):
    """No numbers."""


class Obstinate:
    """Proposes the given proposals."""

    params: ClassVar[type[Params]] = Says

    def __init__(self, *proposals: Proposal) -> None:
        self.proposals = proposals

    def propose(self, view: View, params: Params, /) -> Sequence[Proposal]:
        del view, params
        return self.proposals


def obstinate(*proposals: Proposal) -> dict[str, Tuned]:
    return {"patient": builders.tuned(Obstinate(*proposals), Says())}


def test_an_empty_slot_rents_the_best_offer() -> None:
    dear = builders.offer(2, floor=builders.per_hour("0.30"))
    made = only(planned(markets=market(dear, builders.offer(1))))
    assert isinstance(made, Rent)
    assert (made.offer.offer_id, made.tenure, made.bid) == ("a1", Tenure.INTERRUPTIBLE, builders.per_hour("0.20"))
    assert made.rate == builders.per_hour("0.20") + builders.offer().disk_rate(20.0)


def test_an_on_demand_rent_has_no_bid() -> None:
    made = only(planned(workloads=(builders.workload(strategy="ondemand"),), markets=market()))
    assert isinstance(made, Rent)
    assert (made.tenure, made.bid) == (Tenure.ON_DEMAND, None)


def test_a_market_nobody_asked_holds() -> None:
    assert isinstance(only(planned(markets={"vast": builders.view()})), Hold)
    assert isinstance(only(planned(workloads=(builders.workload(markets=("runpod",)),), markets=market())), Hold)


def test_slots_of_one_plan_get_different_hosts() -> None:
    siblings = (builders.offer(1), builders.offer(2, host_id="h1"), builders.offer(3))
    made = planned(workloads=(builders.workload(slots=3),), markets=market(*siblings))
    rents = [decision for decision in made.decisions if isinstance(decision, Rent)]
    assert len({decision.offer.host_id for decision in rents}) == len(rents) == 2


def test_no_host_with_an_instance_of_the_account_is_rented_even_if_it_is_not_ours() -> None:
    made = planned(markets=market(builders.offer(1), instances=(builders.instance(1),)))
    assert isinstance(only(made), Hold)


def test_a_host_in_doubt_is_not_rented_for_another_slot() -> None:
    work = builders.workload(slots=2)
    made = planned(workloads=(work,), markets=market(), intents=(builders.intent(),))
    assert [type(decision) for decision in made.decisions] == [Hold, Hold]


def test_releases_come_first_and_keep_their_slot_from_anything_else() -> None:
    work = builders.workload(slots=2)
    failed = builders.lease(1, slot=builders.slot("train", 1), has_failed=True)
    made = planned(workloads=(work,), markets=market(builders.offer(2)), leases=(failed,))
    assert [type(decision) for decision in made.decisions] == [Release, Rent]
    assert [slot_of(decision).index for decision in made.decisions] == [1, 0]


def test_past_a_budget_what_runs_is_paused_and_nothing_is_rented() -> None:
    work = builders.workload(slots=4)
    states = [LeaseState.RUNNING, LeaseState.STARTING, LeaseState.PAUSED]
    leases = tuple(
        builders.lease(number, slot=builders.slot("train", number), state=state, state_since=NOW)
        for number, state in enumerate(states)
    )
    caps = Limits(per_day=builders.usd(5))
    made = planned(
        caps, workloads=(work,), markets=market(builders.offer(9)), leases=leases, spend=Spend(Usd(5_000_000))
    )
    kinds = {slot_of(decision).index: type(decision) for decision in made.decisions}
    assert (kinds[0], kinds[1], kinds[3]) == (Pause, Pause, Hold)
    assert kinds[2] in {Pause, Release}
    assert {decision.reason.limit for decision in made.decisions} == {"per_day"}


def test_past_a_budget_what_we_paused_is_not_started_again() -> None:
    held = builders.lease(state=LeaseState.PAUSED, paused_by_us=True)
    made = only(planned(Limits(per_day=Usd(0)), leases=(held,), markets=market()))
    assert isinstance(made, Hold | Release)
    assert made.reason.limit == "per_day"


@pytest.mark.parametrize(
    ("leases", "caps", "rests", "code"),
    [
        ([builders.lease(1)], Limits(), ["fleet:all"], "killed"),
        ([builders.lease(1)], Limits(), ["done:slot:train/0"], "done"),
        ([builders.lease(1)], Limits(), ["kill:workload:train"], "killed"),
        ([builders.lease(1, state=LeaseState.PAUSED, paused_by_us=True)], Limits(per_day=Usd(0)), [], "over_budget"),
        ([builders.lease(1, has_failed=True)], Limits(), [], "start_failed"),
        ([builders.lease(1, state=LeaseState.RELEASING)], Limits(), [], "release_again"),
        ([builders.lease(1), builders.lease(2, opened_at=builders.ago(minutes=9))], Limits(), [], "moved"),
    ],
)
def test_what_has_to_end_ends_also_while_nothing_may_be_paid_for(
    leases: list[Any], caps: Limits, rests: list[str], code: str
) -> None:
    """Only an ending by a strategy is held back then; a person, a cap and a finished move are obeyed as ever."""
    holds = tuple(holds_shown(*rests).values())
    markets = market(no_spend_because="spend = false")
    made = planned(caps, markets=markets, leases=tuple(leases), holds=holds)
    assert [each.reason.code for each in made.decisions if isinstance(each, Release)] == [code]


def test_a_strategy_gives_up_nothing_that_could_not_be_rented_again() -> None:
    given_up = obstinate(Proposal(builders.slot(), IntentKind.RELEASE, WHY, lease=builders.lease()))
    free = planned(tuned=given_up, markets=market(), leases=(builders.lease(),))
    assert isinstance(only(free), Release)
    held = only(planned(tuned=given_up, markets=market(no_spend_because="spend = false"), leases=(builders.lease(),)))
    assert isinstance(held, Hold)
    assert held.reason.limit == "no_spend"


def test_a_veto_says_what_it_vetoed() -> None:
    made = only(planned(Limits(instances=0), markets=market()))
    assert isinstance(made, Hold)
    assert (made.reason.code, made.reason.limit) == ("limit", "instances")
    assert "rent 1x RTX 4090 on host h1" in made.reason.sentence
    assert made.reason.options


def test_limits_count_what_the_plan_has_already_decided() -> None:
    work = builders.workload(slots=3)
    offers = [builders.offer(number) for number in range(5)]
    made = planned(Limits(instances=2), workloads=(work,), markets=market(*offers))
    assert [type(decision) for decision in made.decisions] == [Rent, Rent, Hold]
    assert made.standing.instances == 2
    assert made.standing.rate == builders.per_hour("0.408334")


def test_a_vetoed_rent_leaves_its_host_to_the_next_workload() -> None:
    dear, cheap = builders.workload("dear"), builders.workload("cheap", strategy="ondemand")
    caps = Limits(per_hour=builders.per_hour("0.10"))
    made = planned(caps, workloads=(dear, cheap), markets=market())
    assert all(isinstance(decision, Hold) for decision in made.decisions)


@pytest.mark.parametrize(
    ("proposal", "kind"),
    [
        (Proposal(builders.slot(), IntentKind.RENT, WHY), Hold),
        (Proposal(builders.slot(), IntentKind.REBID, WHY, lease=builders.lease()), Hold),
        (Proposal(builders.slot(), IntentKind.RESUME, WHY), Hold),
        (Proposal(builders.slot(), IntentKind.RENT, WHY, candidate=builders.candidate()), Rent),
        (Proposal(builders.slot(), IntentKind.REBID, WHY, lease=builders.lease(), bid=UsdPerHour(1)), Rebid),
        (Proposal(builders.slot(), IntentKind.RESUME, WHY, lease=builders.lease()), Resume),
        (Proposal(builders.slot(), IntentKind.PAUSE, WHY, lease=builders.lease()), Pause),
        (Proposal(builders.slot(), IntentKind.RELEASE, WHY, lease=builders.lease()), Release),
        (Proposal(builders.slot(), None, WHY), Hold),
        (Proposal(builders.slot("train", 7), IntentKind.RESUME, WHY, lease=builders.lease()), Hold),
    ],
    ids=str,
)
def test_a_proposal_becomes_a_decision_or_a_hold(proposal: Proposal, kind: type) -> None:
    made = only(planned(tuned=obstinate(proposal)))
    assert isinstance(made, kind)


def test_a_slot_nobody_proposes_for_is_held() -> None:
    made = only(planned(tuned=obstinate()))
    assert made.reason.code == "no_proposal"


def test_a_locked_host_leaves_its_place_to_the_next_best() -> None:
    made = only(planned(holds=(held("lock", "host:vast/h1"),), markets=market(builders.offer(1), builders.offer(2))))
    assert isinstance(made, Rent)
    assert made.offer.host_id == "h2"


def test_a_host_of_one_market_says_nothing_of_the_other_markets_host_of_that_id() -> None:
    """A lease, a lock and a cooldown on host 777 of one market leave host 777 of the other free."""
    there = builders.lease(7, slot=Slot("other", 0), market="vast", host_id="777", owner_id="12")
    rests = (
        Cooldown(CooldownKind.HOST, "vast/777", NOW + timedelta(hours=1), "a failed start"),
        Cooldown(CooldownKind.OWNER, "vast/12", NOW + timedelta(hours=1), "hosts of one owner lost"),
    )
    offered = builders.offer(1, market="runpod", host_id="777", owner_id="12")
    view = builders.view(market="runpod", offers=(offered,))
    markets = {"vast": builders.view(), "runpod": view}
    made = only(planned(leases=(there,), holds=(held("lock", "host:vast/777"),), cooldowns=rests, markets=markets))
    assert isinstance(made, Rent)
    assert made.offer == offered


states = st.sampled_from(LeaseState)
hosts = st.integers(0, 7)
offers = st.builds(
    lambda number, host, **changes: builders.offer(number, host_id=f"h{host}", **changes),
    st.integers(0, 40),
    hosts,
    floor=st.none() | st.builds(UsdPerHour, st.integers(10_000, 900_000)),
    ask=st.none() | st.builds(UsdPerHour, st.integers(10_000, 900_000)),
    reliability=st.floats(0.5, 1),
    is_verified=st.booleans(),
)


@st.composite
def leases(draw: st.DrawFn, number: int) -> Any:
    state = draw(states)
    return builders.lease(
        number,
        slot=builders.slot(draw(st.sampled_from(["train", "other"])), draw(st.integers(0, 2))),
        host_id=f"h{draw(hosts)}",
        state=state,
        tenure=draw(st.sampled_from([Tenure.INTERRUPTIBLE, Tenure.ON_DEMAND])),
        bills=draw(st.sampled_from(Bills)),
        gpu_rate=draw(st.builds(UsdPerHour, st.integers(10_000, 500_000))),
        paused_by_us=draw(st.booleans()),
        has_run=draw(st.booleans()),
        has_failed=draw(st.integers(0, 9)) == 0,
        is_held=draw(st.integers(0, 9)) == 0,
        interrupted_by=draw(st.none() | st.sampled_from(Cause)),
        rival_floor=draw(st.none() | st.builds(UsdPerHour, st.integers(10_000, 500_000))),
        state_since=NOW - timedelta(minutes=draw(st.integers(0, 500))),
        opened_at=NOW - timedelta(minutes=500 + number),
    )


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    places = st.sampled_from([CheckpointPlace.DISK, CheckpointPlace.REMOTE, CheckpointPlace.NONE])
    works = (
        builders.workload(
            "train", slots=3, checkpoint=Checkpoint(place=draw(places)), may_lose_disk=draw(st.booleans())
        ),
        builders.workload(
            "other", slots=2, strategy="ondemand", max_price=UsdPerHour(draw(st.integers(50_000, 900_000)))
        ),
    )
    intents = tuple(
        builders.intent(
            number,
            kind=draw(st.sampled_from(IntentKind)),
            state=draw(st.sampled_from(IntentState)),
            slot=builders.slot("train", draw(st.integers(0, 2))),
            host_id=f"h{draw(hosts)}",
            lease_id=draw(st.sampled_from(["", "vast-0"])),
        )
        for number in range(draw(st.integers(0, 2)))
    )
    view = builders.view(
        offers=tuple(draw(st.lists(offers, max_size=12))),
        is_fresh=draw(st.integers(0, 5)) > 0,
        credit=draw(st.sampled_from([None, Usd(0), Usd(10**9)])),
    )
    return builders.fleet(
        workloads=works,
        markets={"vast": view},
        leases=tuple(draw(leases(number)) for number in range(draw(st.integers(0, 5)))),
        intents=intents,
        spend=Spend(Usd(draw(st.integers(0, 6_000_000))), Usd(draw(st.integers(0, 60_000_000)))),
        hosts={"h1": HostRecord("vast", "h1", running_seconds=7200, interruptions=draw(st.integers(0, 5)))},
    )


caps_of = st.builds(
    Limits,
    per_instance_hour=st.none() | st.builds(UsdPerHour, st.integers(0, 900_000)),
    per_hour=st.none() | st.builds(UsdPerHour, st.integers(0, 3_000_000)),
    per_day=st.none() | st.builds(Usd, st.integers(0, 8_000_000)),
    per_month=st.none() | st.builds(Usd, st.integers(0, 80_000_000)),
    instances=st.none() | st.integers(0, 8),
)
faults = st.sampled_from([frozenset[str](), frozenset({"vast"})])


@settings(max_examples=150)
@given(fleets(), caps_of, faults)
def test_what_holds_for_every_plan(fleet: Fleet, caps: Limits, faulty: frozenset[str]) -> None:
    made = plan.plan(fleet, TUNED, caps, faulty)
    assert made == plan.plan(msgspec.structs.replace(fleet), TUNED, caps, faulty)
    _one_paying_decision_a_slot(fleet, made)
    _one_lease_a_host(fleet, made)
    _within_price_and_caps(fleet, made, caps)
    _nothing_paid_blindly(fleet, made, faulty)
    _every_slot_has_its_say(fleet, made)


def _one_paying_decision_a_slot(fleet: Fleet, made: Plan) -> None:
    paying = Counter(slot_of(decision) for decision in made.decisions if raises_spend(decision))
    assert all(count == 1 for count in paying.values())
    assert all(fleet.paying_intent(place) is None for place in paying)
    ending = {slot_of(decision) for decision in made.decisions if isinstance(decision, Release)}
    assert not ending & paying.keys()


def _one_lease_a_host(fleet: Fleet, made: Plan) -> None:
    rented = [decision.offer.host_id for decision in made.decisions if isinstance(decision, Rent)]
    assert len(set(rented)) == len(rented)
    assert not set(rented) & {lease.host_id for lease in fleet.leases if lease.is_open}
    assert not set(rented) & {intent.host_id for intent in fleet.intents if intent.is_open}


def _within_price_and_caps(fleet: Fleet, made: Plan, caps: Limits) -> None:
    for decision in made.decisions:
        work = fleet.workload(slot_of(decision).workload)
        assert work is not None
        if isinstance(decision, Rent):
            assert decision.rate <= work.price_of(decision.offer.gpu)
            assert decision.offer.is_verified
        if isinstance(decision, Rebid) and raises_spend(decision):
            assert decision.bid + decision.lease.disk_rate <= work.price_of(decision.lease.gpu)
    paid = [decision for decision in made.decisions if raises_spend(decision)]
    if paid and caps.per_hour is not None:
        assert made.standing.rate <= caps.per_hour
    if any(isinstance(decision, Rent) for decision in paid) and caps.instances is not None:
        assert made.standing.instances <= caps.instances
    if caps.per_day is not None and made.standing.today >= caps.per_day:
        assert not paid


def _nothing_paid_blindly(fleet: Fleet, made: Plan, faulty: frozenset[str]) -> None:
    view = fleet.markets["vast"]
    if not view.is_fresh or view.credit == Usd(0):
        assert not any(raises_spend(decision) for decision in made.decisions)
    assert not (faulty and any(isinstance(decision, Rent) for decision in made.decisions))


def _every_slot_has_its_say(fleet: Fleet, made: Plan) -> None:
    said = {slot_of(decision) for decision in made.decisions}
    assert {place for work in fleet.workloads for place in work.places} <= said
    held = {lease.lease_id for lease in fleet.leases if lease.is_held and lease.state is not LeaseState.RELEASING}
    touched = [decision.lease.lease_id for decision in made.decisions if not isinstance(decision, Rent | Hold)]
    assert len(set(touched)) == len(touched)
    releases = [decision.lease for decision in made.decisions if isinstance(decision, Release)]
    assert not {lease.lease_id for lease in releases} & held
