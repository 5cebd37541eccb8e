"""The table with one window in which a workload may run, and the time before which it does not start."""

import zoneinfo
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from agent.config import time_words
from agent.config.run_times import crontab, run_calendar
from agent.config.toml_table import Table
from agent.config.value_kinds import Line, Span, refused
from agent.domain.work.run_times.run_window import WindowRule
from agent.domain.work.workload import CheckpointPlace

_SOME_DAY = datetime(2024, 1, 1, tzinfo=UTC)
"""The beginning of a leap year. What a file may say does not depend on the day on which it is read."""


def _cron(value: str) -> str:
    try:
        has_time = crontab.next_time(value, _SOME_DAY) is not None
    except crontab.CrontabError as error:
        raise refused("bad_cron", str(error)) from None
    if not has_time:
        raise refused("bad_cron", 'names a day that no year has; write for example cron = "0 20 * * 1-5"')
    return value


def _zone(value: str) -> str:
    try:
        zoneinfo.ZoneInfo(value)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        sentence = 'is no time zone that this machine knows; write for example zone = "Europe/Berlin"'
        raise refused("bad_zone", f"{sentence}, or install the package tzdata") from None
    return value


def _time(value: object) -> datetime:
    return time_words.of_key(value, "not_before = 2027-01-31T18:00:00Z")


NotBefore = Annotated[datetime, BeforeValidator(_time), WithJsonSchema({"type": "string", "format": "date-time"})]
"""An instant, as a time of TOML or as text."""


class WindowTable(Table):
    """A time in which a workload may run."""

    cron: Annotated[Line, Field(max_length=256, examples=["0 20 * * 1-5"]), AfterValidator(_cron)]
    """When it begins, as a crontab: minute, hour, day of the month, month, day of the week (0 and 7 are Sunday)."""
    lasts: Annotated[Span, Field(alias="for", ge=timedelta(minutes=10), le=timedelta(days=7), examples=["12h"])]
    """How long it lasts, in elapsed time: also over a change of the clock."""
    zone: Annotated[Line, Field(min_length=1, max_length=64, examples=["Europe/Berlin"]), AfterValidator(_zone)] = "UTC"
    """The time zone of `cron`."""

    @model_validator(mode="after")
    def _is_seldom(self) -> Self:
        if run_calendar.is_too_often(self.rule(), _SOME_DAY):
            raise refused("bad_cron", "begins more often than every five minutes; write a time at which windows begin")
        return self

    def rule(self) -> WindowRule:
        """Return it as the domain's value."""
        return WindowRule(self.cron, self.lasts, self.zone)


def refuse_misfit(
    tables: Iterable[WindowTable], outside: str | None, place: str, *, has_deadline: bool, may_lose_disk: bool
) -> None:
    """Refuse windows beside a deadline, and the release of a disk that may hold the only copy of work (rule 11)."""
    has_windows = any(True for _ in tables)
    if outside is not None and not has_windows:
        raise refused("missing_key", "outside says what happens outside of windows; write windows, or remove it")
    if has_windows and has_deadline:
        raise refused("conflict", "a deadline counts every hour until its time; remove windows or the deadline")
    if outside == "release" and CheckpointPlace(place) is CheckpointPlace.DISK and not may_lose_disk:
        sentence = "the disk may hold the only copy of work, so the end of a window must not release it"
        raise refused("conflict", f'{sentence}; write outside = "pause", or may_lose_disk = true')
