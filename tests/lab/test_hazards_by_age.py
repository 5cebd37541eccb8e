"""The table of losses by age: what is counted where, and that the documented command prints it."""

from pathlib import Path

import numpy as np
import pytest

from agent.decide.deadline.regimes import Regimes
from agent.lab.deadline.hazard_fitting import Sight
from tests.lab import hazards_by_age
from tests.lab.test_cross_validate import write

ONE = Regimes(hazards=((0.8, 0.2, 1.0, 1.0),), shares=(1.0,))


def test_a_loss_counts_at_the_age_of_its_spell() -> None:
    looks = np.array([False, True, True, True, False, True, True, False])
    seen, expected, hours = hazards_by_age.counted(ONE, [Sight(looks, 0.25)])
    assert seen.tolist() == [1, 1, 0, 0, 0, 0, 0], "half an hour, and a quarter"
    assert hours.tolist() == [1.0, 0.25, 0, 0, 0, 0, 0]
    assert expected == pytest.approx(0.8 * hours + np.where(np.array(hazards_by_age.SINCE) > 0, -0.6 * hours, 0.0))


def test_it_prints_the_table_over_all_records(tmp_path: Path) -> None:
    for number, name in enumerate(("one", "two")):
        write(tmp_path / name, "zone-a", 1.0 + 2 * number, seed=number)
    rows = hazards_by_age.lines(hazards_by_age.of_records(tmp_path))
    assert [row.split(" | ")[0] for row in rows] == ["| hours since capacity came", "| expected", "| seen"]
    assert {row.count("|") for row in rows} == {len(hazards_by_age.SINCE) + 2}
