"""kill -9 of the guard or of the work at any request of an upload: the pointer always names a whole checkpoint."""

import contextlib
import hashlib
import os
import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.guard.bucket_notes import BucketNotes
from agent.guard.checkpoints.checkpoint_list import CheckpointList
from agent.guard.checkpoints.manifest import Manifest
from agent.guard.guard_clock import GuardClock
from agent.guard.guard_settings import BucketPlace
from agent.guard.s3.s3_objects import S3Objects
from tests.support import counter, s3_servers, store_proxy, trainer
from tests.support.guarded import ROOT, Guarded, Instance
from tests.support.s3_servers import Store
from tests.support.store_proxy import CUT, StoreProxy

PADDING = 9 * 1024 * 1024
"""Characters in a checkpoint, so that it goes in two parts."""
SETTINGS = {"complete": "state.json", "interval_seconds": 5, "lease": "L1"}
QUIET = ("/beat-", "/advice-", "order.json")
"""Requests beside the upload: they say nothing of its parts."""


@contextlib.contextmanager
def reader(store: Store) -> Iterator[BucketNotes]:
    place = BucketPlace(store.url, "us-east-1", s3_servers.BUCKET, ROOT, s3_servers.KEY_ID, s3_servers.SECRET, "")
    objects = S3Objects(place, GuardClock())
    yield BucketNotes(objects, ROOT)
    objects.close()


def pointed(notes: BucketNotes) -> Manifest | None:
    """Return the manifest that the pointer names, after every file of it was compared; None before the first."""
    found = notes.read("latest.json")
    if found is None:
        return None
    manifest = CheckpointList(notes, "test").read(found[0]["manifest"])
    assert manifest is not None, found[0]
    assert (found[0]["sequence"], found[0]["progress"]) == (manifest.sequence, manifest.progress)
    for file in manifest.files:
        there = notes.store.get(notes.key(f"ckpt/{manifest.id}/{file.path}"), 2 * PADDING)
        assert there is not None, file
        assert (len(there.body), hashlib.sha256(there.body).hexdigest()) == (file.size_bytes, file.sha256)
    return manifest


class Killer:
    """Kills at one request of the guard's, before the store has it or after.

    The work is killed at a request while it runs. The guard may start it again, so the guard is killed some requests
    later, unless it ended before.
    """

    def __init__(self, proxy: StoreProxy, draw: random.Random) -> None:
        self._lock = threading.Lock()
        self._left = draw.randrange(3, 22)
        self._left_after_work = draw.randrange(3, 22)
        self._is_after = draw.random() < 0.5
        self._kills_guard = self.is_of_guard = draw.random() < 0.8
        self.mark = f"mark-{draw.random()}"
        self.guard: Guarded | None = None
        self.dead_work: list[int] = []
        proxy.fault = self._strike

    def _strike(self, _method: str, path: str) -> str | None:
        with self._lock:
            if any(part in path for part in QUIET) or self.guard is None:
                return None
            # The mark is a word of the guard's command line too.
            work = set(counter.alive(self.mark)) - {self.guard.process.pid}
            if not (self._kills_guard or work):
                return None
            self._left -= 1
            if self._left != 0:
                return None
            if not self._kills_guard:
                self.dead_work = [number for number in work if _killed(number)]
                self._kills_guard, self._left = True, self._left_after_work
                return None
            _killed(self.guard.process.pid)
            # A dead guard's request may have reached the store all the same.
            return None if self._is_after else CUT


def _killed(number: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(number, signal.SIGKILL)
        return True
    return False


def killed(folder: Path, server: str, points: int, seed: int) -> None:
    draw = random.Random(seed)
    instance = Instance(folder / "one")
    reached = by_work = 0
    sequence = 0
    with (
        s3_servers.running(server, folder / "store") as store,
        store_proxy.before(store) as proxy,
        reader(store) as notes,
    ):
        for _ in range(points):
            killer = Killer(proxy, draw)
            command = [*trainer.command(instance.work), killer.mark]
            fields = {**SETTINGS, "manifest_exists": sequence > 0, "bucket": store.place(ROOT, endpoint=proxy.url)}
            with instance.started(*command, store=store, env={"PADDING": str(PADDING)}, **fields) as guard:
                killer.guard = guard
                guard.ended()
            proxy.settle()
            assert killer.is_of_guard or killer.dead_work, guard.text()
            by_work += not killer.is_of_guard
            manifest = pointed(notes)
            if manifest is not None:
                # Its number may fall: the work goes on from its last save, and shows its progress at that time.
                assert manifest.progress is not None
                assert manifest.sequence >= sequence, "the pointer went back"
                reached += manifest.sequence > sequence
                sequence = manifest.sequence
    assert reached > points / 10, "no upload was ever whole"
    assert 0 < by_work < points, "one of the two was never killed"


@pytest.mark.skipif(not s3_servers.HERE["s3rver"], reason="s3rver is not here: `make stores` installs it")
@pytest.mark.long(20)
def test_the_pointer_names_a_whole_checkpoint_after_any_of_ten_kills(tmp_path: Path) -> None:
    killed(tmp_path, "s3rver", 10, 1)


@pytest.mark.nightly
@pytest.mark.parametrize("server", [name for name, is_here in s3_servers.HERE.items() if is_here])
def test_the_pointer_names_a_whole_checkpoint_after_any_of_a_hundred_kills(tmp_path: Path, server: str) -> None:
    killed(tmp_path, server, 100, 2)
