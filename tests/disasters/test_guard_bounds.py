"""What guards promise, as the judge holds it: each bound finds a defect that is made for it."""

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any
from unittest import mock

import msgspec
import pytest
import structlog

from agent.act import rent_terms
from agent.act.guarding import kept_runs
from agent.act.guarding.guard_launch import GuardLaunch
from agent.decide import slot_releases
from agent.decide.facts import HostChecked
from agent.decide.moves import due_endings, last_checkpoint
from agent.decide.pricing import failed_checks
from agent.decide.reconcile.guards import acceptance_verdict, guard_end, guard_refusal, host_checks
from agent.decide.reconcile.guards.guard_end import GuardWord, Word
from agent.domain.fleet import Fleet
from agent.domain.market.offer import Offer
from agent.domain.record.host_check import HostCheck
from agent.domain.record.lease import Lease
from agent.domain.work import only_copy
from agent.domain.work.workload import Workload
from agent.markets import port
from tests.disasters import play, seed_runs
from tests.disasters.sight import Broken
from tests.disasters.story import Deed, Guarded, Story, Work


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    seed_runs.quietly()
    yield
    # A process that logs nothing would fail the next test that reads the log.
    structlog.reset_defaults()


OUTBID = Deed(60, "rival", amount=0.3)
LEAVES = Deed(41, "near_end", amount=0.3)
SLOW = Guarded(takes=30.0, upload=90.0, final_within=60.0)


def broken(guard: Guarded, *deeds: Deed, strategy: str = "ondemand", slots: int = 1) -> Broken | None:
    """Play a quiet story of one guarded batch."""
    work = Work("w0", "batch", strategy, slots, guard=guard)
    return play.play(Story(7, ("vast",), (work,), 30.0, 0.0, 0, deeds=deeds)).broken


def found(broken: Broken | None) -> tuple[int, str]:
    """Return the point that does not hold, and its sentence."""
    assert broken is not None
    return broken.point, broken.sentence


@pytest.mark.nightly
def test_a_paused_disk_whose_checkpoints_are_not_whole_in_the_bucket_is_the_only_copy() -> None:
    """Its host writes manifests without the files that they name."""
    story = Guarded(is_on_disk=True, interval=300.0), Deed(20, "lie_objects_missing"), OUTBID
    assert broken(*story, strategy="hedged") is None
    with mock.patch.object(only_copy, "is_carried", return_value=True):
        point, sentence = found(broken(*story, strategy="hedged"))
    assert (point, "was released (moved), and its disk has a count of" in sentence) == (3, True)


UNGUARDED = Deed(4, "host_gone"), Deed(12, "edit_guard_away")
"""What a person lets run after these keeps its work on its disk alone."""


@pytest.mark.nightly
def test_a_disk_whose_guard_a_file_took_away_is_the_only_copy_and_waits_for_a_person() -> None:
    """Its host leaves the market, and starts it no more."""
    story = Guarded(is_on_disk=True), *UNGUARDED, Deed(20, "resume"), Deed(90, "near_end", amount=0.3)
    assert broken(*story) is None
    with mock.patch.object(slot_releases, "may_leave", return_value=True):
        point, sentence = found(broken(*story))
    assert (point, "was released (contract_end), and its disk has work that no guard carries" in sentence) == (3, True)


@pytest.mark.nightly
def test_a_disk_that_never_had_work_waits_for_nobody() -> None:
    """Its host leaves the market while it loads."""
    story = Guarded(is_on_disk=True), *UNGUARDED, Deed(108, "resume"), Deed(110, "near_end", amount=0.0)
    assert broken(*story) is None
    with mock.patch.object(slot_releases, "may_leave", return_value=False):
        point, sentence = found(broken(*story))
    assert (point, "contract_end" in sentence) == (6, True)


REFUSED = (
    Deed(30, "host_offline", 19, 0.28),
    Deed(42, "bucket_away", 40, 0.81),
    Deed(56, "near_end", 17, 0.3),
)
"""The guard of a host that takes over finds no bucket, and refuses to start. Then its host leaves the market."""


def refused(*deeds: Deed) -> Broken | None:
    """Play a service of three slots that keep their work on disks."""
    guard = Guarded(is_on_disk=True, upload=2.0, final_within=8.0, accept="tell")
    work = Work("w0", "service", "ondemand", 3, ("vast",), guard=guard)
    return play.play(Story(2249, ("vast",), (work,), 48.0, 0.0, 0, deeds=(*REFUSED, *deeds))).broken


@pytest.mark.nightly
def test_a_disk_waits_for_a_person_where_nobody_saw_that_no_work_began_on_it() -> None:
    """The daemon is away from before the refusal until its market has stopped the instance."""
    assert refused(Deed(56, "daemon_away", 17, 0.34)) is None


@pytest.mark.nightly
def test_a_disk_waits_for_nobody_where_a_log_said_that_no_work_began_on_it() -> None:
    assert refused() is None
    with mock.patch.object(guard_refusal, "is_awaited", return_value=False):
        point, sentence = found(refused())
    assert (point, "contract_end" in sentence) == (6, True)


def test_nothing_is_rented_for_a_run_that_is_done() -> None:
    """It is outbid as it ends, and nobody heeds its end."""
    story = Guarded(needs=1800.0), dataclasses.replace(OUTBID, cycle=75)
    assert broken(*story, strategy="hedged") is None
    with _deaf(), mock.patch.object(kept_runs, "finished", return_value=""):
        point, sentence = found(broken(*story, strategy="hedged"))
    assert (point, "the bucket says that its run is done" in sentence) == (2, True)


@pytest.mark.nightly
def test_what_is_done_bills_no_longer() -> None:
    assert broken(Guarded(needs=1800.0)) is None
    with _deaf():
        point, sentence = found(broken(Guarded(needs=1800.0)))
    assert (point, "after the end of its work" in sentence) == (5, True)


def _deaf() -> Any:
    return mock.patch.object(guard_end, "of", return_value=GuardWord(Word.WORKS))


@pytest.mark.nightly
def test_a_last_checkpoint_is_waited_for_no_longer_than_its_guard_has() -> None:
    """Its host leaves the market, and it carries for two minutes."""
    assert broken(SLOW, LEAVES) is None
    with mock.patch.object(last_checkpoint, "_written_at", lambda fleet, *_: fleet.now):
        point, sentence = found(broken(SLOW, LEAVES))
    assert (point, "waits for its guard" in sentence) == (5, True)


@pytest.mark.nightly
def test_a_guard_that_is_asked_anew_at_every_poll_is_waited_for_no_longer() -> None:
    """Each order has an id of its own, and none of them is waited for long."""
    assert broken(SLOW, LEAVES) is None
    with mock.patch.object(last_checkpoint, "asked_at", return_value=None):
        point, sentence = found(broken(SLOW, LEAVES))
    assert (point, "waits for its guard" in sentence) == (5, True)


def test_a_hard_cap_waits_for_no_checkpoint() -> None:
    cap = Deed(30, "edit_cap", amount=0.0)
    assert broken(SLOW, cap) is None
    with mock.patch.object(due_endings, "is_of_cap", return_value=False):
        point, sentence = found(broken(SLOW, cap))
    assert (point, "waits for its guard after a crossed cap" in sentence) == (5, True)


def test_no_guard_makes_a_bid_higher_than_its_workload_allows() -> None:
    assert broken(Guarded(), strategy="hedged") is None
    terms_of = rent_terms.of

    def dear(*about: Any) -> port.Terms:
        terms = terms_of(*about)
        is_guarded = isinstance(about[-1], GuardLaunch) and terms.bid is not None
        return dataclasses.replace(terms, bid=terms.bid.scaled(8)) if is_guarded and terms.bid else terms

    with mock.patch.object(rent_terms, "of", dear):
        point, sentence = found(broken(Guarded(), strategy="hedged"))
    assert (point, "and w0/0 may cost $0.900" in sentence) == (2, True)


@pytest.mark.nightly
def test_a_host_that_calls_its_work_done_ends_no_other_lease() -> None:
    lie = Deed(60, "lie_false_done")
    assert broken(Guarded(), lie, slots=2) is None
    judged = guard_end.of

    def of_anyone(fleet: Fleet, held: Lease, work: Workload) -> GuardWord:
        ends = (report.end for report in fleet.guard_reports.values())
        is_done = any(end is not None and end.done for end in ends)
        return GuardWord(Word.DONE, "somebody's end") if is_done else judged(fleet, held, work)

    with mock.patch.object(guard_end, "of", of_anyone):
        point, sentence = found(broken(Guarded(), lie, slots=2))
    assert (point, "recorded is 'done'" in sentence) == (3, True)


@pytest.mark.nightly
def test_a_host_is_given_up_for_its_check_only_where_the_workload_asks_for_that() -> None:
    lie = Deed(2, "lie_fewer_gpus", amount=0.1)
    assert broken(Guarded(accept="tell"), lie) is None
    with mock.patch.object(acceptance_verdict, "_may_reject", return_value=True):
        point, sentence = found(broken(Guarded(accept="tell"), lie))
    assert (point, "not_as_rented" in sentence) == (3, True)


@pytest.mark.nightly
def test_hosts_that_their_guards_called_other_than_rented_are_no_room_and_all_others_are() -> None:
    """For forty minutes each host tells that it has no GPU, until none of Vast's is left that fits."""
    lie, guard = Deed(6, "lie_fewer_gpus", amount=0.65), Guarded(is_on_disk=True, accept="reject")
    work = Work("w0", "service", "hedged", 2, guard=guard)
    story = Story(90472, ("vast",), (work,), 22.0, 0.0, 0, deeds=(lie,))
    assert play.play(story).broken is None

    def wary(_: Fleet, work: Workload, offers: Iterable[Offer]) -> failed_checks.FailedChecks:
        return {(offer.host, offer.gpu): f"{work.name} trusts nobody" for offer in offers}

    with mock.patch.object(failed_checks, "of", wary):
        point, sentence = found(play.play(dataclasses.replace(story, deeds=())).broken)
    assert (point, "does not run for" in sentence) == (6, True)
    with _unrecorded_checks():
        point, sentence = found(play.play(story).broken)
    assert (point, "does not run for" in sentence) == (6, True), "the ledger has no check to reject a host for"


@contextlib.contextmanager
def _unrecorded_checks() -> Iterator[None]:
    """Let hosts be rejected for checks that no ledger has."""
    kept: dict[str, HostCheck] = {}
    of, new_checks = failed_checks.of, host_checks.new_checks

    def unrecorded(fleet: Fleet) -> Iterator[HostChecked]:
        kept.update({fact.after.lease_id: fact.after for fact in new_checks(fleet)})
        yield from ()

    def by_memory(fleet: Fleet, work: Workload, offers: Iterable[Offer]) -> failed_checks.FailedChecks:
        return of(msgspec.structs.replace(fleet, host_checks=kept), work, offers)

    patches = (
        mock.patch.object(host_checks, "new_checks", unrecorded),
        mock.patch.object(failed_checks, "of", by_memory),
    )
    with patches[0], patches[1]:
        yield
