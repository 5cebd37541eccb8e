"""Checkpoints through a real bucket: carried from one instance, restored on another, asked for, kept, given up."""

import hashlib
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.decide.reconcile.probes import log_failures
from agent.guard.bucket_notes import BucketNotes
from agent.guard.checkpoints.checkpoint_list import CheckpointList
from agent.guard.checkpoints.manifest import Manifest
from agent.guard.guard_clock import GuardClock
from agent.guard.guard_settings import BucketPlace
from agent.guard.s3.s3_objects import S3Objects
from tests.support import s3_servers, store_proxy, trainer
from tests.support.guarded import ROOT, SPEED, Guarded, Instance, until
from tests.support.s3_servers import Store

SERVERS = [
    pytest.param(name, marks=pytest.mark.skipif(not is_here, reason=f"{name} is not here: `make stores` installs it"))
    for name, is_here in s3_servers.HERE.items()
]
MORE_STEPS = 300
"""Steps of a trainer that ends, beyond the checkpoint that it goes on from; the one before it never ends."""
QUICK: dict[str, Any] = {"complete": "state.json", "interval_seconds": 5, "final_within_seconds": 100}


@pytest.fixture(params=SERVERS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return s3_servers.shared(request.param, tmp_path.parent)


@pytest.fixture
def notes(store: Store) -> Iterator[BucketNotes]:
    objects = S3Objects(BucketPlace(store.url, "us-east-1", store.bucket, ROOT, "S3RVER", "S3RVER", ""), GuardClock())
    yield BucketNotes(objects, ROOT)
    objects.close()


def carried(guard: Guarded, least: float = 0) -> dict[str, Any]:
    """Wait for a beat of a carried checkpoint beyond a progress."""
    found = until(
        lambda: [beat for beat in guard.beats() if beat["manifest"] and (beat["progress"] or 0) > least],
        "a manifest",
        guard.text,
    )
    return dict(found[-1])


def answered(guard: Guarded, order: str) -> list[dict[str, Any]]:
    return [beat for beat in guard.beats() if beat["answered"] == order]


def newest(notes: BucketNotes) -> Manifest:
    found = CheckpointList(notes, "test").newest()
    assert found is not None
    return found


def sound(notes: BucketNotes, manifest: Manifest) -> None:
    """Compare every file of a checkpoint with its manifest."""
    for file in manifest.files:
        found = notes.store.get(notes.key(f"ckpt/{manifest.id}/{file.path}"), 100_000_000)
        assert found is not None, file
        assert (len(found.body), hashlib.sha256(found.body).hexdigest()) == (file.size_bytes, file.sha256)


def begun(guard: Guarded, last: bool = True) -> int:
    """Return the step from which the trainer began."""
    guard.said("from ")
    return int(re.findall(r"^from (\d+)$", guard.text(), re.MULTILINE)[-1 if last else 0])


def test_work_goes_on_elsewhere_and_ends_with_the_same_number(store: Store, notes: BucketNotes, tmp_path: Path) -> None:
    first, second = Instance(tmp_path / "one"), Instance(tmp_path / "two")
    with first.started(*trainer.command(first.work), store=store, **QUICK) as guard:
        beat = carried(guard)
        assert begun(guard) == 0
        guard.process.kill()
        guard.ended()
    manifest = newest(notes)
    sound(notes, manifest)
    assert [file.path for file in manifest.files] == ["0/state.json"]
    assert (beat["phase"], beat["lease"]) == ("running", "L1")
    saved = trainer.carried_step(notes)
    steps = saved + MORE_STEPS
    more = {**QUICK, "lease": "L2", "manifest_exists": True}
    with second.started(*trainer.command(second.work, steps), store=store, **more) as guard:
        guard.phase("done")
        assert 0 < saved <= begun(guard, last=False) < steps
        guard.said(f"final {trainer.final(steps)}\n")
        assert guard.beats()[-1]["restored"] == manifest.name
        assert guard.beats()[-1]["restore_seconds"] is not None
    assert newest(notes).lease == "L2"
    sound(notes, newest(notes))
    end, _ = notes.read("end.json") or ({}, "")
    assert (end["done"], end["code"], end["signal"], end["manifest"]) == (True, 0, None, newest(notes).name)
    assert end["last_lines"][-1] == f"final {trainer.final(steps)}"
    third = Instance(tmp_path / "three")
    with third.started(*trainer.command(third.work, steps), store=store, **{**more, "lease": "L3"}) as guard:
        guard.phase("done")
        assert "from " not in guard.text()


ONE = SERVERS[:1]
one_store = pytest.mark.parametrize("store", ONE, indirect=True)


def priorities(process: int) -> list[str]:
    """Return how the disk serves each thread of a process, the first one's first."""
    others = {int(each.name) for each in Path(f"/proc/{process}/task").iterdir()} - {process}
    threads = [process, *others]  # Where the machine's numbers began anew, a thread has a lower one than its process.
    ask = ["ionice", "-p"]
    told = [subprocess.run([*ask, str(each)], check=False, capture_output=True, text=True) for each in threads]
    return [each.stdout.strip() for each in told if each.returncode == 0]


@one_store
@pytest.mark.skipif(shutil.which("ionice") is None, reason="ionice is not here")
def test_the_disk_serves_the_work_before_an_upload(store: Store, tmp_path: Path) -> None:
    instance = Instance(tmp_path / "one")
    padding = {"PADDING": str(20 * 1024 * 1024)}
    with store_proxy.before(store) as proxy:
        proxy.slow_seconds = 2.0
        slow = Store(store.name, proxy.url)
        with instance.started(*trainer.command(instance.work), store=slow, env=padding, **QUICK) as guard:
            number = guard.process.pid
            until(lambda: priorities(number).count("best-effort: prio 7") > 2, "the parts' threads", guard.text)
            assert "prio 7" not in priorities(number)[0], "that of the work's own output, and its signals"


@one_store
def test_a_kept_disk_goes_on_without_a_restore(store: Store, notes: BucketNotes, tmp_path: Path) -> None:
    instance = Instance(tmp_path / "one")
    notes.write("order.json", {"version": 1, "written_sequence": 1, "checkpoint": "order-1", "quiet": True})
    with instance.started(*trainer.command(instance.work), store=store, **QUICK) as guard:
        carried(guard)
        guard.process.kill()
        guard.ended()
    before = newest(notes)
    # Nobody listens: the disk has the carried one.
    with instance.started("sleep", "600", store=store, **{**QUICK, "manifest_exists": True}) as guard:
        guard.phase("running")
        until(lambda: len(guard.beats()) > 3, "three minutes", guard.text)
        assert guard.beats()[-1]["restored"] is None
    saved = json.loads((instance.work / "state.json").read_text())[1]
    assert newest(notes) == before
    notes.write("order.json", {"version": 1, "written_sequence": 2, "checkpoint": None, "quiet": False})
    with instance.started(*trainer.command(instance.work), store=store, **{**QUICK, "manifest_exists": True}) as guard:
        assert begun(guard) == saved
        until(lambda: newest(notes).sequence > before.sequence, "another checkpoint")


@one_store
def test_a_stop_asks_for_a_last_checkpoint_before_the_work_hears_of_it(
    store: Store, notes: BucketNotes, tmp_path: Path
) -> None:
    instance = Instance(tmp_path / "one")
    seldom = {**QUICK, "interval_seconds": 86_400}
    notes.write("order.json", {"version": 1, "written_sequence": 1, "checkpoint": "order-1", "quiet": False})
    with instance.started(*trainer.command(instance.work), store=store, **seldom) as guard:
        first = carried(guard)
        until(lambda: guard.beats()[-1]["progress"] > first["progress"] + 20, "more steps")
        guard.process.send_signal(signal.SIGTERM)
        assert guard.ended() == 128 + signal.SIGTERM
        last = guard.beats()[-1]
    assert (last["phase"], last["notice"]["sigterm_seen"]) == ("failed", True)
    assert last["manifest"] == newest(notes).name != first["manifest"]
    assert (newest(notes).progress or 0) > first["progress"]
    sound(notes, newest(notes))
    ended, _ = notes.read("ended-L1.json") or ({}, "")
    assert (ended["done"], ended["signal"]) == (False, signal.SIGTERM)
    assert notes.read("end.json") is None


@one_store
@pytest.mark.parametrize("body", [b'{"version": 1, "do', b"", b"x" * 5_000_000], ids=["torn", "empty", "large"])
def test_an_end_that_cannot_be_read_is_not_taken_for_none(
    store: Store, notes: BucketNotes, tmp_path: Path, body: bytes
) -> None:
    notes.store.put(notes.key("end.json"), body)
    with Instance(tmp_path / "one").started("echo", "began", store=store, **QUICK) as guard:
        assert guard.ended() == 78
        assert log_failures.refusal(guard.text().splitlines()).startswith("end.json is in the bucket and ")
        assert "began" not in guard.text()


@one_store
def test_an_end_that_could_not_be_read_at_first_is_read_before_the_work_starts(
    store: Store, notes: BucketNotes, tmp_path: Path
) -> None:
    notes.write("end.json", {"version": 1, "lease": "L0", "code": 0, "signal": None, "done": True, "last_lines": []})
    instance = Instance(tmp_path / "one")
    log = instance.place / "log-1"
    with store_proxy.before(store) as proxy:

        def fault(_method: str, path: str) -> int | None:
            return 503 if "end.json" in path and "the bucket is away" not in log.read_text() else None

        proxy.fault = fault
        bucket = store.place(ROOT, endpoint=proxy.url)
        with instance.started("echo", "began", store=store, env={"SIM_SPEED": "1000"}, bucket=bucket) as guard:
            guard.said("the bucket is away")
            guard.phase("done")
            assert "the work is done, it does not start again" in guard.text()
            assert "began" not in guard.text()


@one_store
def test_a_failed_end_is_told_for_five_minutes_before_the_guard_exits(
    store: Store, notes: BucketNotes, tmp_path: Path
) -> None:
    instance, began = Instance(tmp_path / "one"), time.monotonic()
    with instance.started("sh", "-c", "exit 7", store=store, **QUICK) as guard:
        assert guard.ended() == 7
        assert guard.phase("failed")["manifest"] is None
    assert time.monotonic() - began >= 300 / SPEED
    assert (notes.read("ended-L1.json") or ({}, ""))[0]["code"] == 7
    # A guard with an order to end does not wait.
    with instance.started("sh", "-c", "exit 7", store=store, env={"SIM_SPEED": "1"}, **QUICK) as guard:
        guard.phase("failed")
        guard.process.send_signal(signal.SIGTERM)
        assert guard.ended() == 7


@one_store
def test_an_order_is_answered_when_its_checkpoint_is_in_the_bucket(
    store: Store, notes: BucketNotes, tmp_path: Path
) -> None:
    instance = Instance(tmp_path / "one")
    with instance.started(
        *trainer.command(instance.work), store=store, **{**QUICK, "interval_seconds": 86_400}
    ) as guard:
        notes.write("order.json", {"version": 1, "written_sequence": 1, "checkpoint": "order-0", "quiet": True})
        first = carried(guard)["manifest"]
        notes.write("order.json", {"version": 1, "written_sequence": 2, "checkpoint": "order-1", "quiet": True})
        answers = until(lambda: answered(guard, "order-1"), "an answer", guard.text)
        assert answers[0]["manifest"] != first
        until(
            lambda: (notes.read("beat-L1.json") or ({}, ""))[0].get("answered") == "order-1", "the answer in the bucket"
        )
        assert newest(notes).name == answers[0]["manifest"]


@one_store
def test_in_a_move_only_the_old_half_takes_its_order_and_the_pointers_progress_never_falls(
    store: Store, notes: BucketNotes, tmp_path: Path
) -> None:
    old, new = Instance(tmp_path / "old"), Instance(tmp_path / "new")
    never = {**QUICK, "interval_seconds": 86_400}

    def order(number: int, checkpoint: str, lease: str) -> None:
        note = {"version": 1, "written_sequence": number, "checkpoint": checkpoint, "quiet": True, "lease": lease}
        notes.write("order.json", note)

    def progress() -> float:
        return float((notes.read("latest.json") or ({}, ""))[0].get("progress") or 0)

    def told(lease: str) -> object:
        return (notes.read(f"beat-{lease}.json") or ({}, ""))[0].get("answered")

    with old.started(*trainer.command(old.work), store=store, **never) as first:
        order(1, "first", "L1")
        until(lambda: answered(first, "first"), "a checkpoint to move with", first.text)
        begun = progress()
        more = {**never, "lease": "L2", "manifest_exists": True}
        with new.started(*trainer.command(new.work), store=store, **more) as second:
            second.phase("running")
            order(2, "last", "L1")
            until(lambda: answered(first, "last"), "the last checkpoint of the old half", first.text)
            last = progress()
            until(lambda: told("L1") == "last", "its answer in the bucket, beside the beats of the new half")
            first.process.kill()
            order(3, "next", "L2")
            until(lambda: answered(second, "next"), "a checkpoint of the new half", second.text)
            assert not answered(second, "first")
            assert not answered(second, "last")
            assert begun < last <= progress()
            until(lambda: told("L2") == "next", "the answer of the new half in the bucket")
            assert told("L1") == "last"


@one_store
def test_checkpoints_beyond_the_kept_ones_go_with_their_files(store: Store, notes: BucketNotes, tmp_path: Path) -> None:
    instance = Instance(tmp_path / "one")
    with instance.started(*trainer.command(instance.work), store=store, **QUICK) as guard:
        until(lambda: (notes.read("latest.json") or ({}, ""))[0].get("sequence", 0) >= 5, "five checkpoints")
        assert guard.process.poll() is None
        notes.write("order.json", {"version": 1, "written_sequence": 1, "checkpoint": None, "quiet": True})

        def two_left() -> bool:
            rows = [row.key for row in notes.store.list(notes.key("ckpt/"), 100)]
            ids = {row.split("ckpt/")[1].partition("/")[0].removesuffix(".json") for row in rows}
            return len(ids) == 2 and len(rows) == 4

        until(two_left, "two checkpoints")
    sound(notes, newest(notes))


DIES_OF_THE_SIGNAL = """
import os, pathlib, signal, sys, time
starts = pathlib.Path(sys.argv[1], "starts")
count = len(starts.read_text()) if starts.exists() else 0
starts.write_text("x" * (count + 1))
print("start", count + 1, flush=True)
if count == int(sys.argv[2]):
    sys.exit()
def die(number, _):
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
signal.signal(signal.SIGUSR1, die)
time.sleep(600)
"""


@one_store
@pytest.mark.parametrize(("deaths", "phase", "starts"), [(3, "done", 4), (100, "failed", 4)])
def test_work_that_the_request_for_a_checkpoint_ended_starts_again_three_times(
    store: Store, tmp_path: Path, deaths: int, phase: str, starts: int
) -> None:
    instance = Instance(tmp_path / "one")
    command = [sys.executable, "-I", "-S", "-c", DIES_OF_THE_SIGNAL, str(instance.work), str(deaths)]
    with instance.started(*command, store=store, **{**QUICK, "complete": None}) as guard:
        guard.phase(phase)
        assert guard.text().count("SIGUSR1, which asked for a checkpoint: it starts again") == 3
        assert guard.text().count("\nstart ") == starts


@one_store
@pytest.mark.long(20)
def test_a_checkpoint_on_which_the_work_crashes_twice_is_given_up(
    store: Store, notes: BucketNotes, tmp_path: Path
) -> None:
    first, second = Instance(tmp_path / "one"), Instance(tmp_path / "two")
    slow = {**QUICK, "interval_seconds": 60}
    with first.started(*trainer.command(first.work), store=store, **{**slow, "interval_seconds": 20}) as guard:
        until(lambda: (notes.read("latest.json") or ({}, ""))[0].get("sequence", 0) >= 2, "two checkpoints")
        guard.process.kill()
        guard.ended()
    bad = newest(notes)
    is_bad = f"json.load(open('{second.work}/state.json'))[1] >= {trainer.carried_step(notes)}"
    poison = f"import json, sys; sys.exit(9 if {is_bad} else 0)"
    command = trainer.command(second.work)
    script = f'{command[0]} -I -S -c "{poison}" || exit 9; exec "$@"'
    more = {**slow, "lease": "L2", "manifest_exists": True}
    # A minute of this guard is 12 s, in which a busy machine can start a program and see it crash.
    calm = {"SIM_SPEED": "5"}
    with second.started("bash", "-c", script, "-", *command, store=store, env=calm, **more) as guard:
        guard.said(f"{bad.id} is given up: the work crashed on it twice")
        guard.said("from ")
        assert guard.text().count(f"{bad.id} is restored") == 2
        assert guard.text().count("the command ended with code 9 within a minute") == 2
        # A later checkpoint takes the pointer, although the bad one is further.
        until(lambda: newest(notes).lease == "L2", "the pointer")


@one_store
def test_a_checkpoint_whose_content_is_not_its_manifests_is_given_up(
    store: Store, notes: BucketNotes, tmp_path: Path
) -> None:
    first, second = Instance(tmp_path / "one"), Instance(tmp_path / "two")
    with first.started(*trainer.command(first.work), store=store, **QUICK) as guard:
        until(lambda: (notes.read("latest.json") or ({}, ""))[0].get("sequence", 0) >= 2, "two checkpoints")
        guard.process.kill()
        guard.ended()
    bad = newest(notes)
    key = notes.key(f"ckpt/{bad.id}/0/state.json")
    body = (notes.store.get(key, 10_000) or pytest.fail("nothing")).body
    notes.store.put(key, body.replace(b"[", b" "))
    with second.started(
        *trainer.command(second.work), store=store, **{**QUICK, "lease": "L2", "manifest_exists": True}
    ) as guard:
        guard.said(f"{bad.id} is given up: 0/state.json of {bad.id} has another digest")
        assert begun(guard) > 0


@one_store
def test_a_checkpoint_that_cannot_be_had_keeps_the_work_from_starting(store: Store, tmp_path: Path) -> None:
    instance = Instance(tmp_path / "one")
    away = store.place(ROOT, endpoint="http://127.0.0.1:9")
    fields = {**QUICK, "bucket": away, "manifest_exists": True}
    with instance.started(*trainer.command(instance.work), store=store, env={"SIM_SPEED": "1000"}, **fields) as guard:
        assert guard.ended() == 78
        assert "gpubid-guard: cannot start: 127.0.0.1:9 does not answer" in guard.text()
        assert log_failures.refusal(guard.text().splitlines()).startswith("127.0.0.1:9 does not answer")
        assert guard.beats()[-1]["phase"] == "failed"
    fields["manifest_exists"] = False
    with instance.started("sh", "-c", "echo began; exit 5", store=store, env={"SIM_SPEED": "1000"}, **fields) as guard:
        assert guard.ended() == 5
        assert "began\n" in guard.text()
