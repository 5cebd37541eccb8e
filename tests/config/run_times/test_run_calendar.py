"""Windows as spans of time, in every zone and over every change of its clock, against a clock read minute by minute."""

import datetime as dt
import itertools
import zoneinfo
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent.config.run_times import run_calendar
from agent.config.run_times.run_calendar import Span
from agent.domain.work.run_times.run_window import WindowRule

MINUTE, HOUR, DAY = dt.timedelta(minutes=1), dt.timedelta(hours=1), dt.timedelta(days=1)
BERLIN = "Europe/Berlin"
ZONES = sorted(zoneinfo.available_timezones() - {"localtime", "Factory"})
CHANGES = [dt.datetime(2026, 3, 29, tzinfo=dt.UTC), dt.datetime(2026, 10, 25, tzinfo=dt.UTC)]
zones = st.sampled_from(ZONES) | st.sampled_from([BERLIN, "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"])
days = st.integers(0, 14_000).map(lambda count: dt.datetime(1999, 1, 1, tzinfo=dt.UTC) + count * DAY)
minutes, hours = st.integers(0, 59), st.integers(0, 23)


def rule(cron: str, lasts: dt.timedelta, zone: str = BERLIN) -> WindowRule:
    return WindowRule(cron, lasts, zone)


def utc(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)


def starts(rules: tuple[WindowRule, ...], since: dt.datetime, until: dt.datetime) -> list[str]:
    return [f"{span.opens:%m-%d %H:%M}" for span in run_calendar.spans(rules, since, until)]


def walked(minute: int, hour: int, zone: str, since: dt.datetime, until: dt.datetime) -> Iterator[dt.datetime]:
    """Yield when a daily window opens, as somebody would who watches the zone's clock minute by minute."""
    clock = zoneinfo.ZoneInfo(zone)
    seen: set[dt.datetime] = set()
    at, before = since, since.astimezone(clock).replace(tzinfo=None)
    while at < until:
        shown = at.astimezone(clock).replace(tzinfo=None)
        step = before + MINUTE
        # A clock that jumps ahead skips times: what would have begun in between begins at the jump.
        while step <= shown or step == before + MINUTE:
            wall = min(shown, step)
            is_due = (wall.hour, wall.minute) == (hour, minute)
            if is_due and wall not in seen:
                seen.add(wall)
                yield at
            step += MINUTE
        before, at = shown, at + MINUTE


def test_a_night_on_weekdays() -> None:
    nights = (rule("0 20 * * 1-5", 12 * HOUR),)
    found = list(run_calendar.spans(nights, utc("2026-11-23T00:00"), utc("2026-11-30T00:00")))
    assert [f"{span.opens:%a %H:%M}-{span.closes:%a %H:%M}" for span in found] == [
        "Mon 19:00-Tue 07:00",
        "Tue 19:00-Wed 07:00",
        "Wed 19:00-Thu 07:00",
        "Thu 19:00-Fri 07:00",
        "Fri 19:00-Sat 07:00",
    ]
    now = run_calendar.now(nights, utc("2026-11-28T12:00"))
    assert (now.is_open, now.until, now.spoken) == (False, utc("2026-11-30T19:00"), "Mon 20:00 Europe/Berlin")
    night = run_calendar.now(nights, utc("2026-11-23T19:00"))
    assert (night.is_open, night.spoken) == (True, "Tue 08:00 Europe/Berlin")
    assert not run_calendar.now(nights, utc("2026-11-24T07:00")).is_open, "it ends at its end"


def test_a_window_lasts_its_length_over_a_change_of_the_clock() -> None:
    nights = (rule("0 20 * * *", 12 * HOUR),)
    summer, winter = (next(run_calendar.spans(nights, at - 6 * HOUR, at)) for at in CHANGES)
    assert [span.closes - span.opens for span in (summer, winter)] == [12 * HOUR, 12 * HOUR]
    clock = zoneinfo.ZoneInfo(BERLIN)
    assert [f"{span.closes.astimezone(clock):%H:%M}" for span in (summer, winter)] == ["09:00", "07:00"]


def test_a_time_that_the_clock_skips_begins_at_the_skip() -> None:
    assert starts((rule("30 2 * * *", HOUR),), CHANGES[0] - DAY, CHANGES[0] + 2 * DAY) == [
        "03-28 01:30",
        "03-29 01:00",
        "03-30 00:30",
    ]


def test_a_time_that_the_clock_shows_twice_begins_once() -> None:
    assert starts((rule("30 2 * * *", 20 * MINUTE),), CHANGES[1] - DAY, CHANGES[1] + 2 * DAY) == [
        "10-24 00:30",
        "10-25 00:30",
        "10-26 01:30",
    ]


def test_windows_that_touch_are_one() -> None:
    whole = (rule("0 0 * * *", 12 * HOUR, "UTC"), rule("0 12 * * *", 12 * HOUR, "UTC"))
    always = run_calendar.now(whole, utc("2026-11-23T12:00"))
    assert (always.is_open, always.until) == (True, None), "it never closes"
    two = (rule("0 8 * * *", 4 * HOUR, "UTC"), rule("0 11 * * *", 2 * HOUR, "Europe/Lisbon"))
    now = run_calendar.now(two, utc("2026-11-23T09:00"))
    assert (now.until, now.spoken) == (utc("2026-11-23T13:00"), "Mon 13:00 Europe/Lisbon")


def test_a_window_far_away_says_its_date() -> None:
    now = run_calendar.now((rule("0 0 1 1 *", DAY, "UTC"),), utc("2026-02-01T00:00"))
    assert (now.is_open, now.spoken) == (False, "Fri 2027-01-01 00:00 UTC")


@pytest.mark.parametrize(
    ("cron", "lasts", "is_refused"),
    [("* * * * *", HOUR, True), ("* * 1 6 *", HOUR, True), ("*/5 * * * *", HOUR, False), ("0 0 * * *", DAY, False)],
)
def test_what_begins_too_often(cron: str, lasts: dt.timedelta, is_refused: bool) -> None:
    assert run_calendar.is_too_often(rule(cron, lasts), utc("2024-01-01T00:00")) is is_refused


@settings(max_examples=40, deadline=None)
@given(zones, days, hours, minutes, st.integers(10, 1_800))
@example(BERLIN, CHANGES[0], 2, 30, 60)
@example(BERLIN, CHANGES[1], 2, 30, 60)
@example("Australia/Lord_Howe", utc("2026-10-04T00:00"), 2, 15, 60)
@example("Pacific/Apia", utc("2011-12-30T00:00"), 12, 0, 60)
@example("America/Nuuk", utc("2026-03-28T00:00"), 22, 30, 60)
@example("Antarctica/Casey", utc("2010-03-04T00:00"), 0, 30, 60)
def test_windows_open_as_the_clock_of_their_zone_shows(
    zone: str, day: dt.datetime, hour: int, minute: int, lasts: int
) -> None:
    window = rule(f"{minute} {hour} * * *", lasts * MINUTE, zone)
    since, until = day - DAY, day + 2 * DAY
    seen = list(walked(minute, hour, zone, since - 2 * DAY, until))
    merged: list[Span] = []
    for opens in seen:
        closes = opens + lasts * MINUTE
        if merged and opens <= merged[-1].closes:
            merged[-1] = Span(merged[-1].opens, closes, zone)
        else:
            merged.append(Span(opens, closes, zone))
    wanted = [span for span in merged if span.closes > since and span.opens >= since]
    found = [span for span in run_calendar.spans((window,), since, until) if span.opens >= since]
    shown, expected = ([(span.opens, min(span.closes, until)) for span in of] for of in (found, wanted))
    assert shown == expected


@settings(max_examples=30, deadline=None)
@given(st.lists(st.builds(rule, st.sampled_from(["0 20 * * 1-5", "15 3 1 * *", "*/30 * * * 0"]), st.timedeltas(
    10 * MINUTE, 5 * DAY), zones), min_size=1, max_size=3), days, st.integers(0, 3 * 1_440))  # fmt: skip
def test_an_instant_is_open_exactly_within_a_span(rules: list[WindowRule], day: dt.datetime, after: int) -> None:
    at = day + after * MINUTE
    now = run_calendar.now(tuple(rules), at)
    spans = list(run_calendar.spans(tuple(rules), at, at + 20 * DAY))
    assert all(first.closes < then.opens for first, then in itertools.pairwise(spans))
    inside = [span for span in spans if span.opens <= at < span.closes]
    assert now.is_open is bool(inside)
    assert (now.until is None and now.is_open) or (now.until is not None and now.until > at)
    if not inside and spans:
        assert now.until == spans[0].opens
