"""Survival by hand, and spells whose beginning or end nobody saw."""

import numpy as np
import pytest

from agent.lab.traces import survival
from agent.lab.traces.survival import Spell


def test_spells_are_counted_from_a_seen_beginning_and_censored_at_the_end() -> None:
    is_up = np.array([True, True, False, True, True, True, False, False, True])
    assert survival.spells(is_up, 0.5, of_capacity=True) == [Spell(1.5, True), Spell(0.5, False)]
    assert survival.spells(is_up, 0.5, of_capacity=False) == [Spell(0.5, True), Spell(1.0, True)]
    assert survival.spells(np.array([True, True]), 1.0, of_capacity=True) == []


def test_kaplan_and_meier_by_hand() -> None:
    # At 1 h one of four ends; one is censored at 2 h; at 3 h one of the two left ends.
    seen = survival.kaplan_meier([Spell(1, True), Spell(2, False), Spell(3, True), Spell(4, False)])
    assert seen.ages.tolist() == [0, 1, 3]
    assert seen.shares.tolist() == pytest.approx([1, 0.75, 0.375])
    # Greenwood at 1 h: 0.75 * sqrt(1 / (4 * 3)) * 1.96.
    assert seen.shares[1] - seen.low[1] == pytest.approx(1.96 * 0.75 * (1 / 12) ** 0.5)
    assert survival.at(seen, [0.5, 1.0, 2.9, 9]).tolist() == pytest.approx([1, 0.75, 0.75, 0.375])


def test_no_spell_is_an_error() -> None:
    with pytest.raises(ValueError, match="no spell"):
        survival.kaplan_meier([])
