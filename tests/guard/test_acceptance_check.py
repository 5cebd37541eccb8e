"""The check of a host: what `nvidia-smi` prints in its many forms, and a guard over programs that hang or flood."""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.buckets.bucket_client import BucketClient
from agent.domain.work.guard_terms import Bucket
from agent.guard.acceptance import bounded_run, gpu_query, host_trial
from agent.guard.acceptance.bounded_run import Ended
from agent.guard.acceptance.gpu_query import FIELDS, GpuAnswer
from agent.guard.bucket_notes import BucketNotes
from agent.guard.guard_clock import GuardClock, uptime
from agent.guard.guard_settings import BucketPlace
from agent.guard.reaper import Reaper
from agent.guard.s3.s3_objects import S3Objects
from tests.support import s3_servers
from tests.support.guarded import ROOT, Guarded, Instance, until

NAMES = tuple(dict(FIELDS))
# Written by hand in the forms that drivers print; no output of a real card was recorded for this project.
SOUND = "NVIDIA GeForce RTX 4090, 24564, 550.90.07, [N/A], [N/A], 450.00, 450.00, 1, 4, 16, 16, 0x0000000000000001, 31"
DATACENTRE = (
    "NVIDIA A100-SXM4-80GB, 81920, 535.183.01, Disabled, 3, 300.00, 400.00, 4, 4, 16, 16, 0x0000000000000004, 58"
)
SPLIT = "NVIDIA H100 80GB, [Insufficient Permissions], 560.35.03, Enabled, [N/A], [N/A], [N/A], 5, 5, 16, 16, [N/A], 40"
BROKEN = "[Unknown Error], [GPU requires reset], 550.90, N/A, ERR!, ERR!, [Not Supported], , -1, nan, 1e309, 0xz, inf"


def asked(text: str, code: int | None = 0, **changes: Any) -> GpuAnswer:
    return gpu_query.answered(lambda _fields: Ended(code, text, **changes), dict(FIELDS), NAMES)


def test_every_figure_of_a_sound_card_is_read() -> None:
    answer = asked(f"{SOUND}\n")
    assert (answer.tool, answer.count, answer.driver) == ("ok", 1, "550.90.07")
    assert answer.gpus == (
        {
            "name": "NVIDIA GeForce RTX 4090",
            "memory_mb": 24564.0,
            "is_split": False,
            "uncorrected_errors": None,
            "power_limit_watts": 450.0,
            "power_default_watts": 450.0,
            "pcie_generation": 1,
            "pcie_generation_most": 4,
            "pcie_width": 16,
            "pcie_width_most": 16,
            "clock_events": "0x0000000000000001",
            "temperature_c": 31.0,
        },
    )


def test_several_cards_are_counted_and_the_first_sixteen_are_told() -> None:
    two = asked(f"{DATACENTRE}\n{DATACENTRE}\n")
    assert (two.count, [gpu["uncorrected_errors"] for gpu in two.gpus]) == (2, [3, 3])
    many = asked(f"{DATACENTRE}\n" * 40)
    assert (many.count, len(many.gpus)) == (40, gpu_query.MOST_GPUS)
    assert asked("No devices were found\n", 6) == GpuAnswer("ok", 0)


def test_a_split_card_says_so_and_its_memory_is_not_known() -> None:
    (gpu,) = asked(SPLIT).gpus
    assert (gpu["is_split"], gpu["memory_mb"], gpu["power_limit_watts"]) == (True, None, None)


def test_what_is_no_figure_is_not_known() -> None:
    (gpu,) = asked(BROKEN).gpus
    assert {name: value for name, value in gpu.items() if value is not None} == {"is_split": False}


@pytest.mark.parametrize(
    ("text", "code", "tool"),
    [
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", 9, "failed"),
        ("Failed to initialize NVML: Driver/library version mismatch\n", 18, "failed"),
        ("", None, "slow"),
        ("", 0, "unreadable"),
        ("NVIDIA GeForce RTX 4090\n", 0, "unreadable"),
        (f"{SOUND}\n" * 2_000, 0, "unreadable"),
        ('Field "power.limit" is not a valid field to query.\n', 2, "ok"),
        ('Field "nobody.asked" is not a valid field to query.\n', 2, "failed"),
    ],
)
def test_an_answer_that_is_none_says_why(text: str, code: int | None, tool: str) -> None:
    def run(fields: Sequence[str]) -> Ended:
        if tool == "ok" and "power.limit" not in fields:
            return Ended(0, SOUND.replace("450.00, 450.00", "450.00"))
        return Ended(code, text[: bounded_run.MOST_KEPT])

    answer = gpu_query.answered(run, dict(FIELDS), NAMES)
    assert answer.tool == tool
    assert bool(answer.gpus) is (tool == "ok")


def test_a_driver_of_before_is_asked_by_the_names_it_knows() -> None:
    known, questions = dict(FIELDS), list[Sequence[str]]()

    def run(fields: Sequence[str]) -> Ended:
        questions.append(fields)
        for name in ("mig.mode.current", "clocks_event_reasons.active"):
            if name in fields:
                return Ended(2, f'Field "{name}" is not a valid field to query.\n\n')
        told = dict(zip([vendor for _, vendor in FIELDS], SOUND.split(", "), strict=True))
        told["clocks_throttle_reasons.active"] = "0x0000000000000008"
        return Ended(0, ", ".join(told[name] for name in fields))

    (gpu,) = gpu_query.answered(run, known, NAMES).gpus
    assert gpu["clock_events"] == "0x0000000000000008"
    assert "is_split" not in gpu
    assert len(questions) == 3
    gpu_query.answered(run, known, gpu_query.LINK)
    assert len(questions) == 4


class Own(Reaper):
    """Reaps its own children and nothing else of this process, which runs the tests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, begin: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        self._started.append(begin())
        return self._started[-1]

    def reap(self) -> None:
        for process in self._started:
            process.poll()

    def code(self, process: subprocess.Popen[bytes]) -> int | None:
        return process.returncode

    def end(self) -> None:
        """Wait for all, which were killed: one that nobody waited for warns in the middle of another test."""
        for process in self._started:
            process.wait()


def test_a_program_is_ended_in_its_time_whatever_it_does() -> None:
    reaper, stopping = Own(), threading.Event()

    def ran(script: str, seconds: float) -> Ended:
        begun = uptime()
        ended = bounded_run.run(["sh", "-c", script], dict(os.environ), reaper, begun + seconds, stopping)
        assert uptime() - begun < 30
        return ended

    assert ran("printf one; exit 3", 60) == Ended(3, "one", "one")
    assert ran("sleep 600", 0.2).code is None
    # A child that leaves the group holds the output open.
    assert ran("setsid sleep 3 & echo gone", 60).head == "gone\n"
    flood = ran("head -c 3000000 /dev/zero | tr '\\0' a; echo end", 60)
    assert (len(flood.head), flood.tail.endswith("aend\n"), len(flood.tail)) == (bounded_run.MOST_KEPT, True, 4096)
    assert bounded_run.run(["/nowhere/it"], {}, reaper, uptime() + 9, stopping).is_missing
    stopping.set()
    assert ran("sleep 600", 60).code is None
    reaper.end()


class Host:
    """A host whose `nvidia-smi` is a script of ours, or is not there."""

    def __init__(self, place: Path, script: str | None) -> None:
        self.instance = Instance(place / "instance")
        self.programs = place / "programs"
        self.programs.mkdir()
        if script is not None:
            tool = self.programs / "nvidia-smi"
            tool.write_text(f"#!/bin/sh\n{script}\n")
            tool.chmod(0o755)

    @property
    def path(self) -> dict[str, str]:
        return {"PATH": f"{self.programs}:{os.environ['PATH']}"}


def checked(guard: Guarded) -> dict[str, Any]:
    """Wait for the check's line in the log."""

    def found() -> list[str]:
        lines = guard.text().splitlines(keepends=True)
        return [line for line in lines if line.startswith("gpubid-guard acceptance {") and line.endswith("\n")]

    (line,) = until(found, "the check", guard.text)
    return dict(json.loads(line.removeprefix("gpubid-guard acceptance ")))


@pytest.mark.parametrize(
    ("script", "seconds", "tool", "count"),
    [
        (f"echo '{SOUND}'; echo '{SOUND}'", 60, "ok", 2),
        ("exec sleep 600", 2, "slow", None),
        ("exec cat /dev/zero", 2, "slow", None),
        ("echo broken; exit 9", 60, "failed", None),
        (None, 60, "missing", None),
    ],
)
def test_the_work_starts_whatever_the_tool_does(
    tmp_path: Path, script: str | None, seconds: int, tool: str, count: int | None
) -> None:
    host = Host(tmp_path, script)
    told = {"seconds": seconds, "script": None}
    with host.instance.started("sh", "-c", "echo begun; exit 3", env=host.path, acceptance=told) as guard:
        note = checked(guard)
        assert guard.ended() == 3
    assert (note["lease"], note["tool"], note["gpu_count"]) == ("L1", tool, count)
    assert "begun\n" in guard.text()


def test_without_a_word_of_the_daemon_nothing_is_checked(tmp_path: Path) -> None:
    host = Host(tmp_path, f"touch asked; echo '{SOUND}'")
    with host.instance.started("sh", "-c", "exit 3", env=host.path) as guard:
        assert guard.ended() == 3
    assert "acceptance" not in guard.text()
    assert not (host.instance.place / "asked").exists()


LOOK = "import sys, urllib.request; print('the work sees', urllib.request.urlopen(sys.argv[1]).status)"


@pytest.mark.skipif(not s3_servers.HERE["moto"], reason="moto is not here")
def test_the_bucket_has_the_note_before_the_work_begins_and_the_tool_never_the_key(tmp_path: Path) -> None:
    host = Host(tmp_path, f"env >environment; echo '{SOUND}'")
    store = s3_servers.shared("moto", tmp_path.parent)
    place = BucketPlace(store.url, "us-east-1", store.bucket, ROOT, s3_servers.KEY_ID, s3_servers.SECRET, "")
    notes = BucketNotes(S3Objects(place, GuardClock()), ROOT)
    told = {"seconds": 60, "script": None}
    folder = Bucket(store.url, "us-east-1", store.bucket, ROOT, "key")
    key = f"{s3_servers.KEY_ID}:{s3_servers.SECRET}"
    address = BucketClient(folder, key).presigned("acceptance-L1.json")
    command = (sys.executable, "-c", LOOK, address)
    with host.instance.started(*command, env=host.path, acceptance=told, store=store) as guard:
        note = checked(guard)
        guard.phase("done")
        guard.said("the work sees 200\n")
        assert dict((notes.read("acceptance-L1.json") or ({}, ""))[0]) == note
    assert note["gpus"][0]["name"] == "NVIDIA GeForce RTX 4090"
    assert "BUCKET" not in (host.instance.place / "environment").read_text()


LIBRARY = """
#include <stdlib.h>
static int answer(const char *name) { const char *told = getenv(name); return told ? atoi(told) : 0; }
int cuInit(unsigned flags) { if (getenv("CUDA_VISIBLE_DEVICES")) return 100; return answer("FAKE_INIT"); }
int cuDeviceGetCount(int *count) { *count = answer("FAKE_COUNT"); return 0; }
int cuDeviceGet(int *device, int number) { *device = number; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) {
  if (answer("FAKE_CRASH")) abort();
  return device == answer("FAKE_BROKEN") - 1 ? 2 : 0;
}
"""
TORCH = """
import os, time
uint8, float16 = "uint8", "float16"
class Tensor:
    def __init__(self, device): self.device = device
    def pin_memory(self): return self
    def copy_(self, other, non_blocking):
        open(os.environ["ASKED"] + "-" + self.device, "w").close()
        while not os.path.exists(os.environ["ASKED"]):
            time.sleep(0.01)
        time.sleep(0.004)
def empty(size, dtype, device="cpu"): return Tensor(device)
def ones(shape, dtype, device): return device
def matmul(one, other): time.sleep(0.02 if one.endswith("1") else 0.002)
class cuda:
    is_available = staticmethod(lambda: True)
    device_count = staticmethod(lambda: 2)
    synchronize = staticmethod(lambda device: None)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a library of the name and of the calls of the driver's, whose answers variables set."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler is here")
    place = tmp_path_factory.mktemp("library")
    (place / "cuda.c").write_text(LIBRARY)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(place / "libcuda.so.1"), str(place / "cuda.c")], check=True)
    return place


@pytest.mark.parametrize(
    ("answers", "starts", "error"),
    [
        ({"FAKE_COUNT": "2"}, True, None),
        ({"FAKE_COUNT": "2", "CUDA_VISIBLE_DEVICES": ""}, True, None),
        ({"FAKE_INIT": "999"}, False, "cuInit answers 999"),
        ({"FAKE_INIT": "803"}, None, "cuInit answers 803"),
        ({"FAKE_COUNT": "0"}, False, "CUDA finds no GPU"),
        ({"FAKE_COUNT": "2", "FAKE_BROKEN": "2"}, False, "cuDevicePrimaryCtxRetain answers 2"),
        ({"FAKE_COUNT": "1", "FAKE_CRASH": "1"}, None, None),
    ],
    ids=str,
)
def test_cuda_is_started_by_a_process_that_may_crash(
    tmp_path: Path, library: Path, answers: dict[str, str], starts: bool | None, error: str | None
) -> None:
    host = Host(tmp_path, f"echo '{SOUND}'")
    env = {**host.path, "LD_LIBRARY_PATH": str(library), **answers}
    with host.instance.started("sh", "-c", "exit 3", env=env, acceptance={"seconds": 60}) as guard:
        note = checked(guard)
        assert guard.ended() == 3
    assert (note.get("cuda_starts"), note.get("cuda_error")) == (starts, error)
    assert note["is_under_load"] is False


def test_an_image_without_the_drivers_library_says_nothing_of_the_host(tmp_path: Path) -> None:
    host = Host(tmp_path, None)
    with host.instance.started("sh", "-c", "exit 3", env=host.path, acceptance={"seconds": 60}) as guard:
        note = checked(guard)
    assert note.get("cuda_starts") is None
    assert [path.name for path in host.instance.home.iterdir() if path.name.startswith(".written")] == []


def test_a_trial_of_the_disk_leaves_nothing_on_it(tmp_path: Path) -> None:
    words = host_trial.words(host_trial.DISK, str(tmp_path))
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    assert host_trial.figures(done.stdout)["disk_write_mbps"] > 0
    assert list(tmp_path.iterdir()) == []
    gone = subprocess.run([*words[:-1], "/nowhere"], check=True, capture_output=True, text=True)
    assert gone.stdout == ""


@pytest.mark.long(12)
def test_the_slowest_gpu_counts_and_links_are_read_while_they_copy(tmp_path: Path, library: Path) -> None:
    host = Host(
        tmp_path,
        f"""case $1 in
*memory*) echo '{SOUND}'; echo '{SOUND}';;
*) touch "$ASKED"
  for _ in 1 2 3 4 5 6 7 8 9; do [ -e "$ASKED-cuda:1" ] || sleep 0.1; done
  for device in 0 1; do
    [ -e "$ASKED-cuda:$device" ] && now=4 || now=1
    echo "NVIDIA GeForce RTX 4090, $now, 8, 0x0000000000000004"
  done;;
esac""",
    )
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "torch.py").write_text(TORCH)
    env = {**host.path, "LD_LIBRARY_PATH": str(library), "FAKE_COUNT": "2", "PYTHONPATH": str(packages)}
    env["ASKED"] = str(tmp_path / "asked")
    with host.instance.started("sh", "-c", "exit 3", env=env, acceptance={"seconds": 60}) as guard:
        note = checked(guard)
    links = [(gpu["pcie_generation"], gpu["pcie_width"]) for gpu in note["gpus"]]
    assert (note["is_under_load"], links) == (True, [(4, 8), (4, 8)]), "all of them copy"
    # A product takes the slow card at least 20 ms, a copy 4 ms.
    assert 0 < note["matmul_tflops"] <= 2 * 4096**3 / 0.02 / 1e12
    assert 0 < note["copy_to_gpu_gbps"] <= 2**26 / 0.004 / 1e9
    assert 0 < note["copy_from_gpu_gbps"] <= 2**26 / 0.004 / 1e9


def test_what_a_trial_prints_is_read_with_bounds() -> None:
    odd = (
        '{"matmul_tflops": 1e309}\n{"disk_write_mbps": -1}\n{"cuda_starts": 1}\n{"other": 2}\n{"cuda_error": "%s"}\n'
        % ("a" * 300)
    )
    assert host_trial.figures(odd + "[]\n{\nnoise\n" + "[" * 50_000) == {}
    assert host_trial.figures('noise\n{"cuda_starts": true}\n{"matmul_tflops": 80}\n{"cut') == {
        "cuda_starts": True,
        "matmul_tflops": 80,
    }


@pytest.mark.parametrize(
    ("script", "seconds", "told"),
    [
        ("exit 0", 60, {"code": 0, "last_line": ""}),
        ("echo fine; echo 'too \x1bslow' >&2; exit 4", 60, {"code": 4, "last_line": "too slow"}),
        ("kill -9 $$", 60, {"code": -9, "last_line": ""}),
        pytest.param(
            "echo begun; exec sleep 600", 20, {"code": None, "last_line": "begun"}, marks=pytest.mark.long(22)
        ),
    ],
)
def test_the_operators_own_check_is_run_in_its_time_and_never_sees_the_key(
    tmp_path: Path, script: str, seconds: int, told: dict[str, Any]
) -> None:
    host = Host(tmp_path, f"echo '{SOUND}'")
    acceptance = {"seconds": seconds, "script": f"env > seen; {script}"}
    env = {**host.path, "GPUBID_BUCKET_SECRET": "s3cret", "GPUBID_BUCKET_KEY_ID": "id", "EPOCHS": "3"}
    with host.instance.started("sh", "-c", "exit 3", env=env, acceptance=acceptance) as guard:
        note = checked(guard)
        assert guard.ended() == 3
    assert note["script"] == told
    seen = (host.instance.place / "seen").read_text()
    assert "EPOCHS=3" in seen
    assert "s3cret" not in seen
