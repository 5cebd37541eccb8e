"""What slots did, from the ledger's events: gapless, the further of two leases, and the work that was lost."""

import itertools
import re
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.domain.market.interruption import Cause
from agent.domain.record.account import LostWork
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.slot import Slot
from agent.simulator import climate_files
from agent.web.feed import slot_history
from agent.web.feed.slot_history import Doing, History, Stretch
from agent.web.page import timeline
from tests.support import builders
from tests.support.builders import NOW, ago
from tests.support.scene import work
from tests.web.page import served

DAY = timedelta(days=1)
SINCE = NOW - DAY
HOUR = timedelta(hours=1)


def lease(number: int, opened: datetime, **changes: object) -> Lease:
    return builders.lease(number, opened_at=opened, state_since=opened, **changes)


def events(*told: tuple[EventKind, datetime], of: Lease) -> list[Event]:
    """Return events of one lease, oldest first."""
    return [Event(at=at, kind=kind, lease_id=of.lease_id) for kind, at in told]


def hours(history: History) -> list[tuple[str, float]]:
    return [(each.doing.value, each.span / HOUR) for each in history.stretches]


def test_a_life_from_rent_to_release_with_a_loss_and_its_work() -> None:
    mine = lease(1, ago(hours=20), state=LeaseState.ENDED, ended_at=ago(hours=4))
    happened = events(
        (EventKind.LEASE_RUNNING, ago(hours=19)),
        (EventKind.LEASE_INTERRUPTED, ago(hours=10)),
        (EventKind.LEASE_STARTING, ago(hours=9)),
        (EventKind.LEASE_RESUMED, ago(hours=8)),
        (EventKind.LEASE_RELEASED_BY_US, ago(hours=5)),
        (EventKind.LEASE_RELEASED, ago(hours=4)),
        of=mine,
    )
    lost_work = [LostWork(mine.lease_id, ago(hours=10), Cause.OUTBID, 1_800_000_000)]
    found = slot_history.history([mine], {mine.lease_id: happened}, {}, lost_work, SINCE, NOW)
    assert hours(found) == [
        ("empty", 4), ("loading", 1), ("running", 9), ("paused", 1), ("loading", 1), ("running", 3), ("empty", 5),
    ]  # fmt: skip
    (lost,) = found.lost
    assert (lost.begins, lost.ends, lost.cause) == (ago(hours=10, minutes=30), ago(hours=10), "outbid")
    assert timeline.words(found) == (
        "running 12 h, loading 2 h, paused 1 h, empty 9 h, work lost in 1 interruption 30 min"
    )


def test_a_tooltip_shows_the_year_where_it_is_not_this_one() -> None:
    new_year = NOW.replace(month=1, day=1, hour=8)
    stretches = [
        Stretch(new_year - timedelta(hours=20), new_year - timedelta(hours=2), Doing.RUNNING),
        Stretch(new_year - timedelta(hours=2), new_year, Doing.PAUSED),
    ]
    text = timeline.drawn(History(stretches, []), new_year - DAY, new_year)
    assert f"running, {new_year.year - 1}-12-31 12:00 to 06:00 UTC" in text
    assert "paused, 01-01 06:00 to 08:00 UTC" in text


def test_while_it_moves_the_further_lease_counts() -> None:
    old = lease(1, ago(hours=30), state=LeaseState.ENDED, ended_at=ago(hours=2))
    new = lease(2, ago(hours=4), state=LeaseState.RUNNING)
    happened = {
        old.lease_id: events((EventKind.LEASE_RELEASED, ago(hours=2)), of=old),
        new.lease_id: events((EventKind.LEASE_RUNNING, ago(hours=3)), of=new),
    }
    before = {old.lease_id: Event(at=ago(hours=29), kind=EventKind.LEASE_RUNNING, lease_id=old.lease_id)}
    assert hours(slot_history.history([old, new], happened, before, [], SINCE, NOW)) == [("running", 24)]


def test_a_lease_older_than_the_day_goes_on_as_its_last_event_left_it() -> None:
    mine = lease(1, ago(hours=50), state=LeaseState.PAUSED)
    before = {mine.lease_id: Event(at=ago(hours=40), kind=EventKind.LEASE_INTERRUPTED, lease_id=mine.lease_id)}
    assert hours(slot_history.history([mine], {}, before, [], SINCE, NOW)) == [("paused", 24)]
    assert hours(slot_history.history([], {}, {}, [], SINCE, NOW)) == [("empty", 24)]


TIMES = st.integers(0, 48 * 60).map(lambda minutes: NOW - timedelta(minutes=minutes))
LIVES = st.lists(st.tuples(TIMES, st.lists(st.tuples(st.sampled_from(list(slot_history.AFTER)), TIMES))), max_size=4)


@given(LIVES)
def test_stretches_fill_the_day_without_a_gap(lives: list[tuple[datetime, list[tuple[EventKind, datetime]]]]) -> None:
    leases = [lease(number, opened) for number, (opened, _) in enumerate(lives, 1)]
    happened = {
        mine.lease_id: events(*sorted(told, key=lambda each: each[1]), of=mine)
        for mine, (_, told) in zip(leases, lives, strict=True)
    }
    found = slot_history.history(leases, happened, {}, [], SINCE, NOW).stretches
    assert (found[0].begins, found[-1].ends) == (SINCE, NOW)
    for earlier, later in itertools.pairwise(found):
        assert earlier.ends == later.begins
        assert earlier.doing is not later.doing
    assert all(each.ends > each.begins for each in found)


@pytest.mark.nightly
async def test_the_page_draws_each_slot_and_says_it_in_words(tmp_path: Path) -> None:
    async with served(tmp_path, workloads=(work(slots=2),), climate=climate_files.named("bidding_war")) as page:
        page.world.is_checked = False
        for _ in range(40):
            await page.world.cycle(minutes=3)
        now = page.world.clock.now()
        reader = await page.world.app.ledger.reader()
        places = page.world.app.rules.workloads[0].places
        known = page.world.app.ledger.recollection(now).leases
        found = await slot_history.histories(places, known, reader, now - DAY, now)
        _, text = await page.get("/")
    bands = re.findall(r'<svg class="band"[^>]*aria-label="([^"]+)"', text)
    assert bands == [timeline.words(found[place]) for place in places]
    assert sum(len(each.lost) for each in found.values()) >= 1
    assert text.count('class="lost" x=') == sum(len(each.lost) for each in found.values())
    for each in found.values():
        assert each.total(Doing.RUNNING) > HOUR
        assert sum((stretch.span for stretch in each.stretches), timedelta()) == DAY


async def test_what_a_lease_did_before_the_day_is_found_in_the_ledger(tmp_path: Path) -> None:
    async with served(tmp_path, workloads=(work(slots=1),)) as page:
        page.world.is_checked = False
        now, place = page.world.clock.now(), Slot("train", 5)
        opened = now - timedelta(days=3)
        old = msgspec.structs.replace(lease(50, opened, state=LeaseState.PAUSED), slot=place, accrued_until=now)
        other = msgspec.structs.replace(lease(51, opened, state=LeaseState.RUNNING), slot=Slot("train", 4))
        told = [
            (EventKind.LEASE_RUNNING, 60, old),
            (EventKind.LEASE_INTERRUPTED, 50, old),
            (EventKind.LEASE_REBID, 40, old),
            (EventKind.LEASE_RUNNING, 30, other),
        ]
        async with page.world.app.ledger.transaction() as tx:
            for each in (old, other):
                tx.open_lease(each)
            for kind, hours_ago, of in told:
                at = now - timedelta(hours=hours_ago)
                tx.append_event(Event(at=at, kind=kind, workload="train", slot=of.slot.index, lease_id=of.lease_id))
        known = page.world.app.ledger.recollection(now).leases
        reader = await page.world.app.ledger.reader()
        found = await slot_history.histories([place], known, reader, now - DAY, now)
        nothing = await slot_history.histories([], known, reader, now - DAY, now)
    assert hours(found[place]) == [("paused", 24)]
    assert nothing == {}
