"""Doubt is settled by a listing or by grace; never by hope."""

from typing import Any

import pytest

from agent.decide import slots
from agent.decide.facts import Alert, Fact, IntentSettled
from agent.decide.reconcile import doubt
from agent.decide.reconcile.pass_memory import Absence, Memory
from agent.decide.strategy import Proposal
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.record.intent import Intent, IntentKind, IntentState
from agent.domain.record.lease import Lease, LeaseState
from tests.support import builders
from tests.support.expiring import in_force

OVER: dict[str, Any] = {"listed_monotonic": 1000.0 + doubt.GRACE_SECONDS, "listings": 10 + doubt.GRACE_LISTINGS}
BEGAN = Memory(doubts={"0000000000000001": Absence(1000.0, 10)})


def settled(
    intent: Intent,
    *rows: Instance,
    memory: Memory | None = None,
    leases: tuple[Lease, ...] = (),
    labels: dict[str, Any] | None = None,
    past_leases: dict[str, Lease] | None = None,
    **changes: Any,
) -> tuple[tuple[Fact, ...], dict[str, Absence]]:
    view = builders.view(instances=rows, labels=labels or {}, **changes)
    fleet = builders.fleet(intents=(intent,), leases=leases, markets={"vast": view}, past_leases=past_leases or {})
    return doubt.settle(fleet, view, memory or Memory())


def only(facts: tuple[Fact, ...], intent: Intent, outcome: str) -> IntentSettled:
    """Return the one fact, and assert whose doubt it settles and its sentence."""
    (fact,) = facts
    assert isinstance(fact, IntentSettled)
    assert (fact.intent, fact.outcome) == (intent, outcome)
    return fact


RENT = builders.intent()


def test_a_rent_is_confirmed_by_its_own_label_and_becomes_a_lease() -> None:
    facts, doubts = settled(RENT, builders.instance(7), labels={"7": builders.label()})
    fact = only(facts, RENT, "the listing shows its label")
    assert (fact.state, set(doubts)) == (IntentState.CONFIRMED, {RENT.intent_id})
    assert fact.lease is not None
    assert (fact.lease.instance_id, fact.lease.slot, fact.lease.intent_id) == ("7", RENT.slot, RENT.intent_id)


@pytest.mark.parametrize(
    "label", [builders.label(2), builders.label(fleet_id="0123456789ab")], ids=["another intent", "another fleet"]
)
def test_another_label_confirms_nothing(label: Any) -> None:
    facts, doubts = settled(RENT, builders.instance(7, label="x"), labels={"7": label})
    assert facts == ()
    assert doubts == {RENT.intent_id: Absence(1000.0, 10)}


@pytest.mark.parametrize(
    ("seconds", "listings", "is_over"),
    [(600.0, 3, True), (599.9, 30, False), (86_400.0, 2, False), (0.0, 0, False)],
)
def test_grace_is_time_and_listings(seconds: float, listings: int, is_over: bool) -> None:
    facts, doubts = settled(RENT, memory=BEGAN, listed_monotonic=1000.0 + seconds, listings=10 + listings)
    if is_over:
        fact = only(facts, RENT, "no listing showed it within the grace")
        assert (fact.state, doubts) == (IntentState.VOID, BEGAN.doubts), "found again until the ledger has it"
    else:
        assert facts == ()
        assert doubts == {RENT.intent_id: Absence(1000.0, 10)}


def test_an_unlabelled_instance_on_the_host_keeps_the_doubt_open_for_ever() -> None:
    nameless = builders.instance(7, host_id="h1", label="", created_at=builders.NOW)
    facts, doubts = settled(RENT, nameless, memory=BEGAN, **OVER)
    (fact,) = facts
    assert isinstance(fact, Alert)
    assert (fact.code, fact.key) == ("unlabelled_instance", "7")
    assert fact.sentence == (
        "instance 7 on host h1 carries no label and began after rent 0000000000000001, "
        "which stays in doubt: if it is yours, label it; if not, release it at the market"
    )
    assert RENT.intent_id in doubts


@pytest.mark.parametrize(
    ("past", "is_open"),
    [
        ({"intent_id": RENT.intent_id, "end_reason": "never_ours"}, True),
        ({"intent_id": "f" * 16, "end_reason": "never_ours"}, False),
        ({"intent_id": RENT.intent_id, "end_reason": "moved"}, False),
    ],
    ids=["named by the reply", "named by another reply", "ended by us"],
)
def test_an_instance_that_the_reply_named_keeps_the_doubt_open_whatever_its_label(
    past: dict[str, Any], *, is_open: bool
) -> None:
    """One wrong field, the label, would have the slot rented again every ten minutes, each beside the last."""
    row = builders.instance(7, host_id="h1", label="somebody's", created_at=builders.NOW)
    ended = builders.lease(7, state=LeaseState.ENDED, **past)
    facts, _ = settled(RENT, row, memory=BEGAN, past_leases={"7": ended}, **OVER)
    assert isinstance(facts[0], Alert) is is_open
    if isinstance(facts[0], Alert):
        assert "instance 7 on host h1 carries another label" in facts[0].sentence


def test_an_empty_slot_says_whether_its_rent_waits_for_a_listing_or_for_a_person() -> None:
    nameless = builders.instance(7, host_id="h1", label="", created_at=builders.NOW)
    for rows, said in [((), "until a listing settles it"), ((nameless,), "while instance 7 on its host carries no")]:
        fleet = builders.fleet(intents=(RENT,), markets={"vast": builders.view(instances=rows)})
        held = slots.view_or_proposal(fleet, RENT.slot, in_force({}))
        assert isinstance(held, Proposal)
        assert said in held.reason.sentence


@pytest.mark.parametrize(
    ("sent", "created", "may_be_ours"),
    [
        (builders.ago(seconds=60), builders.ago(seconds=60), True),
        (builders.ago(seconds=60), builders.ago(seconds=61), False),
        (None, builders.ago(seconds=120), True),
        (None, builders.ago(seconds=121), False),
    ],
    ids=str,
)
def test_what_began_before_a_rent_left_is_not_of_it(sent: Any, created: Any, may_be_ours: bool) -> None:
    """It may be ours from the instant of sending on; where that is not known, from the instant of recording."""
    rent = builders.intent(recorded_at=builders.ago(seconds=120), sent_at=sent)
    row = builders.instance(7, host_id="h1", label="", created_at=created)
    facts, _ = settled(rent, row, memory=BEGAN, **OVER)
    assert isinstance(facts[0], Alert) is may_be_ours


@pytest.mark.parametrize(
    "changes",
    [
        {"host_id": "h2"},
        {"label": "somebody's"},
        {"created_at": builders.ago(minutes=2)},
        {"created_at": None},
        {"instance_id": "1"},
    ],
    ids=str,
)
def test_what_cannot_be_ours_keeps_no_doubt_open(changes: dict[str, Any]) -> None:
    row = builders.instance(7, **{"host_id": "h1", "label": "", "created_at": builders.NOW, **changes})
    facts, _ = settled(RENT, row, memory=BEGAN, leases=(builders.lease(1, slot=builders.slot("x")),), **OVER)
    assert only(facts, RENT, "no listing showed it within the grace").state is IntentState.VOID


HELD = builders.lease()
REBID = builders.intent(kind=IntentKind.REBID, lease_id="vast-1", price=builders.per_hour("0.30"))
RESUME = builders.intent(kind=IntentKind.RESUME, lease_id="vast-1")
PAUSE = builders.intent(kind=IntentKind.PAUSE, lease_id="vast-1")
RELEASE = builders.intent(kind=IntentKind.RELEASE, lease_id="vast-1")


@pytest.mark.parametrize(
    ("intent", "row"),
    [
        (REBID, {"gpu_rate": builders.per_hour("0.30")}),
        (RESUME, {"state": InstanceState.RUNNING}),
        (RESUME, {"state": InstanceState.LOADING}),
        (RESUME, {"state": InstanceState.PENDING}),
        (RESUME, {"state": InstanceState.PAUSED, "is_wanted_running": True}),
        (PAUSE, {"state": InstanceState.PAUSED}),
    ],
    ids=str,
)
def test_the_rest_is_confirmed_by_the_instances_own_fields(intent: Intent, row: dict[str, Any]) -> None:
    facts, doubts = settled(intent, builders.instance(**row), leases=(HELD,))
    assert only(facts, intent, "the listing shows it done").state is IntentState.CONFIRMED
    assert set(doubts) == {intent.intent_id}


@pytest.mark.parametrize(
    ("intent", "row"),
    [
        (REBID, {}),
        (builders.intent(kind=IntentKind.REBID, lease_id="vast-1", price=None), {}),
        (RESUME, {"state": InstanceState.PAUSED}),
    ],
    ids=str,
)
def test_a_paying_order_that_does_not_show_is_void_only_after_grace(intent: Intent, row: dict[str, Any]) -> None:
    early, doubts = settled(intent, builders.instance(**row), leases=(HELD,))
    assert early == ()
    assert set(doubts) == {intent.intent_id}
    late, _ = settled(intent, builders.instance(**row), leases=(HELD,), memory=BEGAN, **OVER)
    assert only(late, intent, "the listing does not show it done").state is IntentState.VOID


@pytest.mark.parametrize("intent", [PAUSE, RELEASE], ids=lambda intent: intent.kind.value)
def test_what_saves_money_is_void_at_once_and_may_be_sent_again(intent: Intent) -> None:
    facts, _ = settled(intent, builders.instance(), leases=(HELD,))
    assert only(facts, intent, "the listing does not show it done").state is IntentState.VOID


@pytest.mark.parametrize("leases", [(), (builders.lease(state=LeaseState.ENDED),)], ids=["none", "ended"])
def test_an_order_on_a_lease_that_ended_is_void(leases: tuple[Lease, ...]) -> None:
    facts, _ = settled(REBID, builders.instance(), leases=leases)
    assert only(facts, REBID, "its lease has ended").state is IntentState.VOID


def test_an_instance_that_is_not_listed_settles_no_paying_order() -> None:
    """Nor does it after the grace: the lease may come back, or end, at either bid."""
    assert settled(REBID, leases=(HELD,))[0] == ()
    assert settled(REBID, leases=(HELD,), memory=BEGAN, **OVER)[0] == ()


def test_the_doubt_of_another_market_is_left_to_its_own_listing() -> None:
    elsewhere = builders.intent(market="runpod")
    assert settled(elsewhere, memory=BEGAN, **OVER) == ((), BEGAN.doubts)
    assert settled(elsewhere) == ((), {})


def test_every_doubt_is_settled_whatever_stands_before_it() -> None:
    """A settled intent, or another market's, hides no doubt behind it; each is reported by itself."""
    place = builders.slot("train", 1)
    intents = (
        builders.intent(1, state=IntentState.CONFIRMED),
        builders.intent(2, market="runpod"),
        builders.intent(3),
        builders.intent(4, slot=place),
    )
    rows = (builders.instance(7), builders.instance(8))
    view = builders.view(instances=rows, labels={"7": builders.label(3), "8": builders.label(4, place=place)})
    facts, _ = doubt.settle(builders.fleet(intents=intents, markets={"vast": view}), view, Memory())
    assert [fact.intent for fact in facts if isinstance(fact, IntentSettled)] == [intents[2], intents[3]]


@pytest.mark.parametrize("state", [state for state in IntentState if state is not IntentState.IN_DOUBT])
def test_only_doubt_is_settled(state: IntentState) -> None:
    row = builders.instance(7)
    assert settled(builders.intent(state=state), row, labels={"7": builders.label()}) == ((), {})
