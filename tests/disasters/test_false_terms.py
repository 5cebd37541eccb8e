"""A disk's price, an end date or traffic that two listings tell wrong: nothing counts, and nothing is moved."""

from unittest import mock

import pytest

from agent.decide.reconcile import doubted_terms
from tests.disasters import play
from tests.disasters.story import Story, Strike, Work

WORKS = (Work("w0", "service", "ondemand", 1),)
STORAGE, DOWN, END = 1, 2, 4
"""Places in `lies._TERMS`."""


def told(term: int) -> Story:
    """Return a quiet story with two listings that tell a term wrong."""
    return Story(7, ("vast",), WORKS, 60.0, 0.0, 0, strikes=(Strike("vast", "listing", 40, "term", 2, float(term)),))


@pytest.mark.parametrize("term", [DOWN, END])
def test_a_false_term_ends_and_counts_nothing(term: int) -> None:
    """`tests/rules/test_rule_21_other_terms.py` fails if one is believed; the judge's bounds are wider."""
    assert play.play(told(term)).broken is None


def test_a_disk_price_that_was_believed_at_once_is_found() -> None:
    assert play.play(told(STORAGE)).broken is None
    with mock.patch.object(doubted_terms, "_changes", return_value=()):
        broken = play.play(told(STORAGE)).broken
    assert broken is not None
    assert broken.point == 4
