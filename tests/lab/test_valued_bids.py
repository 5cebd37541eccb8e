"""The bench of bids by net value: what an hour is worth is a share of what it costs on demand on the same day."""

import pytest

from agent.lab.bids.valued_problem import ValuedProblem

HOURS = 2.0


def test_on_demand_earns_what_its_hours_are_worth_over_their_price() -> None:
    problem = ValuedProblem(("calm",), (501, 502), (1.0, 3.0), HOURS)
    at_cost, above = problem.parts()
    for case in at_cost.cases():
        earned, more = (each.score("on_demand", case).figures for each in (at_cost, above))
        assert earned["net $"] == pytest.approx(0.0, abs=1e-9)
        assert more["net $"] == pytest.approx(2 * earned["$"])
        assert earned["useful h"] + earned["idle h"] == pytest.approx(HOURS)


def test_ours_know_the_value_and_no_rule_earns_more_than_the_bound() -> None:
    problem = ValuedProblem(("calm",), (501,), (0.5, 2.0), HOURS)
    for part in problem.parts():
        (case,) = part.cases()
        least = part.score("hindsight", case).cost
        assert all(part.score(name, case).cost >= least - 1e-9 for name in ("patient", "hedged", "floor_relaunch"))
