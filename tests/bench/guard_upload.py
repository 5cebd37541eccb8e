"""The guard beside rclone: one large file to the same S3 server, by turns; and the guard's memory and processor time.

Both are whole processes, from start to exit, with their own defaults. The server keeps the file on a disk of this
machine, or in memory where there is a memory file system. rclone and s3rver (`make stores`) need not be here.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from tests.bench import report
from tests.support import s3_servers
from tests.support.guarded import Instance
from tests.support.s3_servers import Store
from tests.support.world import in_memory

RUNS = 5
MEGABYTES = 256
MOST_SLOWER = 1.2
"""The guard takes at most this many times as long as rclone."""
MOST_UPLOAD_MEGABYTES, MOST_REST_MEGABYTES, MOST_REST_SHARE = 80.0, 40.0, 0.01
REST_SECONDS = 60.0
_UPLOAD = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from agent.guard.guard_clock import GuardClock
from agent.guard.guard_settings import BucketPlace
from agent.guard.s3.s3_objects import S3Objects
objects = S3Objects(BucketPlace(sys.argv[2], "us-east-1", sys.argv[3], "", sys.argv[4], sys.argv[5], ""), GuardClock())
objects.upload("by-guard", Path(sys.argv[6]))
print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


@dataclass(frozen=True)
class Run:
    """One upload: seconds on the wall, processor seconds of the sender, and its output."""

    seconds: float
    cpu_seconds: float
    printed: str


def measure() -> bool:
    """Measure, print, and return whether the bounds hold."""
    name = "s3rver" if s3_servers.HERE["s3rver"] else "moto"
    with tempfile.TemporaryDirectory(prefix="gpubid-bench-", dir=in_memory()) as made:
        folder = Path(made)
        with s3_servers.running(name, folder / "store") as store:
            is_fast = _uploads(store, folder)
            return _rests(store, folder) and is_fast


def _uploads(store: Store, folder: Path) -> bool:
    file = folder / "file"
    with file.open("wb") as out:
        for _ in range(MEGABYTES):
            out.write(os.urandom(1_000_000))
    ours, theirs = [], []
    is_here = shutil.which("rclone") is not None
    for number in range(RUNS + 1):
        runs = [_by_guard(store, folder, file)] + ([_by_rclone(store, file)] if is_here else [])
        # The first of each warms the server up.
        if number:
            ours.append(runs[0])
            theirs += runs[1:]
    mine = _told(ours)
    most = max(int(run.printed) for run in ours) / 1024
    small = report.line(
        "guard: memory of an upload, at its peak",
        f"{most:.0f} MB",
        f"bound {MOST_UPLOAD_MEGABYTES:.0f} MB",
        holds=most < MOST_UPLOAD_MEGABYTES,
    )
    what = f"guard: {MEGABYTES} MB to {store.name}, median of {RUNS}"
    if not theirs:
        return report.line(what, mine, "rclone is not on PATH: nothing to compare with") and small
    share = _median(ours) / _median(theirs)
    compared = f"rclone {_told(theirs)}; {share:.2f} of its time, bound {MOST_SLOWER:g}"
    return report.line(what, mine, compared, holds=share <= MOST_SLOWER) and small


def _by_guard(store: Store, folder: Path, file: Path) -> Run:
    archive = Instance(folder / "guard").archive
    words = [str(archive), store.url, s3_servers.BUCKET, s3_servers.KEY_ID, s3_servers.SECRET, str(file)]
    return _run([sys.executable, "-I", "-S", "-c", _UPLOAD, *words], {})


def _by_rclone(store: Store, file: Path) -> Run:
    settings = {
        "TYPE": "s3",
        "PROVIDER": "Other",
        "ENDPOINT": store.url,
        "REGION": "us-east-1",
        "ACCESS_KEY_ID": s3_servers.KEY_ID,
        "SECRET_ACCESS_KEY": s3_servers.SECRET,
        "NO_CHECK_BUCKET": "true",
    }
    words = [
        "rclone",
        "--config=",
        "copyto",
        "--no-traverse",
        "--ignore-times",
        str(file),
        f"store:{s3_servers.BUCKET}/by-rclone",
    ]
    return _run(words, {f"RCLONE_CONFIG_STORE_{key}": value for key, value in settings.items()})


def _run(words: Sequence[str], variables: Mapping[str, str]) -> Run:
    began, before = time.monotonic(), os.times()
    environment = {"PATH": os.environ["PATH"], "HOME": tempfile.gettempdir(), **variables}
    done = subprocess.run(words, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Run(time.monotonic() - began, cpu, done.stdout.strip())


def _rests(store: Store, folder: Path) -> bool:
    """Measure a guard over work that does nothing, beyond its start."""
    instance = Instance(folder / "rest")
    quiet = [sys.executable, "-c", "import time\ntime.sleep(3600)"]
    with instance.started(*quiet, store=store, env={"SIM_SPEED": "1"}) as guard:
        guard.phase("running")
        process = psutil.Process(guard.process.pid)
        before = process.cpu_times()
        time.sleep(REST_SECONDS)
        after = process.cpu_times()
        megabytes = process.memory_info().rss / 1024 / 1024
    share = (after.user + after.system - before.user - before.system) / REST_SECONDS
    return all(
        [
            report.line(
                "guard: memory at rest",
                f"{megabytes:.0f} MB",
                f"bound {MOST_REST_MEGABYTES:.0f} MB",
                holds=megabytes < MOST_REST_MEGABYTES,
            ),
            report.line(
                f"guard: processor time at rest, {REST_SECONDS:.0f} s",
                f"{share:.2%} of one",
                f"bound {MOST_REST_SHARE:.0%}",
                holds=share < MOST_REST_SHARE,
            ),
        ]
    )


def _median(runs: Sequence[Run]) -> float:
    return statistics.median(run.seconds for run in runs)


def _told(runs: Sequence[Run]) -> str:
    speed = MEGABYTES / _median(runs)
    return f"{_median(runs):.2f} s ({speed:.0f} MB/s), {statistics.median(run.cpu_seconds for run in runs):.2f} s CPU"
