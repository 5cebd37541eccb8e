"""Quiet hours of notifications: their reading, and what they may not say."""

import datetime as dt
from pathlib import Path

import pytest

from agent import config
from agent.config.notify_settings import OF_EVENTS, OF_MONEY, Notify, Quiet, Severity, is_of_money
from agent.config.problems import ConfigError
from agent.domain.record.event_kind import EventKind
from agent.domain.work.run_times.run_window import WindowRule
from tests.support.configs import GOOD, STRATEGIES


def loaded(tmp_path: Path, line: str) -> Notify:
    path = tmp_path / "agent.toml"
    path.write_text(f"{GOOD}[notify]\n{line}\n")
    return config.load(path, strategies=STRATEGIES).notify


def test_quiet_hours_become_what_they_say(tmp_path: Path) -> None:
    line = 'quiet = [{ cron = "0 22 * * *", for = "9h", zone = "Europe/Berlin", up_to = "warning" }]'
    hours = WindowRule("0 22 * * *", dt.timedelta(hours=9), "Europe/Berlin")
    assert loaded(tmp_path, line).quiet == (Quiet(hours, Severity.WARNING),)
    assert loaded(tmp_path, 'quiet = [{ cron = "0 22 * * *", for = "9h" }]').quiet[0].up_to is Severity.NOTICE


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('quiet = [{ cron = "0 22 * * *", for = "9h", up_to = "critical" }]', 'must be "info", "notice" or "warning"'),
        ('quiet = [{ cron = "0 22 * *", for = "9h" }]', "must have the five fields of a crontab"),
        ('quiet = [{ cron = "0 0 * * *", for = "1d" }]', "the quiet hours never end"),
    ],
)
def test_what_they_may_not_say(tmp_path: Path, line: str, told: str) -> None:
    with pytest.raises(ConfigError) as error:
        loaded(tmp_path, line)
    assert told in str(error.value)


def test_every_pattern_of_money_names_an_event_or_a_whole_group() -> None:
    grouped = {pattern for pattern, _ in OF_EVENTS}
    assert [each for each in OF_MONEY if each not in grouped and each not in set(EventKind) and "*" not in each] == []
    assert all(any(is_of_money(kind) for kind in EventKind if kind.startswith(noun)) for noun in ("budget", "orphan"))
    assert not is_of_money(EventKind.LEASE_INTERRUPTED)
