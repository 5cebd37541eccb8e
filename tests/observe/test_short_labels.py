"""Labels without a workload: the ledger's intent names it, and nothing else does."""

from agent.observe import short_labels
from tests.support import builders

PLACE = builders.slot("", 0)


def test_the_intent_names_the_workload_in_the_listing_and_in_the_look() -> None:
    short, whole = builders.label(1, place=PLACE), builders.label(1)
    view = builders.view(labels={"7": short, "8": builders.label(2)}, looks={"7": short, "9": None})
    named = short_labels.completed(view, {"0000000000000001": builders.intent(1)})
    assert named.labels == {"7": whole, "8": builders.label(2)}
    assert named.looks == {"7": whole, "9": None}


def test_an_unknown_intent_or_another_index_names_nothing() -> None:
    view = builders.view(labels={"7": builders.label(1, place=PLACE), "8": builders.label(2, place=PLACE)})
    other = builders.intent(2, slot=builders.slot("train", 3))
    assert short_labels.completed(view, {other.intent_id: other}) is view
