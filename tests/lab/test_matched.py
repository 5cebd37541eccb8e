"""Ours held to a published rule's availability: the cheapest mixture of dials, chosen on other days, by hand."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from agent.cli.main import app
from agent.lab.availability import availability_problem, equal_availability, span
from agent.lab.bench import comparison


def day(begins_hours: float, group: str = "g") -> span.Span:
    return span.Span(
        group, int(begins_hours), ("a", "b"), np.ones((2, 4), int), np.ones((2, 4)), 3.0, 30.0, 1, begins_hours
    )


def scored(*values: tuple[float, float]) -> list[comparison.Score]:
    return [comparison.Score(cost, figures={"availability": often, "share": cost / 10}) for cost, often in values]


@pytest.mark.parametrize(
    ("availability", "expected"),
    [
        (0.25, equal_availability.Lot(equal_availability.OFF, "low", 0.5)),
        (0.5, equal_availability.Lot(equal_availability.OFF, "low", 1.0)),
        (0.75, equal_availability.Lot("low", "high", 0.5)),
        (1.0, equal_availability.Lot("high", "high", 1.0)),
        (0.0, equal_availability.Lot(equal_availability.OFF, "low", 0.0)),
    ],
)
def test_the_cheapest_mixture_leaves_out_what_a_mixture_of_others_beats(
    availability: float, expected: equal_availability.Lot
) -> None:
    dials = [
        equal_availability.Dial("high", 6.0, 1.0 - 1e-12),
        equal_availability.Dial("low", 2.0, 0.5),
        equal_availability.Dial("dear", 5.0, 0.75),
    ]
    found = equal_availability.lot(dials, availability)
    assert (found.first, found.second) == (expected.first, expected.second)
    assert found.chance == pytest.approx(expected.chance)


points = st.lists(st.tuples(st.floats(0.1, 9.0), st.floats(0.01, 1.0)), min_size=1, max_size=6)


@given(points, st.floats(0.0, 1.0))
def test_a_mixture_reaches_the_availability_at_no_more_than_any_dial_that_does(
    found: list[tuple[float, float]], availability: float
) -> None:
    dials = {str(place): equal_availability.Dial(str(place), *each) for place, each in enumerate(found)}
    dials[equal_availability.OFF] = equal_availability.Dial(equal_availability.OFF, 0.0, 0.0)
    lot = equal_availability.lot(list(dials.values()), availability)
    first, second = dials[lot.first], dials[lot.second]
    often = (1 - lot.chance) * first.availability + lot.chance * second.availability
    dollars = (1 - lot.chance) * first.dollars + lot.chance * second.dollars
    assert often >= min(availability, max(each.availability for each in dials.values())) - 1e-9
    enough = [each.dollars for each in dials.values() if each.availability >= availability]
    assert not enough or dollars <= min(enough) + 1e-9


def test_the_target_is_reached_by_the_cheapest_dial_that_did_on_other_days() -> None:
    days = [day(0), day(96)]
    dials = {"low": scored((1.0, 0.5), (1.0, 0.8)), "high": scored((3.0, 0.9), (3.0, 0.9))}
    worths = {"low": 1.0, "high": 20.0}
    theirs = scored((9, 0.5), (9, 0.5))
    made = equal_availability.at_target(days, 24.0, dials, worths, theirs, 0.7)
    assert [(score.cost, score.figures["short_worth"], score.is_late) for score in made] == [
        (1.0, 1.0, True),
        (3.0, 20.0, False),
    ]
    made = equal_availability.at_target(days, 24.0, dials, worths, theirs, 0.99)
    assert [score.figures["short_worth"] for score in made] == [20.0, 20.0]


def test_a_dial_is_chosen_on_other_stretches_and_scored_on_its_own_day() -> None:
    days = [day(0), day(24), day(96), day(120), day(96, "h")]
    assert equal_availability.others(days, 24.0) == [(2, 3, 4), (2, 3, 4), (0, 1), (0, 1), (0, 1)]
    low, high = scored(*[(1.0, 0.5)] * 5), scored(*[(3.0, 0.9)] * 5)
    theirs = scored((9, 0.5), (9, 0.5), (9, 0.9), (9, 0.9), (9, 0.9))
    made = equal_availability.scores(days, 24.0, {"low": low, "high": high}, theirs, 0.8)
    assert [score.cost for score in made] == pytest.approx([3.0, 3.0, 1.0, 1.0, 1.0])
    assert [score.figures["lead"] for score in made] == pytest.approx([0.4, 0.4, -0.4, -0.4, -0.4])
    assert [score.is_late for score in made] == [False, False, True, True, True]


def test_within_one_stretch_other_days_serve_and_a_single_day_does_not() -> None:
    assert equal_availability.others([day(0), day(24), day(48)], 24.0) == [(1, 2), (0, 2), (0, 1)]
    assert equal_availability.others([day(0), day(12)], 24.0) == [(), ()]


def folder(tmp_path: Path) -> Path:
    for number in range(2):
        up = [int((tick * (number + 3)) % 41 < 29) for tick in range(72)]
        row = {"pool": f"us-east-1{'ab'[number]}", "gap_seconds": 600, "start": "2026-01-01", "available": up}
        (tmp_path / f"{number}.json").write_text(json.dumps(row | {"spot_price": 1.0, "on_demand_price": 3.0}))
    return tmp_path


def test_without_other_days_nothing_is_matched(tmp_path: Path) -> None:
    alone, several = (availability_problem.AvailabilityProblem(folder(tmp_path), 4, stride) for stride in (12, 4))
    assert not set(availability_problem.MATCHED) & set(alone.strategies())
    assert set(availability_problem.MATCHED) <= set(several.strategies())
    with pytest.raises(comparison.NotComparable, match="gpubid lab bench"):
        several.score("hedged_as_spothedge_1", several.cases()[0])


@pytest.mark.nightly
def test_one_command_shows_ours_at_the_availability_of_each_published_rule(tmp_path: Path) -> None:
    words = ["lab", "bench", "--problem", "availability", "--traces", str(folder(tmp_path)), "--workers", "1"]
    words += ["--window-hours", "4", "--stride-hours", "4"]
    result = CliRunner().invoke(app, [*words, "--strategies", "hedged_as_spothedge_1,hedged_at_target", "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert [row["against"] for row in told["strategies"]] == ["spothedge_1", "spothedge_1"]
    # The strategy of the comparison runs on the same days, though nobody named it.
    built = availability_problem.AvailabilityProblem(tmp_path, 4, 4)
    theirs = [built.score("spothedge_1", case) for case in built.cases()]
    assert 0.1 <= told["strategies"][1]["figures"]["short_worth"] <= 64
    row = told["strategies"][0]
    mean = sum(score.cost for score in theirs) / len(theirs)
    assert row["difference_vs_baseline"] == pytest.approx(row["mean_cost"] - mean)
    often = sum(score.figures["availability"] for score in theirs) / len(theirs)
    assert row["figures"]["lead"] == pytest.approx(row["figures"]["availability"] - often)
    result = CliRunner().invoke(app, [*words, "--strategies", "hedged_as_spothedge_1,on_demand"])
    assert "(less spothedge_1)" in result.output.replace("\n", "")
