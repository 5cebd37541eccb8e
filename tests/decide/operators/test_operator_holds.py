"""The effects of an operator's holds, and the endings that a stop of all spending still allows."""

from typing import Any

import msgspec
import pytest

from agent.decide import needs, plan, slots
from agent.decide.limits.limits import Limits
from agent.decide.moves import cooldowns_after_writes
from agent.decide.operators import operator_holds
from agent.decide.strategy import Proposal
from agent.domain.market.tenure import Tenure
from agent.domain.record.hold import OFF_THE_MARKET, Word
from agent.domain.record.intent import IntentKind, IntentState
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.work.decision import Decision, Hold, Pause, Reason, Rebid, Release, Rent, Resume
from agent.domain.work.workload import WorkloadKind
from strategies.patient import Patient, PatientParams
from tests.support import builders
from tests.support.expiring import held as hold
from tests.support.expiring import holds, in_force

WHY = Reason("because", "because")
HELD = builders.lease()
PAUSED = builders.lease(state=LeaseState.PAUSED, paused_by_us=True)
LOST = builders.lease(state=LeaseState.PAUSED)
RENT = Rent(
    builders.slot(), builders.offer(), Tenure.INTERRUPTIBLE, builders.per_hour("0.22"), builders.per_hour("0.224"), WHY
)
RAISE = Rebid(HELD, builders.per_hour("0.30"), WHY)
LOWER = Rebid(HELD, builders.per_hour("0.20"), WHY)
EVERY_KEY = ["workload:train", "slot:train/0", "host:vast/h1", "owner:vast/o1", "market:vast"]


@pytest.mark.parametrize("key", EVERY_KEY)
@pytest.mark.parametrize("verb", OFF_THE_MARKET)
def test_a_word_about_any_part_of_a_rent_forbids_it(verb: str, key: str) -> None:
    forbidden = operator_holds.forbidden(RENT, holds(f"{verb}:{key}"))
    assert forbidden is not None
    assert "ops" in forbidden.sentence
    assert operator_holds.forbidden(RENT, holds(f"{verb}:{key}9")) is None


@pytest.mark.parametrize("key", [*EVERY_KEY, "lease:vast-1"])
@pytest.mark.parametrize("decision", [RAISE, Resume(PAUSED, WHY)], ids=["raise", "resume"])
def test_lock_and_pause_forbid_what_would_pay_more_and_drain_does_not(decision: Decision, key: str) -> None:
    assert operator_holds.forbidden(decision, holds(f"lock:{key}")) is not None
    assert operator_holds.forbidden(decision, holds(f"pause:{key}")) is not None
    assert operator_holds.forbidden(decision, holds(f"kill:{key}")) is not None
    assert operator_holds.forbidden(decision, holds(f"drain:{key}")) is None


@pytest.mark.parametrize("decision", [LOWER, Pause(HELD, WHY), Release(HELD, WHY), Hold(builders.slot(), WHY)], ids=str)
def test_what_saves_money_is_never_forbidden(decision: Decision) -> None:
    every = holds(*(f"{word}:{key}" for word in set(Word) - {Word.HELD} for key in EVERY_KEY))
    assert operator_holds.forbidden(decision, every) is None


@pytest.mark.parametrize(
    ("leases", "cooling", "code"),
    [
        ((), "lock:workload:train", "locked"),
        ((), "drain:slot:train/0", "drained"),
        ((), "done:workload:train", "done"),
        ((HELD,), "done:slot:train/0", "done"),
        ((), "kill:workload:train", "killed"),
        ((HELD,), "kill:slot:train/0", "killed"),
        ((), "lock:market:vast", "locked"),
        ((), "kill:market:vast", "killed"),
        ((HELD,), "lock:market:vast", ""),
        ((), "lock:market:runpod", ""),
        ((HELD,), "pause:lease:vast-1", "paused"),
        ((HELD,), "pause:host:vast/h1", "paused"),
        ((HELD,), "lock:workload:train", ""),
        ((HELD,), "drain:workload:train", ""),
        ((), "lock:workload:other", ""),
    ],
    ids=str,
)
def test_when_nothing_at_all_is_done_for_a_slot(leases: tuple[Lease, ...], cooling: str, code: str) -> None:
    fleet = builders.fleet(leases=leases)
    found = operator_holds.why_idle(fleet, builders.slot(), holds(cooling))
    assert (found.code if found is not None else "") == code
    if code:
        answer = slots.view_or_proposal(fleet, builders.slot(), in_force({cooling: "ops"}))
        assert isinstance(answer, Proposal)
        assert (answer.kind, answer.reason.code) == (None, code)


@pytest.mark.parametrize(
    ("held", "cooling", "expected"),
    [
        (HELD, "pause:workload:train", [Pause]),
        *((HELD, f"kill:{key}", [Release]) for key in EVERY_KEY),
        (LOST, "pause:workload:train", [Pause]),
        (PAUSED, "pause:workload:train", []),
        (builders.lease(state=LeaseState.PAUSED, tenure=Tenure.ON_DEMAND), "pause:host:vast/h1", [Pause]),
        (HELD, "done:slot:train/0", [Release]),
        (PAUSED, "done:workload:train", [Release]),
        (HELD, "lock:workload:train", []),
        (builders.lease(state=LeaseState.RELEASING), "done:workload:train", []),
        (builders.lease(state=LeaseState.ENDED), "done:workload:train", []),
    ],
    ids=str,
)
def test_what_words_still_have_to_end(held: Lease, cooling: str, expected: list[type]) -> None:
    made = list(operator_holds.orders(builders.fleet(leases=(held,)), holds(cooling)))
    assert [type(order) for order in made] == expected


@pytest.mark.parametrize("kind", [IntentKind.RESUME, IntentKind.REBID])
@pytest.mark.parametrize("state", [IntentState.SENT, IntentState.IN_DOUBT])
@pytest.mark.parametrize("words", [("pause:workload:train",), ("fleet:all", "fleet:disks")])
def test_a_paused_lease_with_an_open_start_is_paused_once_more(
    kind: IntentKind, state: IntentState, words: tuple[str, ...]
) -> None:
    start = builders.intent(kind=kind, state=state, lease_id=PAUSED.lease_id)
    fleet = builders.fleet(leases=(PAUSED,), intents=(start,))
    (order,) = operator_holds.orders(fleet, holds(*words))
    assert isinstance(order, Pause)
    marks = tuple(cooldowns_after_writes.taken_back(order, fleet.intents, (), fleet.now))
    assert list(operator_holds.orders(msgspec.structs.replace(fleet, tallies=marks), holds(*words))) == []
    other = msgspec.structs.replace(PAUSED, lease_id="vast-2", instance_id="2")
    assert list(operator_holds.orders(builders.fleet(leases=(other,), intents=(start,)), holds(*words))) == []


@pytest.mark.parametrize(
    ("held", "keeps_disks", "expected"),
    [
        (HELD, False, [Release]),
        (PAUSED, False, [Release]),
        (HELD, True, [Pause]),
        (LOST, True, [Pause]),
        (PAUSED, True, []),
        (builders.lease(state=LeaseState.RELEASING, bills=Bills.DISK), False, []),
        (builders.lease(state=LeaseState.ENDED), True, []),
    ],
    ids=str,
)
def test_a_kill_ends_whatever_turns_up(held: Lease, keeps_disks: bool, expected: list[type]) -> None:
    kill = holds("fleet:all", *(["fleet:disks"] if keeps_disks else []))
    made = list(operator_holds.orders(builders.fleet(leases=(held,)), kill))
    assert [type(order) for order in made] == expected
    assert list(operator_holds.orders(builders.fleet(leases=(held,)), {})) == []


def test_after_a_kill_nobody_searches() -> None:
    assert needs.needs(builders.fleet(holds=(hold("fleet", "all"),))) == ()


@pytest.mark.parametrize("key", ["workload:train", "slot:train/0"])
def test_a_slot_that_stands_still_needs_no_offers(key: str) -> None:
    assert needs.needs(builders.fleet(holds=(hold("drain", key),))) == ()


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"tenure": Tenure.ON_DEMAND}, {"train"}),
        ({}, set()),
        ({"tenure": Tenure.ON_DEMAND, "state": LeaseState.PAUSED}, set()),
        ({"tenure": Tenure.ON_DEMAND, "is_held": True}, set()),
    ],
    ids=str,
)
def test_what_pays_for_on_demand_looks_for_something_cheaper(changes: dict[str, Any], names: set[str]) -> None:
    assert needs.expensive_workloads(builders.fleet(leases=(builders.lease(**changes),))) == names


def test_a_locked_market_says_so_instead_of_renting() -> None:
    tuned = {"patient": builders.tuned(Patient(), PatientParams())}
    view = builders.view(offers=(builders.offer(),))
    fleet = builders.fleet(markets={"vast": view}, holds=(hold("lock", "workload:train"),))
    (made,) = plan.plan(fleet, tuned, Limits()).decisions
    assert isinstance(made, Hold)
    assert (made.reason.code, made.slot) == ("locked", builders.slot())


@pytest.mark.parametrize(
    ("kind", "way_on"),
    [
        (WorkloadKind.BATCH, "`gpubid done train/0` if its work is done, `gpubid resume train/0` to go on"),
        (
            WorkloadKind.SERVICE,
            "`gpubid resume train/0` to go on; `gpubid release train/0` ends a lease that it still has",
        ),
    ],
    ids=lambda value: value.value if isinstance(value, WorkloadKind) else "",
)
def test_a_held_slot_names_only_commands_that_its_workload_takes(kind: WorkloadKind, way_on: str) -> None:
    known = builders.fleet(workloads=(builders.workload(kind=kind),), leases=(builders.lease(),))
    reason = operator_holds.why_idle(known, builders.slot(), holds("held:slot:train/0"))
    assert reason is not None
    assert reason.sentence.endswith(way_on)


@pytest.mark.parametrize(
    ("key", "ends"),
    [
        *((f"kill:{key}", Release) for key in (*EVERY_KEY, "lease:vast-1")),
        *((f"pause:{key}", Pause) for key in (*EVERY_KEY, "lease:vast-1")),
        ("done:slot:train/0", None),
        ("held:slot:train/0", None),
    ],
)
def test_a_person_s_kill_and_pause_include_a_stranger_until_it_is_done(key: str, ends: type | None) -> None:
    """Otherwise one refused call is all that a person's order comes to, and its GPU bills on."""
    stranger = builders.lease(is_held=True)
    found = list(operator_holds.orders(builders.fleet(leases=(stranger,)), holds(key)))
    assert [type(each) for each in found] == ([ends] if ends is not None else [])
