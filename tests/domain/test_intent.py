"""An intent: its allowed changes of state, and the kinds that can raise our spend."""

import pytest

from agent.domain.record.intent import ALLOWED, OPEN, IntentKind, IntentState
from tests.support import builders


@pytest.mark.parametrize("kind", list(IntentKind))
def test_only_rent_rebid_and_resume_pay(kind: IntentKind) -> None:
    free = {IntentKind.PAUSE, IntentKind.RELEASE, IntentKind.REGISTER_KEY, IntentKind.REASSIGN}
    assert kind.is_paying is (kind not in free)
    assert kind.begins_work is (kind.is_paying or kind is IntentKind.REASSIGN)


@pytest.mark.parametrize("state", list(IntentState))
def test_an_intent_is_open_while_the_market_may_act_on_it(state: IntentState) -> None:
    assert builders.intent(state=state).is_open is (state in OPEN)
    assert ALLOWED[state] <= {IntentState.IN_DOUBT} or state in OPEN


def test_nothing_becomes_sent_twice() -> None:
    assert [state for state in IntentState if IntentState.SENT in ALLOWED[state]] == [IntentState.RECORDED]


def test_doubt_is_never_taken_for_a_refusal() -> None:
    assert ALLOWED[IntentState.IN_DOUBT] == {IntentState.CONFIRMED, IntentState.VOID}


def test_what_was_sent_is_never_void_without_doubt() -> None:
    assert IntentState.VOID not in ALLOWED[IntentState.SENT]


def test_only_what_an_answer_said_is_ever_doubted_again() -> None:
    """A reply that named somebody else's instance opens the doubt anew; nothing else that is resolved opens."""
    opened = {state for state in IntentState if state not in OPEN and ALLOWED[state]}
    assert opened == {IntentState.CONFIRMED, IntentState.REJECTED}


def test_no_path_leads_back_to_a_request() -> None:
    found: set[IntentState] = {IntentState.SENT}
    while following := set().union(*(ALLOWED[state] for state in found)) - found:
        found |= following
    assert IntentState.RECORDED not in found
    assert all(IntentState.SENT not in ALLOWED[state] for state in found)
