"""The times in which a workload may run, and its first start: their forms, and what they may not say."""

import datetime as dt
from pathlib import Path

import pytest

from agent import config
from agent.config.problems import ConfigError
from agent.domain.work.run_times.run_window import Outside, WindowRule
from agent.domain.work.workload import Workload
from tests.support.configs import STRATEGIES, added

NIGHTS = 'windows = [{ cron = "0 20 * * 1-5", for = "12h", zone = "Europe/Berlin" }]'


def loaded(tmp_path: Path, *lines: str) -> Workload:
    path = tmp_path / "agent.toml"
    path.write_text(added(*lines))
    return config.load(path, strategies=STRATEGIES).workloads[0]


def test_without_windows_it_always_may_run(tmp_path: Path) -> None:
    work = loaded(tmp_path)
    assert (work.windows, work.outside, work.not_before) == ((), Outside.PAUSE, None)


def test_windows_become_what_they_say(tmp_path: Path) -> None:
    work = loaded(tmp_path, NIGHTS, 'outside = "release"', "may_lose_disk = true")
    assert work.windows == (WindowRule("0 20 * * 1-5", dt.timedelta(hours=12), "Europe/Berlin"),)
    assert work.outside is Outside.RELEASE


@pytest.mark.parametrize(
    "line", ["not_before = 2027-01-31T19:00:00+01:00", 'not_before = "2027-01-31T18:00Z"', 'not_before = "2027-01-31"']
)
def test_a_first_start_is_an_instant_in_utc(tmp_path: Path, line: str) -> None:
    at = dt.datetime(2027, 1, 31, 18 if "T" in line else 0, tzinfo=dt.UTC)
    assert loaded(tmp_path, line).not_before == at


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (['windows = [{ cron = "0 20 * * 1-5" }]'], "for: is missing"),
        (['windows = [{ cron = "0 26 * * *", for = "1h" }]'], "the last value (26) is higher than the maximum"),
        (['windows = [{ cron = "0 0 30 2 *", for = "1h" }]'], "names a day that no year has"),
        (['windows = [{ cron = "* * * * *", for = "1h" }]'], "begins more often than every five minutes"),
        (['windows = [{ cron = "0 20 * * *", for = "5m" }]'], 'write for example for = "12h"'),
        (['windows = [{ cron = "0 20 * * *", for = "8d" }]'], 'write for example for = "12h"'),
        (['windows = [{ cron = "0 20 * * *", for = "1h", zone = "Berlin" }]'], "is no time zone that this machine"),
        (['windows = [{ cron = "0 20 * * *", for = "1h", zone = "/etc/x" }]'], "is no time zone that this machine"),
        (['outside = "pause"'], "write windows, or remove it"),
        ([NIGHTS, 'outside = "stop"'], 'must be "pause" or "release"'),
        ([NIGHTS, 'outside = "release"'], 'write outside = "pause", or may_lose_disk = true'),
        ([NIGHTS, 'kind = "batch"', 'deadline = { hours = 4, by = "2027-01-31T18:00Z" }'], "remove windows or the"),
        (["not_before = 2027-01-31T18:00:00"], "must be a time with its zone"),
        (["not_before = 7"], "must be a time with its zone"),
        (["not_before = 9999-12-31T23:00:00-12:00"], "must lie between 2000 and 2100"),
        (['not_before = "9999-12-01T00:00Z"'], "must lie between 2000 and 2100"),
    ],
)
def test_what_they_may_not_say(tmp_path: Path, lines: list[str], told: str) -> None:
    with pytest.raises(ConfigError) as error:
        loaded(tmp_path, *lines)
    assert told in str(error.value)
