"""When billing changed: by the market's record if it has one, else at the time that counts more."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from agent.decide.accounting import meter
from agent.decide.facts import LeaseChanged
from agent.decide.reconcile import billed_times
from agent.decide.reconcile.pass_memory import Memory, Suspicion
from agent.domain.market.instance import InstanceState
from agent.domain.market.interruption import Cause
from agent.domain.market.market_rules import MarketRules
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Bills, LeaseState
from agent.domain.work.kept_terms import KeptTerms
from tests.support import builders
from tests.support.listings import NOW, POLL

STARTED = builders.ago(hours=4)
SEEN = builders.ago(hours=3)
STARTS = builders.lease(state=LeaseState.STARTING, accrued_until=STARTED, has_run=False)


def gpu_hours(held: Any, ends: list[meter.Turn]) -> float:
    return sum(charge.running_seconds for charge in meter.accrue(held, NOW, ends)) / 3600


@pytest.mark.parametrize("state", [LeaseState.STARTING, LeaseState.MISSING, LeaseState.RELEASING])
def test_a_start_under_way_counts_from_the_last_look(state: LeaseState) -> None:
    held = builders.lease(state=state, accrued_until=STARTED, bills=Bills.DISK)
    assert gpu_hours(held, billed_times.to_the_end(held, billed_times.Look(SEEN), NOW)) == 3


def test_what_the_market_gave_back_is_a_start_under_way() -> None:
    held = builders.lease(state=LeaseState.STARTING, accrued_until=STARTED, interrupted_by=Cause.OUTBID)
    assert gpu_hours(held, billed_times.to_the_end(held, billed_times.Look(SEEN), NOW)) == 3


def test_a_start_that_the_record_dates_counts_from_there() -> None:
    events = (
        builders.event("started", at=builders.ago(hours=2)),
        builders.event("outbid", at=builders.ago(hours=1)),
    )
    assert gpu_hours(STARTS, billed_times.to_the_end(STARTS, billed_times.Look(SEEN, events), NOW)) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"paused_by_us": True},
        {"interrupted_by": Cause.OUTBID, "paused_by_us": True},
        {"interrupted_by": Cause.CONTRACT_END},
        {"has_failed": True},
        {"end_reason": "bid_too_low"},
        {"state": LeaseState.PAUSED},
        {"bills": Bills.NOTHING},
    ],
    ids=str,
)
def test_what_was_stopped_counts_as_stopped(changes: dict[str, Any]) -> None:
    held = builders.lease(**{"state": LeaseState.RELEASING, "accrued_until": STARTED, **changes})
    assert gpu_hours(held, billed_times.to_the_end(held, billed_times.Look(SEEN), NOW)) == 0


@pytest.mark.parametrize("state", [LeaseState.PAUSED, LeaseState.MISSING, LeaseState.RELEASING])
@pytest.mark.parametrize("why", [Cause.OUTBID, Cause.DISPLACED, Cause.OUT_OF_CREDIT])
def test_what_an_order_ends_in_a_dark_market_may_have_been_given_back_since_the_last_look(
    state: LeaseState, why: Cause
) -> None:
    held = builders.lease(state=state, interrupted_by=why, accrued_until=STARTED)
    assert gpu_hours(held, billed_times.to_the_end(held, billed_times.Look(SEEN), NOW)) == 3
    assert gpu_hours(held, billed_times.to_the_end(held, billed_times.Look(NOW - billed_times.UNSEEN), NOW)) == 0, (
        "it was just listed"
    )
    assert gpu_hours(held, billed_times.to_the_end(held, billed_times.Look(SEEN), NOW, is_ordered=False)) == 0
    waits_for_a_call = billed_times.Look(SEEN, rules=MarketRules(starts_by_itself=False))
    assert gpu_hours(held, billed_times.to_the_end(held, waits_for_a_call, NOW)) == 0, "it starts nothing by itself"


def test_what_runs_counts_to_its_end() -> None:
    held = builders.lease(accrued_until=STARTED)
    assert gpu_hours(held, billed_times.to_the_end(held, billed_times.Look(SEEN), NOW)) == 4


def test_a_silent_host_that_came_back_unrecorded_ran_before_it_was_outbid() -> None:
    """Offline, then nobody looked, then the record shows an outbid alone: it billed its GPU in between."""
    held = builders.lease(state=LeaseState.OFFLINE, bills=Bills.NOTHING, accrued_until=STARTED)
    view = builders.view(events=(builders.event("outbid", at=builders.ago(hours=1)),))
    change = billed_times.turned(held, view, Bills.DISK, (SEEN, NOW), NOW)
    assert gpu_hours(held, list(change.turns)) == 2


@pytest.mark.parametrize("is_ended", [False, True])
def test_the_disk_of_what_was_stopped_on_a_silent_host_counts_since_the_look_before_its_recorded_start(
    *, is_ended: bool
) -> None:
    """Outbid, then silent, then nobody looked: the record dates its start, not the return of its host before."""
    held = builders.lease(
        state=LeaseState.OFFLINE, bills=Bills.NOTHING, accrued_until=STARTED, interrupted_by=Cause.OUTBID
    )
    resumed = (builders.event("resumed", at=builders.ago(hours=1)),)
    change = billed_times.turned(held, builders.view(events=resumed), Bills.GPU_AND_DISK, (SEEN, NOW), NOW)
    ends = billed_times.to_the_end(held, billed_times.Look(SEEN, resumed), NOW) if is_ended else list(change.turns)
    disk = sum(charge.disk.micros for charge in meter.accrue(held, NOW, ends))
    assert (gpu_hours(held, ends), disk) == (1, held.disk_rate.over(3 * 3600).micros)
    late = billed_times.turned(held, builders.view(events=resumed), Bills.GPU_AND_DISK, (NOW, NOW), NOW).turns
    assert sum(charge.disk.micros for charge in meter.accrue(held, NOW, late)) == held.disk_rate.over(4 * 3600).micros


@pytest.mark.parametrize(("deadman", "hours"), [(3600, 3), (6 * 3600, 0), (None, 0)])
def test_what_a_switch_may_have_stopped_ran_since_its_silent_host_came_back(deadman: int | None, hours: float) -> None:
    """Offline, then nobody looked for three hours, then stopped: no record shows its return or a stop by its guard."""
    terms = msgspec.json.encode(
        KeptTerms(is_batch=False, endpoint="", bucket="", prefix="", done_codes=(0,), deadman_seconds=deadman)
    )
    held = builders.lease(
        state=LeaseState.OFFLINE, bills=Bills.NOTHING, accrued_until=SEEN, guard_run=1, guard_terms=terms.decode()
    )
    change = billed_times.turned(held, builders.view(), Bills.DISK, (SEEN, NOW), NOW, is_stopped=True)
    assert gpu_hours(held, list(change.turns)) == hours


@pytest.mark.parametrize(
    ("is_record_read", "is_stopped", "hours"), [(False, True, 3), (True, True, 0), (False, False, 0)]
)
def test_what_was_lost_while_it_started_may_have_run_where_no_record_could_be_read(
    *, is_record_read: bool, is_stopped: bool, hours: float
) -> None:
    view = msgspec.structs.replace(builders.view(), is_record_read=is_record_read)
    held = builders.lease(state=LeaseState.STARTING, bills=Bills.DISK, accrued_until=STARTED, has_run=False)
    change = billed_times.turned(held, view, Bills.DISK, (SEEN, NOW), NOW, is_stopped=is_stopped)
    assert gpu_hours(held, list(change.turns)) == hours


@pytest.mark.parametrize(
    ("changes", "is_record_read", "seen_at", "hours"),
    [
        ({}, False, SEEN, 3),
        ({}, True, SEEN, 0),
        ({}, False, NOW - timedelta(minutes=2), 0),
        ({"paused_by_us": True}, False, SEEN, 0),
        ({"interrupted_by": Cause.CONTAINER_EXIT}, False, SEEN, 0),
    ],
)
def test_what_is_listed_as_stopped_again_may_have_been_given_back_where_no_record_could_be_read(
    changes: dict[str, Any], *, is_record_read: bool, seen_at: Any, hours: float
) -> None:
    view = msgspec.structs.replace(builders.view(), is_record_read=is_record_read)
    stopped = {"state": LeaseState.PAUSED, "bills": Bills.DISK, "interrupted_by": Cause.OUTBID}
    held = builders.lease(**{**stopped, "accrued_until": STARTED, **changes})
    change = billed_times.turned(held, view, Bills.DISK, (seen_at, NOW), NOW, is_stopped=True)
    assert gpu_hours(held, list(change.turns)) == hours


def test_what_loaded_again_and_is_stopped_may_have_run_although_the_record_was_read() -> None:
    """The record has its resumption before the last look, and no stop by the instance's own key."""
    held = builders.lease(state=LeaseState.STARTING, bills=Bills.DISK, accrued_until=STARTED, has_run=True)
    resumed = builders.event("resumed", at=STARTED - timedelta(seconds=1))
    view = builders.view(events=(resumed,))
    change = billed_times.turned(held, view, Bills.DISK, (SEEN, NOW), NOW, is_stopped=True)
    assert gpu_hours(held, list(change.turns)) == 3
    assert billed_times.turned(held, view, Bills.DISK, (SEEN, NOW), NOW).turns == ()


@pytest.mark.parametrize(("has_run", "hours"), [(True, 2), (False, 0)])
def test_what_was_given_back_and_outbid_while_it_loaded_ran_in_between(*, has_run: bool, hours: float) -> None:
    """The record dates the first start of an instance; of a later one only when its GPU was given back."""
    held = builders.lease(state=LeaseState.STARTING, accrued_until=STARTED, has_run=has_run)
    view = builders.view(events=(builders.event("outbid", at=builders.ago(hours=1)),))
    assert gpu_hours(held, list(billed_times.turned(held, view, Bills.DISK, (SEEN, NOW), NOW).turns)) == hours


@pytest.mark.parametrize(("bills_while_loading", "hours"), [(True, 2), (False, 0)])
def test_what_was_stopped_before_a_listing_showed_it_billed_since_its_rent_where_loading_bills(
    *, bills_while_loading: bool, hours: float
) -> None:
    """The record of such a market shows the last change alone: the stop, and not that it ran before."""
    held = builders.lease(state=LeaseState.STARTING, accrued_until=STARTED, has_run=False)
    row = builders.instance(state=InstanceState.PAUSED, bills_while_loading=bills_while_loading)
    view = builders.view(instances=(row,), events=(builders.event("stopped", at=builders.ago(hours=1)),))
    change = billed_times.turned(held, view, Bills.DISK, (SEEN, NOW), NOW, is_stopped=True)
    assert gpu_hours(held, list(change.turns)) == hours


@pytest.mark.parametrize(
    ("changes", "dark", "may_have_run"),
    [
        ({"bills_while_loading": True}, timedelta(minutes=3), True),
        ({"bills_while_loading": True}, timedelta(minutes=2), False),
        ({"bills_while_loading": True, "state": InstanceState.FAILED}, timedelta(minutes=3), False),
        ({}, timedelta(minutes=3), False),
    ],
)
def test_what_no_record_shows_may_have_run_unseen_before_it_was_listed_as_stopped(
    changes: dict[str, Any], dark: timedelta, *, may_have_run: bool
) -> None:
    lease = builders.lease(state=LeaseState.STARTING, accrued_until=STARTED, has_run=False)
    row = builders.instance(**{"state": InstanceState.PAUSED, **changes})
    view, between = builders.view(instances=(row,)), (NOW - dark, NOW)
    assert billed_times.may_have_run(lease, view, row, between, POLL) is may_have_run
    unread = msgspec.structs.replace(view, is_record_read=False)
    is_stopped, is_dark = row.state is InstanceState.PAUSED, dark > billed_times.UNSEEN
    assert billed_times.may_have_run(lease, unread, row, between, POLL) is (is_stopped and is_dark)


@pytest.mark.parametrize(
    ("changes", "may_have_run"),
    [
        ({}, True),
        ({"interrupted_by": Cause.CONTAINER_EXIT}, False),
        ({"paused_by_us": True}, False),
        ({"has_failed": True}, False),
    ],
)
def test_what_was_outbid_before_it_ran_may_have_run_in_a_dark_stretch_without_a_record(
    changes: dict[str, Any], *, may_have_run: bool
) -> None:
    """Its disk counted as empty, and was released although it may have held the only copy of its work."""
    stopped = {"state": LeaseState.PAUSED, "bills": Bills.DISK, "has_run": False, "interrupted_by": Cause.OUTBID}
    lease = builders.lease(**{**stopped, "accrued_until": STARTED, **changes})
    row = builders.instance(state=InstanceState.PAUSED)
    view = builders.view(instances=(row,))
    unread, dark = msgspec.structs.replace(view, is_record_read=False), (NOW - timedelta(minutes=3), NOW)
    assert billed_times.may_have_run(lease, unread, row, dark, POLL) is may_have_run
    assert not billed_times.may_have_run(lease, view, row, dark, POLL), "the record shows each start"
    assert not billed_times.may_have_run(lease, unread, row, (NOW - timedelta(minutes=2), NOW), POLL)


def test_a_look_of_a_clock_that_is_behind_turns_no_earlier_than_what_was_metered() -> None:
    """A pod bills while it loads, so nothing turns but its state: it cannot have run before it was rented."""
    held = builders.lease(state=LeaseState.STARTING, accrued_until=STARTED)
    yesterday = STARTED - timedelta(days=1)
    change = billed_times.turned(held, builders.view(), Bills.GPU_AND_DISK, (yesterday, yesterday), STARTED)
    assert change.at == STARTED


def test_the_record_is_read_for_a_loss_that_changes_nothing_of_what_is_billed() -> None:
    """It loads and is paused in the next look: its disk is billed before and after, and it may have run between."""
    lost = replace(STARTS, state=LeaseState.PAUSED)
    assert billed_times.wants_record([LeaseChanged(STARTS, lost, EventKind.LEASE_START_LOST, cause=Cause.OUTBID)])
    assert billed_times.wants_record(
        [LeaseChanged(STARTS, replace(STARTS, bills=Bills.GPU_AND_DISK), EventKind.LEASE_RUNNING)]
    )
    assert not billed_times.wants_record([LeaseChanged(STARTS, replace(STARTS, accrued_until=NOW), None)])


def test_the_last_start_of_what_is_loading_goes_on() -> None:
    """Given back and still loading hours later: it has not billed its GPU since."""
    told = (builders.event("outbid", at=STARTED), builders.event("resumed", at=SEEN))
    view = builders.view(events=told)
    loading = builders.instance(state=InstanceState.LOADING)
    assert billed_times.as_shown(view, loading).events == told[:1]
    assert billed_times.as_shown(view, builders.instance()) is view
    assert billed_times.as_shown(view, builders.instance(2, state=InstanceState.LOADING)) is view
    assert billed_times.as_shown(builders.view(events=told[:1]), loading).events == told[:1]


def test_a_look_that_made_a_suspicion_is_not_the_last_one_that_counts() -> None:
    earlier, later = builders.ago(minutes=9), builders.ago(minutes=1)
    metered = (builders.ago(minutes=10), NOW, STARTED, later)
    leases = tuple(builders.lease(number, accrued_until=at) for number, at in enumerate(metered, start=1))
    doubted = Suspicion(LeaseState.PAUSED, later, earlier)
    last_seen = dict.fromkeys(("vast-1", "vast-2", "vast-4"), later)
    memory = Memory(suspicions={"vast-1": doubted, "vast-4": doubted}, last_seen=last_seen)
    found = billed_times.looks(builders.fleet(leases=leases), memory)
    assert [found[f"vast-{number}"].at for number in (1, 2, 3, 4)] == [earlier, later, STARTED, later], "4 is recorded"


@pytest.mark.parametrize(
    ("cause", "is_read", "hours"), [("outbid", True, 0), ("outbid", False, 3), ("host_offline", True, 3)]
)
def test_what_was_stopped_before_its_host_fell_silent_starts_on_record(
    cause: str, *, is_read: bool, hours: int
) -> None:
    """Its contract ended while nobody looked: no record shows that."""
    held = builders.lease(
        state=LeaseState.OFFLINE, accrued_until=SEEN, bills=Bills.NOTHING, interrupted_by=Cause(cause)
    )
    view = builders.view(instances=(builders.instance(state=InstanceState.PAUSED),), is_record_read=is_read)
    ended = builders.ago(hours=1)
    change = billed_times.turned(held, view, Bills.DISK, (SEEN, NOW), NOW, is_stopped=True, ends_at=ended)
    assert gpu_hours(held, list(change.turns)) == hours


@pytest.mark.parametrize(("ended", "hours"), [(builders.ago(hours=3.5), 0), (builders.ago(hours=1), 3)])
def test_what_was_over_at_the_last_look_did_not_come_back_with_its_host(ended: Any, hours: int) -> None:
    """Its end was put off while nobody looked, and the host answers again."""
    held = builders.lease(state=LeaseState.OFFLINE, accrued_until=SEEN, bills=Bills.NOTHING, ends_at=ended)
    view = builders.view(instances=(builders.instance(state=InstanceState.PAUSED),), is_record_read=True)
    renewed = builders.ago(hours=0.5)
    change = billed_times.turned(held, view, Bills.DISK, (SEEN, NOW), NOW, is_stopped=True, ends_at=renewed)
    assert gpu_hours(held, list(change.turns)) == pytest.approx(hours)


def test_an_end_that_the_listing_puts_forward_and_nobody_believes_yet_may_have_come() -> None:
    """Its host was silent and answered again while nobody looked: the GPU billed until that end."""
    known = builders.ago(days=-3)
    held = builders.lease(state=LeaseState.OFFLINE, accrued_until=SEEN, bills=Bills.NOTHING, ends_at=known)
    row = builders.instance(state=InstanceState.PAUSED, ends_at=builders.ago(hours=1))
    view = builders.view(instances=(row,), is_record_read=True)
    change = billed_times.turned(held, view, Bills.DISK, (SEEN, NOW), NOW, is_stopped=True, ends_at=known)
    assert gpu_hours(held, list(change.turns)) == 3
