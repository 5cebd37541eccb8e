"""Pools of hosts, several markets, and GPUs that are charged from the rent on."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from agent.decide import market_sentences, plan
from agent.decide.facts import LeaseChanged
from agent.decide.limits.limits import Limits
from agent.decide.pricing import offer_refusal
from agent.decide.reconcile import market_alerts, readback, reconcile
from agent.decide.reconcile.losses import cause
from agent.decide.reconcile.pass_memory import Memory
from agent.domain.market import gpu, host
from agent.domain.market.instance import InstanceState
from agent.domain.market.interruption import Cause, MarketEvent, MarketEventKind
from agent.domain.market.market_rules import MarketRules
from agent.domain.market.tenure import Tenure
from agent.domain.record.cooldown import Cooldown, CooldownKind
from agent.domain.record.host_check import HostCheck
from agent.domain.record.lease import Bills, LeaseState
from agent.domain.work.decision import Hold, Release, Rent, Resume
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from agent.markets.runpod.rules import RULES as RUNPOD
from strategies.ondemand import OnDemand, OnDemandParams
from strategies.patient import Patient, PatientParams
from tests.support import builders

TUNED = {"ondemand": builders.tuned(OnDemand(), OnDemandParams(), "ondemand")}
POOL = "pool/SECURE/A40/EU-RO-1"


def rents(**changes: Any) -> list[Rent]:
    made = plan.plan(builders.fleet(**changes), TUNED, Limits())
    return [decision for decision in made.decisions if isinstance(decision, Rent)]


def test_a_pool_holds_what_lies_in_it_and_nothing_else() -> None:
    assert host.is_same_place(POOL, "pool/SECURE/A40")
    assert host.is_same_place("pool/SECURE/A40", POOL)
    assert not host.is_same_place(POOL, "pool/SECURE/A4")
    assert not host.is_same_place("5101", "5101/1")
    assert host.is_same_place("5101", "5101")


def test_a_pool_gets_a_second_lease_where_a_host_does_not() -> None:
    work = builders.workload(strategy="ondemand", slots=2)
    for host_id, wanted in ((POOL, 1), ("h1", 0)):
        held = builders.lease(1, host_id=host_id, tenure=Tenure.ON_DEMAND)
        view = builders.view(offers=(builders.offer(host_id=host_id),))
        assert len(rents(workloads=(work,), leases=(held,), markets={"vast": view})) == wanted


def test_a_workload_goes_to_the_better_of_its_markets() -> None:
    there = builders.offer(9, market="runpod", host_id=POOL, ask=builders.per_hour("0.30"), floor=None)
    markets = {
        "vast": builders.view(offers=(builders.offer(floor=None),)),
        "runpod": msgspec.structs.replace(builders.view(offers=(there,)), market="runpod"),
    }
    for names, wanted in (((), "runpod"), (("vast",), "vast"), (("vast", "runpod"), "runpod")):
        work = builders.workload(strategy="ondemand", markets=names)
        assert [rent.offer.market for rent in rents(workloads=(work,), markets=markets)] == [wanted]


def test_a_rent_that_landed_elsewhere_in_its_pool_is_what_was_asked_for() -> None:
    asked = readback.of_lease(builders.lease(host_id=POOL))
    assert readback.difference(asked, builders.instance(host_id="pool/SECURE/A40")) == ""
    assert readback.difference(asked, builders.instance(host_id="")) == ""
    assert readback.difference(asked, builders.instance(host_id="pool/SECURE/A40/EU-SE-1")).startswith("it is on host")


def test_loading_is_charged_where_the_market_does_and_runs_for_nobody() -> None:
    starting = builders.lease(state=LeaseState.STARTING, bills=Bills.DISK, run_since=None, has_run=False)
    held = replace(starting, read_back_at=builders.NOW)
    for bills_while_loading, bills in ((True, Bills.GPU_AND_DISK), (False, None)):
        row = builders.instance(state=InstanceState.LOADING, bills_while_loading=bills_while_loading)
        fleet = builders.fleet(leases=(held,), markets={"vast": builders.view(instances=(row,))})
        changes = [fact for fact in reconcile.reconcile(fleet, Memory()).facts if isinstance(fact, LeaseChanged)]
        assert [change.after.bills for change in changes] == ([bills] if bills else [])
        assert all(change.after.run_since is None for change in changes)
        assert row.billing_rate == (row.gpu_rate + row.disk_rate if bills_while_loading else row.disk_rate)


def test_what_cannot_start_where_it_stands_is_given_up_unless_its_disk_counts() -> None:
    held = builders.lease(state=LeaseState.PAUSED, tenure=Tenure.ON_DEMAND, paused_by_us=True)
    full = Cooldown(CooldownKind.FULL, held.lease_id, builders.NOW + timedelta(minutes=5), "its host has no free GPU")
    for place, kind in ((CheckpointPlace.REMOTE, Release), (CheckpointPlace.DISK, Hold)):
        work = builders.workload(strategy="ondemand", checkpoint=Checkpoint(place=place))
        fleet = builders.fleet(workloads=(work,), leases=(held,), cooldowns=(full,), markets={"vast": builders.view()})
        made = plan.plan(fleet, TUNED, Limits()).decisions
        assert isinstance(made[0], kind)
        assert made[0].reason.code == "host_full"


def test_a_lost_bid_without_a_price_is_an_outbid_and_a_stop_by_the_market_is_unknown() -> None:
    held, began = builders.lease(host_id=POOL), builders.ago(minutes=5)
    for kind, why in (("bid_lost", Cause.OUTBID), ("stopped_by_market", Cause.UNKNOWN)):
        told = MarketEvent("e", "vast", MarketEventKind(kind), held.instance_id, builders.ago(minutes=1))
        found, evidence = cause.of_stop(held, InstanceState.PAUSED, builders.view(events=(told,)), began, builders.NOW)
        assert (found, evidence.rule) == (why, "market_record")


def test_what_is_not_sold_is_said_for_each_market() -> None:
    view = msgspec.structs.replace(builders.view(), not_sold={Tenure.INTERRUPTIBLE: "it is gone"})
    (alert,) = market_alerts.not_sold(builders.fleet(markets={"vast": view}))
    assert (alert.code, alert.key) == ("not_sold", "vast/interruptible")
    assert alert.sentence == "it is gone; other tenures are rented as before"


@pytest.mark.parametrize(
    ("missing", "rules"),
    [
        ((Tenure.INTERRUPTIBLE, Tenure.ON_DEMAND), MarketRules()),
        ((Tenure.INTERRUPTIBLE,), MarketRules(sells_on_demand=False)),
    ],
    ids=["both", "the only one"],
)
def test_a_market_that_sells_nothing_is_not_said_to_sell_something_else(
    missing: tuple[Tenure, ...], rules: MarketRules
) -> None:
    view = msgspec.structs.replace(builders.view(), not_sold=dict.fromkeys(missing, "no fleet"), rules=rules)
    fleet = builders.fleet(markets={"vast": view})
    (alert,) = market_alerts.not_sold(fleet)
    assert (alert.key, alert.sentence) == (
        "vast",
        "no fleet; until then nothing is rented on vast, and leases there go on",
    )
    assert list(market_sentences.not_sold(fleet, builders.workload())) == ["vast sells nothing now: no fleet"]


def test_a_market_that_gives_nothing_back_by_itself_is_asked_for_it() -> None:
    work = builders.workload()
    held = builders.lease(
        host_id=POOL, state=LeaseState.PAUSED, interrupted_by=Cause.OUTBID, state_since=builders.ago(minutes=1)
    )
    made = plan.plan(
        builders.fleet(workloads=(work,), leases=(held,), markets={"vast": builders.view(rules=RUNPOD)}),
        {"patient": builders.tuned(Patient(), PatientParams())},
        Limits(),
    )
    assert [type(decision) for decision in made.decisions] == [Resume]
    by_itself = builders.fleet(workloads=(work,), leases=(held,), markets={"vast": builders.view()})
    made = plan.plan(by_itself, {"patient": builders.tuned(Patient(), PatientParams())}, Limits())
    assert [type(decision) for decision in made.decisions] == [Hold], "a pool too may give a lease back by itself"


def test_a_pool_nobody_measured_is_worth_what_like_cards_are_elsewhere() -> None:
    pool = builders.offer(9, market="runpod", host_id=POOL, gpus=2, dlperf=0.0)
    shown = tuple(builders.offer(number, dlperf=figure) for number, figure in ((1, 70.0), (2, 80.0), (3, 99.0)))
    unmeasured = builders.offer(4, dlperf=0.0)
    found = (
        offer_refusal.OffersByMarkets({"vast": (*shown, unmeasured), "runpod": (pool,)}).of(builders.workload()).offers
    )
    assert {row.offer_id: row.dlperf for row in found} == {"a1": 70.0, "a2": 80.0, "a3": 99.0, "a4": 0.0, "a9": 160.0}
    alone = offer_refusal.OffersByMarkets({"runpod": (pool,)}).of(builders.workload()).offers
    assert [row.dlperf for row in alone] == [0.0]


def test_a_pool_that_our_checks_measured_is_worth_that() -> None:
    pool = builders.offer(9, market="runpod", host_id=POOL, gpus=2, dlperf=0.0)
    like, other = builders.offer(1, dlperf=70.0), builders.offer(2, gpu=gpu.model("L4"), dlperf=30.0)
    promised = HostCheck("b", "vast", "h2", "", other.gpu, 1, 30.0, builders.NOW, 20.0)
    checks = [HostCheck(f"a{each}", "runpod", POOL, "", pool.gpu, 2, 0.0, builders.NOW, 60.0) for each in range(3)]

    def worth(*known: HostCheck) -> float:
        books = offer_refusal.OffersByMarkets({"vast": (like, other), "runpod": (pool,)}, known)
        return {row.offer_id: row.dlperf for row in books.of(builders.workload()).offers}["a9"]

    assert worth(*checks, promised) == pytest.approx(180.0)
    assert worth(*checks[:2], promised) == 140.0, "two checks are too few"


def test_a_pod_whose_host_is_silent_is_waited_for_and_one_that_was_stopped_is_started() -> None:
    tuned = {"patient": builders.tuned(Patient(), PatientParams(), "patient")}
    for state, why, starts in (
        (LeaseState.OFFLINE, Cause.HOST_OFFLINE, False),
        (LeaseState.PAUSED, Cause.OUTBID, True),
    ):
        since = builders.ago(minutes=2)
        held = builders.lease(host_id=POOL, state=state, interrupted_by=why, state_since=since, run_since=None)
        fleet = builders.fleet(leases=(held,), markets={"vast": builders.view(rules=RUNPOD)})
        made = plan.plan(fleet, tuned, Limits()).decisions
        assert [isinstance(decision, Resume) for decision in made] == [starts]
