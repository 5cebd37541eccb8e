"""The work's whole output goes to the bucket: in order, bounded; the next guard carries what a killed one left."""

import gzip
import signal
from pathlib import Path

import pytest

from agent.guard.bucket_notes import BucketNotes
from agent.guard.guard_clock import GuardClock
from agent.guard.guard_output import GuardOutput
from agent.guard.logs import log_carrier, log_spool
from agent.guard.logs.log_carrier import LogCarrier
from agent.guard.logs.log_spool import LogSpool
from agent.guard.object_store import Unreachable
from tests.support import s3_server
from tests.support.guarded import ROOT, Instance
from tests.support.memory_store import MemoryStore

START = 1_785_000_000.0


def text(store: MemoryStore) -> bytes:
    keys = sorted(key for key in store.objects if "/logs/L1/" in key)
    return b"".join(gzip.decompress(store.objects[key].body) for key in keys)


def carrier(place: Path, store: MemoryStore) -> tuple[LogCarrier, GuardOutput]:
    output = GuardOutput()
    return LogCarrier("L1", place, BucketNotes(store, ROOT), GuardClock(50), output), output


def test_output_arrives_whole_and_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_spool, "LARGEST_PIECE", 1_000)
    store = MemoryStore()
    mine, _ = carrier(tmp_path, store)
    lines = [b"line %d\n" % number for number in range(500)]
    for number, line in enumerate(lines):
        mine._take(line)
        if number % 100 == 0:
            mine.finish()
    mine.finish()
    assert text(store) == b"".join(lines)
    assert list((tmp_path / "logs").iterdir()) == []


def test_bucket_that_is_away_keeps_output_on_a_bounded_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_spool, "MOST_WAITING", 5_000)
    store = MemoryStore()

    def away(*_: object) -> None:
        raise Unreachable("away")

    store.before_put = away
    mine, _ = carrier(tmp_path, store)
    for _ in range(20):
        mine._take(b"x" * 999 + b"\n")
    mine.finish()
    assert sum(file.stat().st_size for file in (tmp_path / "logs").iterdir()) <= 5_000
    store.before_put = None
    mine.finish()
    mine._take(b"after\n")
    mine.finish()
    assert text(store) == (b"x" * 999 + b"\n") * 5 + b"\ngpubid-guard: 15000 bytes of output are not kept here\nafter\n"


def test_next_guard_carries_what_a_killed_one_left_before_its_own(tmp_path: Path) -> None:
    killed = LogSpool(tmp_path / "logs", START)
    killed.take(b"before the kill\n")
    killed.close_piece()
    store = MemoryStore()
    mine, _ = carrier(tmp_path, store)
    mine._take(b"after it\n")
    mine.finish()
    assert text(store) == b"before the kill\nafter it\n"


def test_restart_within_a_second_writes_over_nothing(tmp_path: Path) -> None:
    for word in (b"one", b"two", b"three"):
        spool = LogSpool(tmp_path / "logs", START)
        spool.take(word)
        spool.close_piece()
    assert [piece.read_bytes() for piece in spool.closed()] == [b"one", b"two", b"three"]


def test_endless_output_ends_in_the_bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_carrier, "MOST_CARRIED", 10_000)
    store = MemoryStore()
    mine, _ = carrier(tmp_path, store)
    for _ in range(30):
        mine._take(b"x" * 1_000)
        mine.finish()
    assert len(text(store)) == 10_000


def test_a_full_disk_costs_output_alone(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("no folder")
    spool = LogSpool(tmp_path / "logs", START)
    assert not spool.take(b"lost\n")
    assert spool.closed() == []


def test_stopped_work_leaves_its_last_words_in_a_real_bucket(tmp_path: Path) -> None:
    instance = Instance(tmp_path / "instance")
    command = "trap 'echo last words; exit 3' TERM; echo first words; while :; do sleep 0.05; done"
    keys = {"GPUBID_BUCKET_KEY_ID": "K", "GPUBID_BUCKET_SECRET": "S"}
    with s3_server.served() as server:
        bucket = {"endpoint": server.url, "region": "us-east-1", "name": server.bucket, "root": ROOT}
        with instance.started("sh", "-c", command, bucket=bucket, env=keys, logs=True) as guard:
            guard.said("first words")
            guard.process.send_signal(signal.SIGTERM)
            guard.ended()
        names = [name for name in server.names() if "/logs/L1/" in name]
        said = b"".join(gzip.decompress(server.get(name)) for name in names)
        assert [line for line in said.splitlines() if b"words" in line] == [b"first words", b"last words"]
