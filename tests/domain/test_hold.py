"""Holds and their targets: written and read without loss, and over only at their end."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from agent.domain.record import hold
from agent.domain.record.cooldown import Cooldown, CooldownKind
from agent.domain.record.expiring_record import outlasts
from agent.domain.record.expiry import LASTING
from agent.domain.record.hold import EVERYTHING, OperatorHold, Target, TargetKind, Word
from agent.domain.slot import Slot
from tests.ledger import values
from tests.support.builders import NOW

SECONDS = st.integers(0, 10**9)
FOR_EVER = OperatorHold(Word.LOCK, hold.of_workload("train"), NOW, "ops")


@given(st.builds(Target, st.sampled_from(TargetKind), st.text()))
def test_a_target_is_read_back_as_it_was_written(target: Target) -> None:
    assert Target.parse(str(target)) == target


def test_what_names_no_kind_is_no_target() -> None:
    assert [Target.parse(text) for text in ("train", "lock:train", "", "lock:workload:train")] == [None] * 4


@given(st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True), st.integers(0, 999))
def test_a_slot_knows_its_workload_and_its_number(name: str, index: int) -> None:
    target = hold.of_slot(Slot(name, index))
    assert (target.workload, target.index, target.spoken) == (name, index, f"{name}/{index}")
    assert target.renamed("other") == hold.of_slot(Slot("other", index))
    whole = hold.of_workload(name)
    assert (whole.workload, whole.index, whole.renamed("other")) == (name, None, hold.of_workload("other"))


@given(values.holds, SECONDS)
def test_a_hold_without_a_time_is_over_at_no_time(one: OperatorHold, seconds: int) -> None:
    later = one.since + timedelta(seconds=seconds)
    assert one.is_over(later) == (one.until is not None and one.until <= later)
    assert ((one.word, one.target) in hold.in_force([one], later)) is not one.is_over(later)


def test_what_has_no_end_outlasts_what_has_one_and_counts_from_when_it_was_given_last() -> None:
    timed = OperatorHold(Word.LOCK, FOR_EVER.target, NOW, "ops", NOW + 2 * LASTING)
    again = OperatorHold(Word.LOCK, FOR_EVER.target, NOW + timedelta(seconds=1), "me")
    assert (outlasts(FOR_EVER, timed), outlasts(timed, FOR_EVER)) == (True, False)
    assert (outlasts(again, FOR_EVER), outlasts(FOR_EVER, again), outlasts(FOR_EVER, FOR_EVER)) == (True, False, True)
    brief = Cooldown(CooldownKind.HOST, "vast/1", NOW, "lost")
    assert (outlasts(brief, brief), outlasts(FOR_EVER, brief), outlasts(brief, FOR_EVER)) == (True, True, False)


def test_a_hold_is_shown_by_its_word_and_a_kill_of_everything_by_the_fleet() -> None:
    assert str(FOR_EVER) == "lock:workload:train"
    assert FOR_EVER.shown_until == NOW + LASTING
    assert str(OperatorHold(Word.KILL, EVERYTHING, NOW, "a kill")) == "fleet:all"
