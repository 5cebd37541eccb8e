"""Hazards by age are found again in pools that were drawn from them, and foretell what came later; input is judged."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from agent.cli.main import app
from agent.decide.deadline.hazards import Hazards
from agent.lab.deadline import hazard_fitting, hazard_forecast
from agent.lab.deadline.hazard_fitting import Sight

GAP = 1 / 6
TRUE = Hazards((0.0, 1.0), (1.0, 0.1), (2.0, 0.5), ((0.4, 3.2), (3.2, 0.4)), (0.5, 0.5))


def drawn(days: int, seed: int) -> Sight:
    """Return a pool whose model is drawn every two days."""
    lots = np.random.default_rng(seed)
    is_up, age, looks = True, 1.0, []
    for _ in range(days // 2):
        model = lots.integers(2)
        for _ in range(round(48 / GAP)):
            looks.append(is_up)
            rate = (TRUE.loss_rates if is_up else TRUE.return_rates)[TRUE.bin(age), model]
            has_ended = bool(lots.random() < -np.expm1(-rate * GAP))
            is_up, age = is_up is not has_ended, 0.0 if has_ended else age + GAP
    return Sight(np.array(looks), GAP)


POOLS = [drawn(10, seed) for seed in range(12)]


def test_hazards_are_found_again_and_foretell_later_days_as_often_as_they_come() -> None:
    made = hazard_forecast.fitted(POOLS)
    assert made.known.losses[0] > 3 * made.known.losses[-1]
    assert made.known.returns[0] > 2 * made.known.returns[-1]
    assert made.later.per_day > made.alone.per_day + 0.5
    assert sum(made.later.expected) == pytest.approx(sum(made.later.seen), rel=0.15)


def test_equal_pools_give_equal_hazards() -> None:
    assert hazard_fitting.fit(POOLS[:3]) == hazard_fitting.fit(POOLS[:3])


def test_pools_that_never_change_tell_no_hazards() -> None:
    with pytest.raises(ValueError, match="no change"):
        hazard_forecast.fitted([Sight(np.ones(500, dtype=bool), GAP)])


def test_the_command_prints_hazards_of_so_many_instances_at_once(tmp_path: Path) -> None:
    for number, pool in enumerate(POOLS[:2]):
        row = {"gap_seconds": 600, "start": "2026-01-01T00:00:00Z", "pool": f"zone{number}"}
        row |= {"on_demand_price": 3.0, "spot_price": 1.0, "available": [1 + 3 * int(each) for each in pool.is_up]}
        (tmp_path / f"{number}.json").write_text(json.dumps(row))
    ran = CliRunner().invoke(app, ["lab", "fit", str(tmp_path), "--instances", "4", "--json"])
    assert ran.exit_code == 1, "of single instances there are always some, and the laws know no more"
    told = hazard_fitting.sights([tmp_path], 4)
    assert [sight.is_up.mean() for sight in told] == [pool.is_up.mean() for pool in POOLS[:2]]
    for file in tmp_path.glob("*.json"):
        row = json.loads(file.read_text())
        file.write_text(json.dumps(row | {"available": [max(each - 1, 0) for each in row["available"]]}))
    ran = CliRunner().invoke(app, ["lab", "fit", str(tmp_path), "--instances", "9", "--json"])
    hazards = json.loads(ran.stdout)["hazards"]
    assert hazards["pools"] == 2
    assert len(hazards["losses"]) == len(hazards["returns"]) == len(hazards["ages"]) == len(hazard_fitting.EDGES)
    assert sum(hazards["later_half"]["ends"]["away"]["seen"]) > 0
    printed = CliRunner().invoke(app, ["lab", "fit", str(tmp_path), "--toml"]).stdout
    assert "[hazards]" in printed
