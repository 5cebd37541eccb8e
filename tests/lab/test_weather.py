"""Regimes are found again in pools that were drawn from them, and foretell what came later; input is judged."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from agent.cli.main import app
from agent.decide.deadline.regimes import DOWN, UP, Regimes
from agent.lab.deadline.hazard_fitting import Sight
from agent.lab.pools import regime_fitting

GAP = 1 / 6
TRUE = Regimes(((0.2, 0.05, 3.0, 3.0), (3.0, 3.0, 0.3, 0.1)), (0.5, 0.5))


def drawn(days: int, seed: int) -> Sight:
    """Return a pool whose regime is drawn every day."""
    lots = np.random.default_rng(seed)
    is_up, age, looks = True, 1.0, []
    for _ in range(days):
        hazards = TRUE.hazards[lots.integers(2)]
        for _ in range(round(24 / GAP)):
            looks.append(is_up)
            ends = hazards[(UP if is_up else DOWN) + (age >= TRUE.young_hours)] * GAP
            has_ended = bool(lots.random() < min(ends, 0.9))
            is_up, age = is_up is not has_ended, 0.0 if has_ended else age + GAP
    return Sight(np.array(looks), GAP)


POOLS = [drawn(10, seed) for seed in range(12)]


def test_regimes_are_found_again_and_foretell_later_days_as_often_as_they_come() -> None:
    made = regime_fitting.fitted(POOLS, 2)
    better = min(made.known.hazards, key=lambda each: each[UP + 1])
    assert better[UP + 1] == pytest.approx(0.05, rel=0.5)
    assert better[DOWN] == pytest.approx(3.0, rel=0.4)
    assert made.known.shares[0] == pytest.approx(0.5, abs=0.2)
    assert made.later.per_day > made.alone.per_day + 0.5
    assert sum(made.later.expected) == pytest.approx(sum(made.later.seen), rel=0.15)


def test_equal_pools_give_equal_regimes() -> None:
    assert regime_fitting.fit(POOLS[:3]) == regime_fitting.fit(POOLS[:3])


def test_pools_that_never_change_tell_no_regimes() -> None:
    with pytest.raises(ValueError, match="no change"):
        regime_fitting.fit([Sight(np.ones(500, dtype=bool), GAP)])


def test_the_command_prints_regimes_of_so_many_instances_at_once(tmp_path: Path) -> None:
    for number, pool in enumerate(POOLS[:2]):
        row = {"gap_seconds": 600, "start": "2026-01-01T00:00:00Z", "pool": f"zone{number}"}
        row |= {"on_demand_price": 3.0, "spot_price": 1.0, "available": [1 + 3 * int(each) for each in pool.is_up]}
        (tmp_path / f"{number}.json").write_text(json.dumps(row))
    ran = CliRunner().invoke(app, ["lab", "fit", str(tmp_path), "--instances", "4", "--json"])
    assert ran.exit_code == 1, "of single instances there are always some, and the laws know no more"
    told = regime_fitting.sights([tmp_path], 4)
    assert [sight.is_up.mean() for sight in told] == [pool.is_up.mean() for pool in POOLS[:2]]
    for file in tmp_path.glob("*.json"):
        row = json.loads(file.read_text())
        file.write_text(json.dumps(row | {"available": [max(each - 1, 0) for each in row["available"]]}))
    ran = CliRunner().invoke(app, ["lab", "fit", str(tmp_path), "--instances", "9", "--json"])
    regimes = json.loads(ran.stdout)["regimes"]
    assert regimes["pools"] == 2
    assert len(regimes["hazards"]) == len(regimes["shares"]) == regime_fitting.COUNT
    assert regimes["later_half"]["ends"]["old, away"]["seen"] > 0
    printed = CliRunner().invoke(app, ["lab", "fit", str(tmp_path), "--toml"]).stdout
    assert "[regimes]" in printed
