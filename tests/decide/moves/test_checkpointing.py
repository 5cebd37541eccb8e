"""How often to make a checkpoint: what loses least, seldomer as a lease ages, and nothing where nothing is known."""

from dataclasses import replace
from datetime import timedelta

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide import explain, plan
from agent.decide.deadline import hazards
from agent.decide.limits import limits
from agent.decide.moves import checkpointing
from agent.domain.market.tenure import Tenure
from agent.domain.work.decision import Rent
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Workload
from agent.strategy_files import load
from tests.support import builders


def keeping(seconds: float | None = 30, place: CheckpointPlace = CheckpointPlace.REMOTE) -> Workload:
    takes = None if seconds is None else timedelta(seconds=seconds)
    return builders.workload(checkpoint=Checkpoint(place=place, takes=takes), strategy="patient")


def cost(interval: float, write: float, hazard: float) -> float:
    """Give hours of wall time for an hour of work: written, and lost to exponential failures (Daly's own model)."""
    return float(np.expm1(hazard * (interval + write)) / (hazard * interval))


@given(seconds=st.floats(1, 120), hazard=st.floats(0.01, 2))
def test_no_other_interval_loses_less(seconds: float, hazard: float) -> None:
    given_ = checkpointing.advice(keeping(seconds), Tenure.ON_DEMAND, hazard)
    assert given_ is not None
    mine = cost(given_.interval / 3600, seconds / 3600, hazard)
    others = [cost(each, seconds / 3600, hazard) for each in np.geomspace(seconds / 3600 / 4, 24, 400)]
    assert mine <= min(others) * 1.002


def test_a_lease_that_lasted_writes_seldomer_and_one_on_demand_always_the_same() -> None:
    bid = checkpointing.advice(keeping(), Tenure.INTERRUPTIBLE, 0.2)
    bought = checkpointing.advice(keeping(), Tenure.ON_DEMAND, 0.2)
    assert bid is not None
    assert bought is not None
    intervals = [seconds for _, seconds in bid.by_age]
    assert intervals == sorted(intervals)
    assert intervals[0] < bid.interval < intervals[-1]
    assert len(bought.by_age) == 1
    assert bid.interval == bought.interval


def test_the_shape_is_in_times_of_the_losses_an_hour_over_a_day() -> None:
    shape, fitted = hazards.SHIPPED.shape, hazards.SHIPPED.losses
    ages = np.linspace(0, 24, 200_001)
    rates = np.array(fitted)[[hazards.SHIPPED.bin(age) for age in ages]]
    lasting = np.exp(-np.cumsum(rates) * (ages[1] - ages[0]))
    mean = (1 - lasting[-1]) / (lasting.sum() * (ages[1] - ages[0]))
    assert [times * mean for _, times in shape] == pytest.approx(fitted, rel=1e-3)


@pytest.mark.parametrize(
    ("work", "hazard"),
    [(keeping(None), 0.2), (keeping(place=CheckpointPlace.NONE), 0.2), (keeping(), 0.0), (keeping(0), 0.2)],
)
def test_nothing_is_advised_where_nothing_is_known_or_kept(work: Workload, hazard: float) -> None:
    assert checkpointing.advice(work, Tenure.INTERRUPTIBLE, hazard) is None


def test_a_rent_carries_it_and_explain_shows_it_for_what_runs() -> None:
    offers = {"vast": builders.view(offers=(builders.offer(),))}
    fleet = builders.fleet(workloads=(keeping(),), markets=offers)
    made = plan.plan(fleet, load(), limits.Limits(), frozenset())
    (rent,) = made.decisions
    assert isinstance(rent, Rent)
    assert rent.advice is not None
    shown = explain.explanation_json(explain.explain(fleet, made, keeping()))["checkpoints"]
    assert (shown[0]["slot"], shown[0]["seconds"]) == ("train/0", rent.advice.interval)
    held = msgspec.structs.replace(fleet, leases=(builders.lease(1),))
    idle = replace(made, decisions=())
    (row,) = explain.explanation_json(explain.explain(held, idle, keeping()))["checkpoints"]
    assert row["host"] == builders.lease(1).host_id
    assert row["by_age"][0] == {"age_seconds": 0, "seconds": pytest.approx(row["by_age"][0]["seconds"])}


def test_explain_shows_for_a_lease_what_its_container_was_told_while_nothing_was_learned_since() -> None:
    offer = builders.offer(reliability=0.99)
    fleet = builders.fleet(workloads=(keeping(),), markets={"vast": builders.view(offers=(offer,))})
    (rent,) = plan.plan(fleet, load(), limits.Limits(), frozenset()).decisions
    assert isinstance(rent, Rent)
    assert rent.tenure is Tenure.INTERRUPTIBLE
    held = builders.lease(1, host_id=offer.host_id, tenure=rent.tenure)
    assert checkpointing.of_lease(msgspec.structs.replace(fleet, leases=(held,)), held, keeping()) == rent.advice
