"""Measured checkpoint figures: no host alone decides them, and none makes us pay more than the file's would."""

from collections import UserDict
from collections.abc import Sequence, ValuesView
from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide import explain, plan
from agent.decide.limits.limits import Limits
from agent.decide.pricing import measured_checkpoints, useful_hour
from agent.domain.fleet import Fleet
from agent.domain.market.host import HostRecord
from agent.domain.market.tenure import Tenure
from agent.domain.record.guard_figures import GuardFigures
from agent.domain.work.decision import Rent
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Workload
from strategies.patient import Patient, PatientParams
from tests.support import builders

PROMISE = Checkpoint(restore=timedelta(minutes=20), takes=timedelta(seconds=60), place=CheckpointPlace.REMOTE)
WORK = builders.guarded(checkpoint=PROMISE)
TUNED = {"patient": builders.tuned(Patient(), PatientParams())}


def told(number: int, restore: float | None = None, took: float | None = None, host: str = "") -> GuardFigures:
    place = builders.TRAIN_0
    figures = GuardFigures(f"vast-{number}", place, "vast", host or f"h{number}", 1, 1, builders.NOW)
    return replace(figures, restore_seconds=restore, took_seconds=took)


def fleet(found: Sequence[GuardFigures], work: Workload = WORK) -> Fleet:
    offers = [builders.offer(number, floor=builders.per_hour(f"0.2{number}")) for number in range(4)]
    figures = {each.lease_id: each for each in found}
    return builders.fleet(workloads=(work,), guard_figures=figures, markets={"vast": builders.view(offers=offers)})


def believed(*found: GuardFigures, work: Workload = WORK) -> Checkpoint:
    seen = fleet(found, work)
    checkpoint = measured_checkpoints.believed(work, measured_checkpoints.of(seen, work)).checkpoint
    assert measured_checkpoints.all_believed(seen)[work.name].checkpoint == checkpoint
    return checkpoint


def test_one_host_has_one_voice_and_three_are_needed() -> None:
    alone = [told(number, restore=1.0, took=1.0, host="liar") for number in range(50)]
    assert believed(*alone) == PROMISE
    honest = [told(60, restore=300.0), told(61, restore=320.0)]
    assert believed(*honest) == PROMISE
    found = measured_checkpoints.of(fleet([*alone, *honest]), WORK)["restore_seconds"]
    assert (found.figure, found.leases, found.hosts) == (300.0, 52, 3)
    assert believed(*alone, *honest).restore == timedelta(seconds=300)


@pytest.mark.parametrize("place", ["hosts", "leases"])
def test_many_hosts_of_one_owner_have_one_voice(place: str) -> None:
    liars = [told(number, restore=0.0, host=f"liar-{number}") for number in range(3)]
    honest = [told(60, restore=300.0), told(61, restore=320.0)]

    def heard(*found: GuardFigures) -> tuple[float, int, int, bool]:
        owned = [("vast", f"liar-{number}", "crowd") for number in range(3)]
        hosts = [HostRecord(market, host, owner) for market, host, owner in owned] if place == "hosts" else []
        leases = [builders.lease(70 + number, host_id=owned[number][1], owner_id="crowd") for number in range(3)]
        seen = msgspec.structs.replace(
            fleet(found), hosts={each.key: each for each in hosts}, leases=tuple(leases if place == "leases" else ())
        )
        figure = measured_checkpoints.of(seen, WORK)["restore_seconds"]
        by_name = measured_checkpoints.all_believed(seen)["train"].checkpoint.restore
        assert (by_name != PROMISE.restore) is figure.is_believed
        return figure.figure, figure.hosts, figure.voices, figure.is_believed

    assert heard(*liars) == (0.0, 3, 1, False)
    assert heard(*liars, *honest) == (300.0, 5, 3, True)
    assert heard(*liars, replace(honest[0], host_id="crowd"))[1:] == (4, 2, False)
    # Owners of other markets with the same id are others.
    assert heard(*(replace(each, market="runpod") for each in liars)) == (0.0, 3, 3, True)


@given(st.lists(st.floats(1200, 1e9), min_size=3, max_size=5))
def test_a_restore_longer_than_the_files_changes_no_byte_of_a_plan(claims: list[float]) -> None:
    lies = [told(number, restore=claim) for number, claim in enumerate(claims)]
    made, honest = (plan.plan(fleet(found), TUNED, Limits()) for found in (lies, []))
    assert made == honest


@given(st.floats(0, 1200), st.floats(0, 1200), st.floats(0.01, 2), st.floats(0.5, 0.999))
def test_a_shorter_restore_never_makes_a_dearer_way_the_better_one(
    one: float, two: float, loss_rate: float, reliability: float
) -> None:
    offer = builders.offer(1, reliability=reliability)
    ways = [
        useful_hour.Way(Tenure.INTERRUPTIBLE, builders.per_hour("0.20"), 1.0),
        useful_hour.Way(Tenure.INTERRUPTIBLE, builders.per_hour("0.24"), 0.5),
        useful_hour.Way(Tenure.ON_DEMAND, builders.per_hour("0.40")),
    ]

    def best(restore: float) -> int:
        work = replace(WORK, checkpoint=replace(PROMISE, restore=timedelta(seconds=restore)))
        reckon = useful_hour.stay_cost(offer, work, None, loss_rate)
        return min(ways, key=lambda way: reckon(way).per_useful).rate.micros

    assert best(min(one, two)) <= best(max(one, two))


def moves(cents: int, claims: Sequence[GuardFigures]) -> bool:
    """Return whether a healthy on-demand lease at $0.40 is left for a bid of about so many cents."""
    work = replace(WORK, checkpoint=replace(PROMISE, restore=timedelta(hours=1)))
    since, dear = builders.ago(hours=20), builders.per_hour("0.40")
    held = builders.lease(9, host_id="h9", tenure=Tenure.ON_DEMAND, gpu_rate=dear, state_since=since, run_since=since)
    row = builders.instance(9, host_id="h9", tenure=Tenure.ON_DEMAND, gpu_rate=dear)
    offers = [builders.offer(number, floor=builders.per_hour(f"0.{cents:02}"), ask=dear) for number in range(1, 4)]
    market = builders.view(offers=offers, instances=(row,))
    seen = msgspec.structs.replace(fleet(claims, work), leases=(held,), markets={"vast": market})
    (decision,) = plan.plan(seen, TUNED, Limits()).decisions
    return isinstance(decision, Rent)


def test_a_shorter_restore_that_hosts_claim_brings_about_no_voluntary_move() -> None:
    lies = [told(number, restore=0.0) for number in range(3)]
    honest = [cents for cents in range(5, 40) if moves(cents, [])]
    assert honest, "a cheap enough bid is worth a move"
    assert [cents for cents in range(5, 40) if moves(cents, lies)] == honest


@given(st.lists(st.floats(0, 1e9), min_size=3, max_size=5))
def test_the_time_of_a_checkpoint_moves_the_interval_by_a_factor_of_two_at_most(claims: list[float]) -> None:
    found = [told(number, took=claim) for number, claim in enumerate(claims)]
    takes = believed(*found).takes
    assert takes is not None
    assert timedelta(seconds=15) <= takes <= timedelta(seconds=240)
    made, plain = (plan.plan(fleet(figures), TUNED, Limits()) for figures in (found, []))
    (rent,), (usual,) = made.decisions, plain.decisions
    assert isinstance(rent, Rent)
    assert isinstance(usual, Rent)
    assert rent.advice is not None
    assert usual.advice is not None
    assert 0.45 <= rent.advice.interval / usual.advice.interval <= 2.05
    assert (rent.bid, rent.offer, rent.rate) == (usual.bid, usual.offer, usual.rate)


def test_without_takes_in_the_file_or_without_a_guard_nothing_moves() -> None:
    found = [told(number, took=5.0, restore=5.0) for number in range(3)]
    plain = replace(WORK, checkpoint=replace(PROMISE, takes=None))
    assert believed(*found, work=plain) == replace(PROMISE, takes=None, restore=timedelta(seconds=5))
    bare = builders.workload(checkpoint=PROMISE)
    assert believed(*found, work=bare) == PROMISE


def test_a_renamed_workload_has_its_figures_of_before_and_another_has_none() -> None:
    found = [told(number, restore=30.0 + number) for number in range(3)]
    renamed, other = replace(WORK, name="fit", was="train"), replace(WORK, name="other")
    seen = msgspec.structs.replace(fleet(found), workloads=(renamed, other))
    by_name = measured_checkpoints.all_believed(seen)
    assert by_name["fit"].checkpoint.restore == timedelta(seconds=31)
    assert by_name["other"] == other


class Walked(UserDict[str, GuardFigures]):
    """Figures that count how often somebody walks over all of them."""

    walks = 0

    def values(self) -> ValuesView[GuardFigures]:
        self.walks += 1
        return super().values()


@pytest.mark.parametrize("slots", [1, 8])
def test_one_plan_walks_over_the_figures_once_however_many_slots_there_are(slots: int) -> None:
    work = replace(WORK, slots=slots)
    figures = Walked({each.lease_id: each for each in (told(number, restore=30.0) for number in range(3))})
    seen = msgspec.structs.replace(fleet([], work), guard_figures=figures)
    made = plan.plan(seen, TUNED, Limits())
    assert len(made.decisions) == slots
    assert figures.walks == 1
    explain.explain(seen, made, work)
    assert figures.walks == 2


def test_explain_shows_each_figure_with_its_observations_and_whether_it_is_used() -> None:
    seen = fleet([told(number, restore=30.0 + number, took=60.0) for number in range(3)])
    rows = explain.explanation_json(explain.explain(seen, plan.plan(seen, TUNED, Limits()), WORK))["measured"]
    assert rows == [
        {"figure": "restore_seconds", "median": 31.0, "unit": "s", "leases": 3, "hosts": 3, "is_used": True},
        {"figure": "took_seconds", "median": 60.0, "unit": "s", "leases": 3, "hosts": 3, "is_used": False},
    ]
