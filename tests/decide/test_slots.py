"""A slot's needs before any strategy is asked, and the releases that no strategy can prevent."""

import math
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from agent.decide import slot_releases, slots
from agent.decide.moves import cooldowns_after_writes
from agent.decide.pricing import cooldowns
from agent.decide.strategy import Proposal, SlotView
from agent.domain.fleet import Fleet
from agent.domain.market.instance import InstanceState
from agent.domain.market.tenure import Tenure
from agent.domain.record import hold
from agent.domain.record.cooldown import Cooldown, CooldownKind
from agent.domain.record.expiring_record import ExpiringRecord
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.record.intent import IntentKind, IntentState
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.record.tally import Counted, Tally
from agent.domain.work.decision import Reason, Rebid, Release, Resume
from agent.domain.work.run_times.run_window import Outside, WindowNow, WindowRule
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from tests.support import builders
from tests.support.expiring import in_force

PLACE = builders.slot()
NOW = builders.NOW


def look(cooling: dict[str, str] | None = None, **changes: Any) -> SlotView | Proposal:
    fleet = builders.fleet(**changes)
    return slots.view_or_proposal(fleet, PLACE, in_force(cooling or {}))


def held_back(answer: SlotView | Proposal) -> str:
    """Return why a slot is held back, insisting that it is."""
    assert isinstance(answer, Proposal)
    assert answer.kind is None
    return answer.reason.code


def test_an_empty_slot_goes_to_the_strategy() -> None:
    assert look() == SlotView(PLACE, None)


@pytest.mark.parametrize("state", [IntentState.RECORDED, IntentState.SENT, IntentState.IN_DOUBT])
@pytest.mark.parametrize("kind", [IntentKind.RENT, IntentKind.REBID, IntentKind.RESUME])
def test_an_open_paying_intent_blocks_its_slot(kind: IntentKind, state: IntentState) -> None:
    doubt = builders.intent(kind=kind, state=state)
    assert held_back(look(intents=(doubt,), leases=(builders.lease(),))) == "in_doubt"


def test_a_pause_in_doubt_blocks_nothing() -> None:
    assert look(intents=(builders.intent(kind=IntentKind.PAUSE),)) == SlotView(PLACE, None)


def test_what_a_person_stopped_stays_stopped() -> None:
    assert held_back(look({"fleet:all": "a kill"}, leases=(builders.lease(),))) == "stopped"


def test_a_slot_that_just_rented_rests() -> None:
    assert held_back(look({"slot:train/0": "a rent a moment ago"})) == "slot_rests"
    assert look({"slot:train/1": "a rent a moment ago"}) == SlotView(PLACE, None)


def test_a_release_the_market_has_not_confirmed_holds_the_slot() -> None:
    leaving = builders.lease(state=LeaseState.RELEASING, bills=Bills.DISK)
    assert held_back(look(leases=(leaving,))) == "releasing"
    gone = builders.lease(state=LeaseState.RELEASING, bills=Bills.NOTHING)
    assert look(leases=(gone,)) == SlotView(PLACE, None)


def test_a_missing_lease_counts_as_running_and_is_not_replaced() -> None:
    assert held_back(look(leases=(builders.lease(state=LeaseState.MISSING),))) == "missing"


@pytest.mark.parametrize(
    ("state", "may_raise"),
    [(InstanceState.PAUSED, True), (InstanceState.UNKNOWN, False), (InstanceState.FAILED, False)],
)
def test_no_bid_is_raised_for_an_instance_in_an_unclear_state(state: InstanceState, *, may_raise: bool) -> None:
    """One wrong word after a raise had the bid of a running instance raised again."""
    stopped = builders.lease(state=LeaseState.PAUSED, bills=Bills.DISK)
    row = builders.instance(state=state)
    seen = look(leases=(stopped,), markets={"vast": builders.view(instances=(row,))})
    assert isinstance(seen, SlotView)
    assert seen.down is not None
    assert (cooldowns.RAISE not in seen.down.refused) is may_raise


@pytest.mark.parametrize(
    ("outside", "changes", "hours"),
    [
        (Outside.RELEASE, {}, 0.5),
        (Outside.PAUSE, {}, math.inf),
        (Outside.RELEASE, {"windows": {}}, math.inf),
        (Outside.RELEASE, {"windows": {"train": WindowNow(is_open=True, until=None)}}, math.inf),
    ],
    ids=["released", "paused", "not computed", "open for ever"],
)
def test_a_slot_has_the_hours_until_its_window_releases_it(
    outside: Outside, changes: dict[str, Any], hours: float
) -> None:
    work = builders.workload(windows=(WindowRule("0 8 * * *", timedelta(hours=9)),), outside=outside)
    window = WindowNow(is_open=True, until=NOW + timedelta(minutes=30))
    given = {"workloads": (work,), "leases": (builders.lease(),), "windows": {"train": window}, **changes}
    seen = look(**given)
    assert isinstance(seen, SlotView)
    assert seen.hours_left == hours


def test_an_ended_container_is_paused() -> None:
    answer = look(leases=(builders.lease(state=LeaseState.EXITED),))
    assert isinstance(answer, Proposal)
    assert (answer.kind, answer.reason.code) == (IntentKind.PAUSE, "container_exit")


def test_a_container_that_ended_a_moment_ago_may_run_again() -> None:
    fresh = builders.lease(state=LeaseState.EXITED, state_since=builders.ago(seconds=60))
    assert held_back(look(leases=(fresh,))) == "settling"


@pytest.mark.parametrize("state", [LeaseState.STARTING, LeaseState.RUNNING])
def test_a_live_lease_is_not_down(state: LeaseState) -> None:
    held = builders.lease(state=state)
    assert look(leases=(held,)) == SlotView(PLACE, held)


@pytest.mark.parametrize("state", [LeaseState.PAUSED, LeaseState.OFFLINE])
def test_a_lost_lease_is_down_since_it_was_lost(state: LeaseState) -> None:
    answer = look(leases=(builders.lease(state=state),))
    assert isinstance(answer, SlotView)
    assert answer.down is not None
    assert answer.down.since == builders.ago(hours=1)


def test_of_two_leases_the_younger_is_arriving() -> None:
    old = builders.lease(1, state=LeaseState.PAUSED)
    new = builders.lease(2, state=LeaseState.STARTING, opened_at=NOW)
    answer = look(leases=(new, old))
    assert isinstance(answer, SlotView)
    assert (answer.lease, answer.arriving) == (old, new)


def test_quotes_are_floors_of_the_same_slice_since_the_loss() -> None:
    held = builders.lease(state=LeaseState.PAUSED, state_since=builders.ago(minutes=5))
    rows = (
        builders.offer(1, floor=builders.per_hour("0.30")),
        builders.offer(2, host_id="h1", floor=builders.per_hour("0.31"), seen_at=builders.ago(minutes=6)),
        builders.offer(3, host_id="h1", floor=builders.per_hour("0.32"), gpus=2),
        builders.offer(4, host_id="h1", floor=None),
        builders.offer(5, floor=builders.per_hour("0.33")),
    )
    answer = look(leases=(held,), markets={"vast": builders.view(offers=rows)})
    assert isinstance(answer, SlotView)
    assert answer.down is not None
    assert answer.down.quotes == (builders.per_hour("0.30"),)
    elsewhere = look(leases=(held,), markets={})
    assert isinstance(elsewhere, SlotView)
    assert elsewhere.down is not None
    assert elsewhere.down.quotes == ()


def released(*leases: Lease, **changes: Any) -> list[tuple[str, str]]:
    """Return (lease id, code) of the releases that are due."""
    fleet: Fleet = builders.fleet(leases=leases, **changes)
    due: list[Release] = list(slot_releases.releases(fleet))
    return [(order.lease.lease_id, order.reason.code) for order in due]


OVERDUE: dict[str, Any] = {"state": LeaseState.STARTING, "state_since": builders.ago(hours=2)}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"state": LeaseState.RELEASING, "bills": Bills.DISK}, "release_again"),
        ({"has_failed": True, "state": LeaseState.PAUSED}, "start_failed"),
        ({"has_failed": True, "end_reason": "mismatch: it is on_demand"}, "mismatch"),
        (OVERDUE, "start_overdue"),
        ({"is_held": True, "state": LeaseState.RELEASING, "bills": Bills.DISK}, "release_again"),
    ],
    ids=str,
)
def test_the_unfinished_and_the_failed_are_released(changes: dict[str, Any], code: str) -> None:
    assert released(builders.lease(**changes)) == [("vast-1", code)]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"state": LeaseState.RELEASING, "bills": Bills.NOTHING},
        {"state": LeaseState.ENDED, "has_failed": True},
        {"is_held": True, "has_failed": True},
        {**OVERDUE, "is_held": True},
        {**OVERDUE, "has_run": True},
        {**OVERDUE, "slot": builders.slot("unknown")},
        {"state": LeaseState.STARTING, "state_since": builders.ago(minutes=20)},
        {"state": LeaseState.PAUSED},
        {"state": LeaseState.MISSING},
    ],
    ids=str,
)
def test_the_healthy_the_held_and_the_lost_are_kept(changes: dict[str, Any]) -> None:
    assert released(builders.lease(**changes)) == []


@pytest.mark.parametrize("markets", [{}, {"vast": builders.view(is_fresh=False)}], ids=["none", "stale"])
def test_an_old_view_is_no_reason_to_release(markets: dict[str, Any]) -> None:
    assert released(builders.lease(**OVERDUE), markets=markets) == []
    failed = builders.lease(has_failed=True)
    assert released(failed, markets=markets) == [("vast-1", "start_failed")]


OVER: dict[str, Any] = {"state": LeaseState.PAUSED, "ends_at": NOW}
ON_DISK = builders.workload(checkpoint=Checkpoint(place=CheckpointPlace.DISK))


def test_what_is_stopped_past_the_end_of_its_contract_is_released() -> None:
    """No start of it succeeds any more, and its disk bills until it goes."""
    assert released(builders.lease(**OVER)) == [("vast-1", "contract_end")]
    assert released(builders.lease(**OVER, paused_by_us=True)) == [("vast-1", "contract_end")]
    assert released(builders.lease(**{**OVER, "ends_at": NOW + timedelta(seconds=1)})) == []
    assert released(builders.lease(ends_at=NOW)) == []


def test_the_end_of_a_contract_is_that_of_the_present_listing() -> None:
    extended = builders.view(instances=(builders.instance(ends_at=NOW + timedelta(days=1)),))
    assert released(builders.lease(**OVER), markets={"vast": extended}) == []
    assert released(builders.lease(**OVER), markets={"vast": builders.view(is_fresh=False)}) == []


@pytest.mark.parametrize(
    "doubt", [{"clock_skew_seconds": -86_400.0}, {"clock_skew_seconds": 61.0}, {"is_clock_read": False}], ids=str
)
def test_no_contract_is_over_by_a_clock_that_its_market_does_not_confirm(doubt: dict[str, Any]) -> None:
    """A day ahead, it would end each contract of the next day, and its disk is lost."""
    market = {"vast": builders.view(**doubt)}
    assert released(builders.lease(**OVER), markets=market) == []
    answer = look(leases=(builders.lease(**OVER),), markets=market)
    assert isinstance(answer, SlotView)


def test_a_disk_with_the_only_checkpoint_outlives_its_contract_until_a_person_ends_it() -> None:
    held = builders.lease(**OVER)
    assert released(held, workloads=(ON_DISK,)) == []
    answer = look(leases=(held,), workloads=(ON_DISK,))
    assert held_back(answer) == "contract_end"
    assert isinstance(answer, Proposal)
    assert "gpubid release vast-1" in answer.reason.sentence


@pytest.mark.parametrize(("lost", "ends"), [(CheckpointPlace.REMOTE, True), (CheckpointPlace.DISK, False)])
@pytest.mark.parametrize("order", [Resume, Rebid])
def test_a_start_that_the_market_takes_never_is_left_after_three_where_the_disk_may_be_lost(
    order: type[Resume | Rebid], lost: CheckpointPlace, *, ends: bool
) -> None:
    stopped, why = builders.lease(state=LeaseState.PAUSED), Reason("resume", "start it again")
    asked = Resume(stopped, why) if order is Resume else Rebid(stopped, builders.per_hour("0.3"), why)
    works = (builders.workload(checkpoint=Checkpoint(place=lost)),)
    rests: tuple[ExpiringRecord, ...] = ()
    for number in range(1, 4):
        tallies = [rest for rest in rests if isinstance(rest, Tally)]
        at = NOW - (3 - number) * cooldowns.HOST_FULL
        rests = cooldowns_after_writes.after_refusal(asked, cooldowns.INVALID, tallies, at)
        kept = tuple(rest for rest in rests if isinstance(rest, Tally))
        assert [(tally.count, tally.since) for tally in kept] == [(number, NOW - 2 * cooldowns.HOST_FULL)]
        expected = [("vast-1", "host_full")] if number == 3 and ends else []
        assert released(stopped, tallies=kept, workloads=works) == expected


REFUSED = Tally(
    Counted.UNTAKEN, "vast-1", builders.ago(minutes=30), NOW + cooldowns.UNTAKEN_KEPT, "invalid_args", "resume", 3
)


@pytest.mark.parametrize(
    ("lease", "market", "ends"),
    [
        ({}, {}, True),
        ({"state_since": builders.ago(minutes=1)}, {}, False),
        ({"paused_by_us": True}, {}, False),
        ({}, {"is_fresh": False}, False),
    ],
    ids=["stopped since", "refused before it stopped", "paused by us", "not listed"],
)
def test_refused_starts_count_only_since_it_stopped_by_itself_and_where_that_is_seen(
    lease: dict[str, Any], market: dict[str, Any], *, ends: bool
) -> None:
    stopped = builders.lease(state=LeaseState.PAUSED, **lease)
    expected = [("vast-1", "host_full")] if ends else []
    assert released(stopped, tallies=(REFUSED,), markets={"vast": builders.view(**market)}) == expected


def test_refused_lowerings_are_no_refused_starts() -> None:
    stopped, why = builders.lease(state=LeaseState.PAUSED), Reason("lower_bid", "save a cent")
    tallies: tuple[Tally, ...] = ()
    for _ in range(4):
        lower = Rebid(stopped, builders.per_hour("0.1"), why)
        rests = cooldowns_after_writes.after_refusal(lower, cooldowns.INVALID, tallies, NOW)
        tallies = tuple(rest for rest in rests if isinstance(rest, Tally))
    assert [tally.count for tally in tallies] == [4]
    assert released(stopped, tallies=tallies) == []


def test_what_was_refused_while_it_ran_is_not_counted_on_when_it_stopped() -> None:
    stopped = builders.lease(state=LeaseState.PAUSED, state_since=builders.ago(minutes=1))
    resume = Resume(stopped, Reason("resume", "start it again"))
    rests = cooldowns_after_writes.after_refusal(resume, cooldowns.INVALID, (REFUSED,), NOW)
    assert [(rest.count, rest.since) for rest in rests if isinstance(rest, Tally)] == [(1, NOW)]


def test_a_full_host_is_left_only_where_a_listing_shows_that_the_lease_is_still_stopped() -> None:
    full = Cooldown(CooldownKind.FULL, "vast-1", NOW + timedelta(minutes=5), "a start that was refused: host_full")
    stopped = builders.lease(state=LeaseState.PAUSED)
    for is_fresh, expected in ((True, [("vast-1", "host_full")]), (False, [])):
        markets = {"vast": builders.view(is_fresh=is_fresh)}
        assert released(stopped, cooldowns=(full,), markets=markets) == expected


def test_a_start_that_the_market_calls_invalid_is_no_reason_to_release() -> None:
    """If the market changes the request, that is said of every start: each stopped lease would lose its disk."""
    stopped = builders.lease(state=LeaseState.PAUSED)
    for refusal, expected in (("host_full", [("vast-1", "host_full")]), ("invalid_args", [])):
        resume = Resume(stopped, Reason("resume", "start it again"))
        rests = cooldowns_after_writes.after_refusal(resume, refusal, (), NOW)
        resting = tuple(rest for rest in rests if isinstance(rest, Cooldown))
        tallies = tuple(rest for rest in rests if isinstance(rest, Tally))
        assert released(stopped, cooldowns=resting, tallies=tallies) == expected
        fleet = builders.fleet(leases=(stopped,), cooldowns=resting, tallies=tallies)
        answer = slots.view_or_proposal(fleet, PLACE, cooldowns.in_force(fleet))
        if expected:
            assert held_back(answer) == "host_full", "it is not asked for at every poll"
    assert isinstance(answer, SlotView)
    assert answer.is_start_refused, "it is not asked for at every poll"
    assert released(builders.lease(**OVER), cooldowns=resting) == [("vast-1", "contract_end")]


@pytest.mark.parametrize(
    "kept",
    [
        (Word.PAUSE, hold.of_workload("train")),
        (Word.HELD, hold.of_slot(PLACE)),
        (Word.KILL, hold.DISKS),
    ],
    ids=str,
)
def test_a_disk_that_a_person_keeps_is_not_released_because_it_cannot_start(kept: tuple[Word, hold.Target]) -> None:
    full = Cooldown(CooldownKind.FULL, "vast-1", NOW + timedelta(minutes=5), "a start that was refused")
    for held, code in (
        (builders.lease(**OVER), "contract_end"),
        (builders.lease(state=LeaseState.PAUSED), "host_full"),
    ):
        assert released(held, cooldowns=(full,)) == [("vast-1", code)]
        word = OperatorHold(*kept, NOW, "ops")
        assert released(held, cooldowns=(full,), holds=(word,)) == []


def test_a_start_is_overdue_after_several_times_its_pull() -> None:
    work = builders.workload(image_gb=50.0)
    fleet = builders.fleet(workloads=(work,))
    pull = timedelta(hours=(50 * 8000 / slot_releases.SLOW_MBPS + 30) / 3600)
    spare = slot_releases.LOADING_SPARE + slot_releases.LOADING_FACTOR * pull
    starting: dict[str, Any] = {"state": LeaseState.STARTING, "has_run": False}
    assert not slot_releases.is_overdue(fleet, builders.lease(**starting, state_since=NOW - spare), work)
    late = builders.lease(**starting, state_since=NOW - spare - timedelta(seconds=1))
    assert slot_releases.is_overdue(fleet, late, work)
    # A rent whose answer was lost while nobody looked for hours: what its instance did is in no listing yet.
    unseen = msgspec.structs.replace(late, opened_at=late.state_since, accrued_until=late.state_since)
    assert not slot_releases.is_overdue(fleet, unseen, work)


def test_an_overdue_start_says_how_long_it_has_loaded() -> None:
    begun = NOW - timedelta(hours=3, minutes=20)
    held = builders.lease(state=LeaseState.STARTING, has_run=False, state_since=begun, loading_since=begun)
    (made,) = slot_releases.releases(builders.fleet(leases=(held,)))
    assert made.reason.sentence == "it has loaded for 3 h 20 min, silent times not counted, which is too long"


@pytest.mark.parametrize(
    ("changes", "may"),
    [
        ({}, True),
        ({"paused_by_us": True}, False),
        ({"tenure": Tenure.ON_DEMAND}, True),
        ({"state": LeaseState.RUNNING}, False),
    ],
    ids=str,
)
def test_only_a_stopped_lease_that_we_did_not_pause_starts_by_itself(changes: dict[str, Any], may: bool) -> None:
    assert builders.lease(**{"state": LeaseState.PAUSED, **changes}).may_start is may
