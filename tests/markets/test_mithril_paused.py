import pytest

from agent.domain.market.instance import InstanceState
from agent.markets.mithril import states

PAUSED = InstanceState.PAUSED
STOPPED = ("Paused", "STATUS_PAUSED")


def told(*looks: tuple[str, str]) -> InstanceState | None:
    """Return the state of a bid after looks at its word and its machine's."""
    paused = states.PausedBids()
    for bid_word, machine_word in looks:
        standing = states.standing(bid_word, machine_word, was_allocated=True)
        standing = paused.settled("bid_1", bid_word, machine_word, standing)
    return standing.state if standing is not None and not standing.may_bill else None


@pytest.mark.parametrize(
    "words", [("Allocated", "STATUS_PAUSED"), ("?", "STATUS_PAUSED"), ("Paused", "STATUS_NEW"), ("Paused", "?")]
)
def test_one_word_does_not_deny_that_a_bid_is_paused(words: tuple[str, str]) -> None:
    """`Allocated`, told for an hour of a paused bid, had it paused again in each cycle."""
    assert told(STOPPED, words, words) is PAUSED
    assert told(words) is None, "nobody saw it paused"
    assert told(STOPPED, ("Allocated", "STATUS_RUNNING"), words) is None, "it ran since"


@pytest.mark.parametrize("words", [("Allocated", "STATUS_NEW"), ("Paused", "STATUS_RUNNING")])
def test_a_machine_that_begins_or_runs_denies_that_a_bid_is_paused(words: tuple[str, str]) -> None:
    assert told(STOPPED, words) is None


def test_a_bid_whose_start_was_ordered_may_be_allocated_before_its_machine_is_listed() -> None:
    paused = states.PausedBids()
    paused.settled("bid_1", *STOPPED, states.standing(*STOPPED, was_allocated=True))
    paused.forget("bid_1")
    found = states.standing("Allocated", "STATUS_PAUSED", was_allocated=True)
    assert paused.settled("bid_1", "Allocated", "STATUS_PAUSED", found) == found
