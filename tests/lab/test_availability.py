"""The problem `availability`: its semantics by hand, its bound, and that no rule sees the future."""

import dataclasses
import json
import os
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from agent.cli.main import app
from agent.lab.availability import (
    availability_baselines,
    availability_problem,
    availability_ticks,
    bound,
    own_rule,
    span,
)
from agent.lab.bench import comparison
from agent.lab.traces import trace_files
from strategies.hedged_rules.params import HedgedParams

ONE = span.Setting(slots=1)
THREE = span.Setting(slots=3)


def a_span(capacity: list[list[int]], prices: list[float], on_demand: float = 6.0, cold: int = 2) -> span.Span:
    """A span of steps of an hour, so that a dollar an hour is a dollar a step."""
    return span.Span(
        group="g",
        first=0,
        pools=tuple(f"p{place}" for place in range(len(capacity))),
        capacity=np.array(capacity),
        prices=np.repeat(np.array(prices)[:, None], len(capacity[0]), axis=1),
        on_demand_price=on_demand,
        step_seconds=3600.0,
        cold_steps=cold,
        begins_hours=0.0,
    )


HAND = a_span([[1] * 5 + [0] * 5, [1] * 10], [1.0, 2.0])
"""Pool 0 at 1 $/h is lost at step 5, pool 1 at 2 $/h is always there; steps 0 and 1 are not judged."""


@pytest.mark.parametrize(
    ("rule", "dollars", "met", "losses"),
    [
        # Eight judged steps at 6 $.
        ("on_demand", 48.0, 8, 0),
        # Pool 0 at steps 2 to 4.
        ("static_spread", 3.0, 3, 1),
        # The same, then a start in pool 1 at step 6 which is warm at 8 and 9.
        ("round_robin", 11.0, 5, 1),
        # On demand beside pool 0 at step 2 (7), then 1 and 1; lost at 5 (0); pool 1 and on demand at 6, 7, 8 (8 each);
        # pool 1 alone at 9 (2).
        ("spothedge_0", 35.0, 5, 1),
        # Both pools and on demand at 2 (9), both at 3 and 4 (3 each); pool 1 alone at 5 (2). Pool 0 is out: a second in
        # pool 1, which has no more, so it is out too and both come back; on demand (2 + 6) from 6 to 9.
        ("spothedge_1", 49.0, 8, 1),
    ],
)
def test_a_day_worked_out_by_hand(rule: str, dollars: float, met: int, losses: int) -> None:
    lived = availability_ticks.run(availability_baselines.RULES[rule], HAND, ONE)
    assert lived.dollars == pytest.approx(dollars)
    assert lived.availability == pytest.approx(met / 8)
    assert lived.losses == losses


def test_the_bound_of_a_calm_day_is_its_cheapest_pool() -> None:
    calm = a_span([[9] * 10, [9] * 10], [2.0, 1.0])
    assert bound.cost(calm, THREE, 1.0) == pytest.approx(3 * 8 * 1.0)
    assert bound.cost(calm, THREE, 0.5) == pytest.approx(3 * 4 * 1.0)


def test_the_bound_pays_on_demand_where_nothing_else_is() -> None:
    assert bound.cost(a_span([[0] * 10, [0] * 10], [1.0, 1.0]), THREE, 1.0) == pytest.approx(3 * 8 * 6.0)


def test_a_start_costs_before_it_is_warm_in_the_bound_too() -> None:
    # Pool 1 must be held through steps 4 and 5, while pool 0 still serves, to be warm at step 6.
    turn = a_span([[1] * 6 + [0] * 4, [1] * 10], [1.0, 2.0])
    assert bound.cost(turn, ONE, 1.0) == pytest.approx(4 * 1.0 + 2 * 2.0 + 4 * 2.0)


spans = st.builds(
    lambda rows, prices, cold: a_span([[*row] for row in rows], prices, cold=cold),
    st.lists(st.lists(st.integers(0, 3), min_size=24, max_size=24), min_size=2, max_size=2),
    st.lists(st.floats(0.5, 4.0), min_size=2, max_size=2),
    st.integers(1, 4),
)


RULES: dict[str, availability_ticks.Maker] = {
    **availability_baselines.RULES,
    "hedged": partial(own_rule.Hedged, worth=13.0),
    "hedged_0.5": partial(own_rule.Hedged, worth=0.5),
}


@settings(max_examples=12, deadline=None)
@given(spans)
def test_no_rule_is_cheaper_than_the_bound_of_the_availability_it_reaches(day: span.Span) -> None:
    for name, rule in RULES.items():
        lived = availability_ticks.run(rule, day, THREE)
        assert lived.dollars >= bound.cost(day, THREE, lived.availability) - 1e-6, name


@settings(max_examples=40, deadline=None)
@given(spans, st.integers(0, 23), st.randoms(use_true_random=False))
def test_no_rule_sees_what_is_to_come(day: span.Span, turn: int, lots: Any) -> None:
    other = day.capacity.copy()
    other[:, turn:] = [[lots.randint(0, 3) for _ in range(day.steps - turn)] for _ in day.pools]
    changed = dataclasses.replace(day, capacity=other)
    for name, rule in RULES.items():
        first: list[availability_ticks.Choice] = []
        second: list[availability_ticks.Choice] = []
        availability_ticks.run(rule, day, THREE, watch=first.append)
        availability_ticks.run(rule, changed, THREE, watch=second.append)
        assert first[: turn + 1] == second[: turn + 1], name


# --- ours ------------------------------------------------------------------------------------------------------------
def test_on_demand_is_given_up_as_soon_as_what_was_asked_for_is_granted() -> None:
    day = a_span([[9] * 12, [9] * 12], [1.0, 2.0])
    seen: list[availability_ticks.Choice] = []
    lived = availability_ticks.run(partial(own_rule.Hedged, worth=1.0), day, THREE, watch=seen.append)
    assert seen[0] == availability_ticks.Choice((3, 0), 3)
    assert set(seen[1:]) == {availability_ticks.Choice((3, 0), 0)}
    assert lived.availability == 1.0
    assert lived.dollars == pytest.approx(10 * 3.0)


def test_a_lost_pool_is_replaced_by_another_and_tried_again_only_after_it() -> None:
    day = a_span([[9] * 4 + [0] * 10, [9] * 14], [1.0, 1.5], on_demand=5.0)
    seen: list[availability_ticks.Choice] = []
    availability_ticks.run(partial(own_rule.Hedged, worth=1.0), day, THREE, watch=seen.append)
    assert [made.spots for made in seen[:6]] == [(3, 0)] * 5 + [(0, 3)]


def test_what_is_warm_is_kept_until_what_replaces_it_is() -> None:
    prices = np.array([[1.0] * 4 + [4.0] * 10, [1.5] * 14])
    day = dataclasses.replace(a_span([[9] * 14, [9] * 14], [1.0, 1.5]), prices=prices, step_seconds=36.0)
    seen: list[availability_ticks.Choice] = []
    lived = availability_ticks.run(partial(own_rule.Hedged, worth=1.0), day, THREE, watch=seen.append)
    turn = next(index for index, made in enumerate(seen) if made.spots == (3, 3))
    # Two steps cold, and at the next the rule sees that it is warm.
    assert [made.spots for made in seen[turn : turn + 4]] == [(3, 3), (3, 3), (3, 3), (0, 3)]
    assert lived.availability == 1.0


# --- spans cut from a folder -----------------------------------------------------------------------------------------
def folder(path: Path) -> Path:
    for number, zone in enumerate(("us-east-1a_v100_1", "us-east-1b_v100_1", "europe-west4-c")):
        row = {
            "gap_seconds": 195,
            "start": "2026-01-01T00:00:00Z",
            "pool": zone,
            "spot_price": 1.0 + number,
            "available": [int((tick // (5 + number)) % 3 > 0) for tick in range(900)],
        }
        (path / f"{zone}.json").write_text(json.dumps(row))
    return path


def test_regions_with_two_pools_and_all_pools_are_groups(tmp_path: Path) -> None:
    found = trace_files.folder(folder(tmp_path))
    assert [(name, len(rows)) for name, rows in span.groups(found)] == [("us-east-1_v100_1", 2), ("all", 3)]


@pytest.mark.parametrize(
    ("pool", "region"),
    [("us-east-1a_v100_1", "us-east-1_v100_1"), ("us-central1-a", "us-central1"), ("here", "here")],
)
def test_a_region_is_the_name_without_the_letter_of_the_zone(pool: str, region: str) -> None:
    assert span.region(pool) == region


def test_a_span_is_cut_into_looks_of_about_half_a_minute(tmp_path: Path) -> None:
    first = next(span.cut(trace_files.folder(folder(tmp_path)), 12, 12, span.Setting()))
    assert (first.step_seconds, first.cold_steps, first.steps) == (32.5, 4, 221 * 6)
    assert first.on_demand_price == pytest.approx(3 * 1.5)
    assert set(first.capacity.ravel().tolist()) == {0, span.ANY_NUMBER}
    bounded = next(span.cut(trace_files.folder(tmp_path), 12, 12, span.Setting(most_in_pool=2, spot_price=0.5)))
    assert set(bounded.capacity.ravel().tolist()) == {0, 2}
    assert bounded.on_demand_price == pytest.approx(1.5)


@pytest.mark.nightly
def test_one_command_prints_the_table_with_availability(tmp_path: Path) -> None:
    words = ["lab", "bench", "--problem", "availability", "--traces", str(folder(tmp_path)), "--window-hours", "12"]
    result = CliRunner().invoke(app, [*words, "--stride-hours", "24", "--workers", "1", "--slots", "2", "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    rows = {row["strategy"]: row for row in told["strategies"]}
    assert (told["slots"], told["runs"], told["groups"]) == (2, 4, ["all", "us-east-1_v100_1"])
    assert rows["on_demand"]["figures"] == {
        "availability": 1.0,
        "share": pytest.approx(1.0),
        "on_demand_hours": pytest.approx(2 * 12, rel=0.01),
        "losses": 0.0,
    }
    assert rows["optimum"]["ratio_to_optimum"] == pytest.approx(1.0)
    assert rows["optimum_always"]["mean_cost"] >= rows["optimum"]["mean_cost"]
    assert rows["static_spread"]["late"] == told["runs"]


def test_what_cannot_be_run_is_said_and_ends_with_2(tmp_path: Path) -> None:
    row = {"gap_seconds": 600, "start": "2026-01-01", "pool": "a", "available": [1] * 200}
    (tmp_path / "a.json").write_text(json.dumps(row))
    words = ["lab", "bench", "--problem", "availability", "--traces", str(tmp_path), "--workers", "1"]
    result = CliRunner().invoke(app, words)
    assert (result.exit_code, "two at least" in result.stderr) == (2, True)
    (tmp_path / "b.json").write_text(json.dumps(row | {"pool": "b"}))
    result = CliRunner().invoke(app, words)
    assert (result.exit_code, "--spot-price" in result.stderr) == (2, True)


def test_ours_runs_on_the_numbers_that_are_shipped_or_given(tmp_path: Path) -> None:
    built = availability_problem.AvailabilityProblem(folder(tmp_path), 12, 12)
    assert isinstance(built, comparison.Tunable)
    assert built.params("hedged") == HedgedParams()
    assert built.params("hedged_1") == HedgedParams(short_worth=1.0)
    assert built.params("spothedge_1") is None
    given = built.with_params("hedged", HedgedParams(short_worth=1.0))
    case = built.cases()[0]
    assert given.score("hedged", case) == built.score("hedged_1", case)
    assert len(set(given.digests().values())) == len(given.digests()) - 1


def test_a_problem_that_was_asked_goes_to_other_processes(tmp_path: Path) -> None:
    built = availability_problem.AvailabilityProblem(folder(tmp_path), 12, 12)
    name, case = "hedged_1", built.cases()[0]
    assert pickle.loads(pickle.dumps(built)).score(name, case) == built.score(name, case)  # noqa: S301 - our own bytes


def test_a_case_is_of_the_problem(tmp_path: Path) -> None:
    built = availability_problem.AvailabilityProblem(folder(tmp_path), 12, 12)
    assert len({case.key for case in built.cases()}) == len(built.cases())
    assert {(case.group, case.cluster) for case in built.cases()} == {
        (group, day) for group in ("us-east-1_v100_1", "all") for day in ("0", "1")
    }


def test_longer_days_are_of_blocks_of_four(tmp_path: Path) -> None:
    built = availability_problem.AvailabilityProblem(folder(tmp_path), 30, 6)
    assert {case.cluster for case in built.cases()} == {"0"}


# --- recorded --------------------------------------------------------------------------------------------------------
RECORDED = os.environ.get("GPUBID_TRACES")


@pytest.mark.nightly
@pytest.mark.skipif(not RECORDED, reason="GPUBID_TRACES names no folder of recorded traces")
@pytest.mark.parametrize("name", ["aws-2022", "aws-2023", "gcp-h100-2025"])
def test_ours_is_cheaper_than_each_published_rule_at_its_availability(name: str) -> None:
    built = availability_problem.AvailabilityProblem(Path(RECORDED or "") / name)
    for row in comparison.run(built, list(availability_problem.MATCHED)).rows:
        assert row.against == availability_problem.MATCHED[row.strategy]
        assert row.interval[1] < 0, row.strategy
        assert row.figures["lead"] > -0.002, row.strategy


@pytest.mark.parametrize(
    ("most", "says", "capacity"),
    [
        ((1, 3), (None, None), (1, 3)),  # the record counts, so a pool that never shows two has one
        ((1, 1), (None, None), (span.ANY_NUMBER, span.ANY_NUMBER)),
        ((1, 1), (True, None), (1, span.ANY_NUMBER)),
        ((1, 3), (False, None), (span.ANY_NUMBER, 3)),
    ],
)
def test_a_record_of_counts_is_one_as_a_whole_unless_a_pool_says_otherwise(
    tmp_path: Path, most: tuple[int, int], says: tuple[bool | None, bool | None], capacity: tuple[int, int]
) -> None:
    for letter, count, does_count in zip("ab", most, says, strict=True):
        row: dict[str, Any] = {
            "gap_seconds": 600,
            "start": "2026-01-01T00:00:00Z",
            "pool": f"zone-1{letter}",
            "spot_price": 1.0,
            "available": [count] * 144,
        }
        row |= {} if does_count is None else {"counts": does_count}
        (tmp_path / f"{letter}.json").write_text(json.dumps(row))
    (cut,) = span.cut(trace_files.folder(tmp_path), 24, 24, span.Setting())
    assert tuple(cut.capacity[:, 0].tolist()) == capacity
