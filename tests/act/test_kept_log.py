"""The files of kept logs: bounded, whole, and safe to read whatever a market or a host says."""

import datetime as dt
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.act.kept_logs import kept_log
from agent.act.kept_logs.kept_log import KeptLog

START = dt.datetime(2026, 7, 27, tzinfo=dt.UTC)
ROOM = 10**6


def header(number: int = 0, **changes: Any) -> KeptLog:
    made = KeptLog(f"vast-{number}", "train/0", "vast", 1, "outbid", START + dt.timedelta(minutes=number), 0)
    return msgspec.structs.replace(made, **changes)


def names(folder: Path) -> list[str]:
    return [kept.lease for kept, _ in kept_log.headers(folder)]


def test_last_lines_are_kept_whole_and_only_for_the_daemons_user(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    lines = ["x" * 1_000 for _ in range(2_000)] + ["the last word"]
    written = kept_log.write(folder, header(), lines, ROOM)
    [(read, file)] = kept_log.headers(folder)
    assert read == written
    assert kept_log.lines_of(file) == lines[-written.lines :]
    assert 200 < written.lines < len(lines)
    assert [file.stat().st_mode & 0o777, folder.stat().st_mode & 0o777] == [0o600, 0o700]


def test_failed_reading_replaces_no_log(tmp_path: Path) -> None:
    kept_log.write(tmp_path, header(), ["a"], ROOM)
    assert not kept_log.write(tmp_path, header(problem="throttled"), [], ROOM).problem
    assert [kept_log.lines_of(file) for _, file in kept_log.headers(tmp_path)] == [["a"]]


@pytest.mark.parametrize(
    "lease", ["vast-../../etc/passwd", "runpod-" + "x" * 300, "vast-\n\x1b[2J", ".", "vast-1.000009"]
)
def test_no_id_of_a_market_leaves_the_folder(tmp_path: Path, lease: str) -> None:
    folder = tmp_path / "logs"
    kept_log.write(folder, header(lease=lease), ["a"], ROOM)
    assert names(folder) == [lease]
    assert list(tmp_path.iterdir()) == [folder]


def test_the_oldest_are_deleted_past_the_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_log, "MOST_FILES", 5)
    for number in range(8):
        kept_log.write(tmp_path, header(number), ["a"], ROOM)
        _age(tmp_path, number)
    assert names(tmp_path) == [f"vast-{number}" for number in range(3, 8)]
    size = max(file.stat().st_size for file in tmp_path.iterdir())
    kept_log.write(tmp_path, header(8), ["a"], 2 * size)
    assert names(tmp_path) == ["vast-7", "vast-8"]


def test_only_the_last_runs_of_one_lease_are_kept(tmp_path: Path) -> None:
    for run in range(9):
        kept_log.write(tmp_path, header(1, run=run), ["a"], ROOM)
        _age(tmp_path, run)
    assert {kept.run for kept, _ in kept_log.headers(tmp_path)} == {5, 6, 7, 8}


def test_what_is_torn_is_skipped(tmp_path: Path) -> None:
    kept_log.write(tmp_path, header(1), ["a" * 500], ROOM)
    [file] = tmp_path.iterdir()
    (tmp_path / f"half{kept_log.SUFFIX}").write_bytes(file.read_bytes()[:20])
    (tmp_path / f"no{kept_log.SUFFIX}").write_bytes(b"no gzip")
    assert names(tmp_path) == ["vast-1"]
    assert kept_log.lines_of(tmp_path / f"half{kept_log.SUFFIX}") == []


def test_previous_is_the_newest_but_the_present_run() -> None:
    first, second = header(1, run=1), header(1, run=2, taken_at=START + dt.timedelta(hours=1))
    failed = header(2, taken_at=START + dt.timedelta(hours=2), problem="throttled")
    other = header(3, slot="train/1", taken_at=START + dt.timedelta(hours=3))
    kept = [first, second, failed, other]
    assert kept_log.previous(kept, "train/0", None) is second
    assert kept_log.previous(kept, "train/0", ("vast-1", 2)) is first
    assert kept_log.previous(kept, "train", None) is other
    assert kept_log.previous(kept, "vast-2", None) is failed
    assert kept_log.previous(kept, "serve/0", None) is None


def _age(folder: Path, number: int) -> None:
    """Give the newest file an age of its own: a file system may have coarse times."""
    newest = max(folder.iterdir(), key=lambda file: file.stat().st_mtime_ns)
    os.utime(newest, ns=(0, (number + 1) * 10**9))
