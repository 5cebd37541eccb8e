"""A day of the auction in memory: reckoned by hand, the same for the same seed, and every dollar of it explained."""

from datetime import timedelta

import pytest

from agent import strategy_files
from agent.domain import money
from agent.domain.market import gpu
from agent.domain.work.decision import Release, Rent
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Requirements, Workload
from agent.lab.bids import bid_baselines, bids_problem, day, hindsight
from agent.lab.bids.bid_market import fits
from agent.lab.traces import walk_forward
from agent.markets import port
from agent.simulator.climate import Climate, Demand
from agent.simulator.vast.world import World

STILL = Climate(
    name="still",
    demand=Demand(arrivals=0.0, taken=0.0, fight_back=0.0),
    price_walks_per_day=0.0,
    failures=0.0,
    pull_failure_probability=0.0,
)
TUNED = strategy_files.load() | bid_baselines.tuned()
WORK = day.workload("floor_relaunch")
QUERY = port.OfferQuery(WORK.requirements, WORK.disk_gb, gpu_models=WORK.requirements.gpu_models)


def still(hours: float = 2.0, strategy: str = "floor_relaunch") -> day.Day:
    """Return a day on which nothing happens by itself, on a market small enough to be seen whole."""
    setting = day.Setting("calm", 3, hours)
    return day.Day(setting, strategy, TUNED, world=World(STILL, seed=3, start=day.START.timestamp(), hosts=80))


def test_the_cheapest_floor_is_bid_and_the_bill_is_what_the_hand_reckons() -> None:
    lived = still()
    world = lived.world
    floors = {
        slice_.offer_id: (world.host_floor(slice_) + slice_.host.storage_price * 40 / 720) / slice_.host.dlperf_per_gpu
        for slice_ in world.slices.values()
        if fits(slice_, QUERY) and world.is_listed(slice_)
    }
    told = lived.live()
    (contract,) = world.contracts.values()
    assert contract.slice.offer_id == min(floors, key=lambda offer_id: floors[offer_id])
    assert contract.first_started is not None
    ran = lived.setting.end.timestamp() - contract.first_started
    gpu, disk = min(contract.bid or 0.0, world.ask(contract.slice)), contract.host.storage_price * 40 / 720
    bill = gpu * ran / 3600 + disk * 2.0 + contract.image_gb * contract.host.down_price
    assert told.charged == pytest.approx(bill)
    assert told.split.bill == pytest.approx(bill)
    assert told.split.useful_hours == pytest.approx((ran - 60) / 3600)
    assert told.losses == 0


def test_outbid_at_the_floor_is_released_and_relaunched_elsewhere() -> None:
    lived = still()
    while lived.clock.now() < day.START + timedelta(minutes=40):
        lived.step()
    (contract,) = lived.world.contracts.values()
    lived.world.add_rival(contract.host.machine_id, 1, (contract.bid or 0.0) + 0.01)
    told = lived.live()
    hosts = [each.host.machine_id for each in lived.world.contracts.values()]
    assert len(hosts) == 2
    assert len(set(hosts)) == 2
    assert [type(decision) for _, decision in lived.engine.decisions] == [Rent, Release, Rent]
    assert told.losses == 1
    assert told.split.dollars["lost"] > 0


@pytest.mark.parametrize("strategy", ["patient", "hedged", "ladder", "on_demand"])
def test_every_dollar_of_a_rough_day_has_a_kind_and_none_is_below_the_bound(strategy: str) -> None:
    setting = day.Setting("bidding_war", 5, 6.0, timedelta(seconds=120))
    told = day.Day(setting, strategy, TUNED).live()
    assert told.charged > 0
    assert told.split.bill == pytest.approx(told.charged, rel=1e-9)
    best = hindsight.bound(setting.world, QUERY, setting.hours, setting.poll)
    assert told.split.useful_dlperf_hours <= best.work
    assert best.dollars(told.split.useful_dlperf_hours) <= told.split.bill


def test_equal_seeds_give_equal_days_and_others_others() -> None:
    def lived(seed: int) -> tuple[float, list[str]]:
        passed = day.Day(day.Setting("bidding_war", seed, 4.0), "patient", TUNED)
        told = passed.live()
        return told.charged, [f"{at} {decision}" for at, decision in passed.engine.decisions]

    assert lived(2) == lived(2)
    assert lived(2)[0] != lived(4)[0]


def test_the_bound_takes_the_cheapest_spans_first() -> None:
    bound = hindsight.Bound((hindsight.Span(0.001, 10.0), hindsight.Span(0.003, 10.0)))
    assert bound.dollars(10.0) == pytest.approx(0.01)
    assert bound.dollars(15.0) == pytest.approx(0.025)
    assert bound.dollars(99.0) == pytest.approx(0.04)
    assert bound.work == 20.0


def test_a_problem_scores_a_day_per_thousand_units_of_work() -> None:
    made = bids_problem.BidsProblem(("calm",), (1, 2), hours=2.0)
    (first, _) = made.cases()
    score = made.score("floor_relaunch", first)
    told = day.Day(day.Setting("calm", 1, 2.0), "floor_relaunch", TUNED).live()
    assert score.cost == pytest.approx(1000 * told.split.bill / told.split.useful_dlperf_hours)
    assert not score.is_late
    assert score.figures["/ bound of so much work"] > 1.0
    assert made.score("hindsight", first).cost < score.cost
    assert "semi-synthetic" in str(made.about()["market"])


def own(price: str = "0.30", model: str = "RTX 3090") -> Workload:
    """Return a workload of an operator: its own card and price, and no checkpoints."""
    wants = Requirements(gpu_models=(gpu.model(model),), min_vram_mb=24_000, regions=("DE",), query="num_gpus=1")
    kept = Checkpoint(timedelta(minutes=30), timedelta(minutes=2), 0.0, CheckpointPlace.NONE)
    return Workload("mine", day.IMAGE, money.per_hour(price), "hedged", wants, slots=4, disk_gb=80.0, checkpoint=kept)


def test_a_day_of_an_own_workload_rents_its_card_within_its_price() -> None:
    made = bids_problem.BidsProblem(("calm",), (1,), hours=4.0, work=own())
    lived = day.Day(made._setting(made.cases()[0]), "patient", TUNED)
    lived.live()
    (rented,) = {type(each).__name__: each for _, each in lived.engine.decisions if isinstance(each, Rent)}.values()
    contracts = lived.world.contracts.values()
    assert {each.host.gpu.name for each in contracts} == {"RTX 3090"}
    assert {each.disk_gb for each in contracts} == {80.0}
    assert all((each.bid or lived.world.ask(each.slice)) <= 0.30 for each in contracts)
    assert str(rented.slot) == "mine/0"
    told = made.about()["workload"]
    assert isinstance(told, list)
    assert {"mine", "1x RTX 3090 at $0.3000/h or less", "disk 80 GB"} <= set(told)
    assert "checkpoint at none every 30m of 0 GB" in told


def test_an_own_workloads_day_costs_its_bill_and_its_hours_without_work() -> None:
    made = bids_problem.BidsProblem(("calm",), (1,), hours=4.0, work=own())
    (case,) = made.cases()
    score = made.score("patient", case)
    assert score.cost == pytest.approx(score.figures["$"] + 0.30 * (4.0 - score.figures["useful h"]))
    assert 0 < score.figures["useful h"] < 4.0
    assert made.score("hindsight", case).cost <= score.cost
    nothing = bids_problem.BidsProblem(("calm",), (1,), hours=4.0, work=own("0.001"))
    idle = nothing.score("patient", case)
    assert idle.cost == pytest.approx(0.004)
    assert idle.is_late
    assert idle.is_priced
    assert nothing.score("hindsight", case).cost == pytest.approx(0.004)


def test_ours_run_on_the_numbers_that_are_given_and_baselines_have_none() -> None:
    made = bids_problem.BidsProblem(("bidding_war",), (5,), hours=6.0)
    shipped = made.params("patient")
    assert shipped is not None
    assert made.params("floor_relaunch") is None
    dear = made.with_params("patient", shipped.model_copy(update={"ceiling": 0.3}))
    (case,) = dear.cases()
    assert dear.score("patient", case).cost != made.score("patient", case).cost
    assert dear.score("ladder", case) == made.score("ladder", case)
    assert dear.digests()["patient"] != made.digests()["patient"]
    assert dear.with_params("patient", shipped).digests() == made.digests()


def test_days_held_out_later_hold_every_climate() -> None:
    made = bids_problem.BidsProblem(("calm", "bidding_war"), (1, 2, 3))
    (fold,) = walk_forward.forward(made.cases(), 1)
    assert {made.cases()[place].climate for place in fold.held} == {"calm", "bidding_war"}


def test_a_day_without_useful_work_is_late_and_not_free() -> None:
    made = bids_problem.BidsProblem(("calm",), (1,), hours=0.03)
    score = made.score("on_demand", made.cases()[0])
    assert score.figures["$"] > 0
    assert score.is_late
    assert score.cost == pytest.approx(1000 * 0.45 / 98.3)


@pytest.mark.parametrize(
    ("strategy", "climate", "seed"),
    [("patient", "bidding_war", 3), pytest.param("hedged", "price_spike", 1, marks=pytest.mark.nightly)],
)
@pytest.mark.nightly
def test_a_poll_that_is_left_out_changes_no_decision(strategy: str, climate: str, seed: int) -> None:
    setting = day.Setting(climate, seed, 24.0)
    lived = [day.Day(setting, strategy, TUNED) for _ in range(2)]
    lived[1].may_skip = False
    told = [each.live() for each in lived]
    decisions = [
        [f"{at} {type(each).__name__} {each.reason.sentence}" for at, each in one.engine.decisions] for one in lived
    ]
    assert len(decisions[0]) > 5
    assert decisions[0] == decisions[1]
    assert told[0].split == told[1].split
