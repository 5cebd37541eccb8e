"""The guard over a command: its end, its signals, its processes, and the knowledge of the next start on the disk."""

import contextlib
import itertools
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from agent.guard import disk_state, guard_settings, guard_status
from agent.guard.bucket_notes import BucketNotes
from agent.guard.work_end import WorkEnd
from tests.support import counter
from tests.support.guarded import ROOT, Instance, until
from tests.support.memory_store import MemoryStore

CAN_UNSHARE = shutil.which("unshare") and os.geteuid() == 0


def running(word: str) -> list[str]:
    """Return the command lines of the processes that have a word in them."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found += [line] if word in (line := file.read_text(errors="replace")) else []
    return found


def python(code: str, *words: str) -> list[str]:
    return counter.python(code, *words)


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -9 $$", 137)])
def test_a_failed_end_gives_the_code_of_the_command(instance: Instance, script: str, code: int) -> None:
    with instance.started("sh", "-c", f"echo last words; {script}") as guard:
        assert guard.ended() == code
    assert "last words\n" in guard.text()
    # A slow machine may see more than one beat of a phase.
    assert [phase for phase, _ in itertools.groupby(beat["phase"] for beat in guard.beats())] == ["running", "failed"]


@pytest.mark.parametrize(("command", "code"), [(["/nowhere/train"], 127), (["/"], 126)])
def test_a_command_that_cannot_be_started_says_so(instance: Instance, command: list[str], code: int) -> None:
    with instance.started(*command) as guard:
        assert guard.ended() == code
    assert "gpubid-guard: the command cannot be started: " in guard.text()


def test_a_start_that_was_refused_is_no_loss_without_a_notice(instance: Instance) -> None:
    nowhere = {"endpoint": "http://127.0.0.1:9", "region": "us-east-1", "name": "runs", "root": ROOT}
    keys = {"GPUBID_BUCKET_KEY_ID": "K", "GPUBID_BUCKET_SECRET": "S", "SIM_SPEED": "1000"}
    with instance.started("echo", "began", bucket=nowhere, manifest_exists=True, env=keys) as guard:
        assert guard.ended() == 78
    with instance.started("sleep", "100") as guard:
        assert guard.phase("running")["notice"] is None


def test_a_done_end_stays_asleep_and_never_starts_again(instance: Instance) -> None:
    command = ["sh", "-c", "echo once >> runs; exit 4"]
    with instance.started(*command, done_codes=[0, 4]) as guard:
        guard.phase("done")
        guard.process.send_signal(signal.SIGTERM)
        assert guard.ended() == 0
    with instance.started(*command, done_codes=[0, 4]) as guard:
        guard.phase("done")
        guard.said("the work is done, it does not start again")
    assert (instance.place / "runs").read_text() == "once\n"
    with instance.started(*command, done_codes=[0, 4], run=2) as guard:
        guard.phase("done")
        guard.said("the command ended with code 4")
    assert (instance.place / "runs").read_text() == "once\nonce\n"


@pytest.mark.parametrize(("letter", "kept"), [("e", 50), ("\N{PARTY POPPER}", 29), ("\ufffd", 39)])
def test_the_note_of_an_end_keeps_the_newest_lines_in_60_kb(letter: str, kept: int) -> None:
    lines = [f"{number:02}" + letter * 498 for number in range(50)]
    note = WorkEnd(0, was_stopped=False).note("L1", [0], None, lines)
    assert note["last_lines"] == lines[50 - kept :]
    store = MemoryStore()
    notes = BucketNotes(store, "root")
    assert notes.write("end.json", note, is_new=True)
    assert len(store.objects["root/end.json"].body) <= 60_000
    assert (notes.read("end.json") or ({}, ""))[0] == note


def test_a_command_that_ends_with_0_because_it_was_told_to_is_not_done(instance: Instance) -> None:
    code = (
        "import signal, sys, time\nsignal.signal(15, lambda *_: sys.exit(0))\nprint('up', flush=True)\ntime.sleep(600)"
    )
    with instance.started(*python(code)) as guard:
        guard.said("up\n")
        guard.process.send_signal(signal.SIGTERM)
        assert guard.ended() == 0
        assert guard.beats()[-1]["phase"] == "failed"
    with instance.started("sh", "-c", "echo again; exit 1") as guard:
        assert guard.ended() == 1
    assert "again\n" in guard.text()


def test_signals_reach_the_whole_group(instance: Instance, tmp_path: Path) -> None:
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGUSR2, lambda *_: open(sys.argv[1], 'w').close())\n"
        "open(sys.argv[1] + '.up', 'w').close()\nwhile True: time.sleep(1)"
    )
    one, two = tmp_path / "one", tmp_path / "two"
    (tmp_path / "code.py").write_text(code)
    program = f"{sys.executable} -I -S {tmp_path}/code.py"
    script = f"{program} {one} & exec {program} {two}"
    with instance.started("sh", "-c", script) as guard:
        until(lambda: Path(f"{one}.up").exists() and Path(f"{two}.up").exists(), "both")
        guard.process.send_signal(signal.SIGUSR2)
        until(lambda: one.exists() and two.exists(), "the signal")
    until(lambda: not running(str(tmp_path)), "the end of both")


def test_work_that_a_script_leaves_to_its_group_is_waited_for(instance: Instance) -> None:
    go = instance.place / "go"
    with instance.started("sh", "-c", f"(while ! [ -e {go} ]; do sleep 0.05; done; echo finished) & exit 0") as guard:
        guard.said("others of its group still run")
        assert "done" not in {beat["phase"] for beat in guard.beats()}
        go.touch()
        guard.phase("done")
        assert "finished\n" in guard.text()


def test_a_daemon_that_left_the_group_keeps_nobody_waiting(instance: Instance) -> None:
    mark = uuid.uuid4().hex
    daemon = shlex.join(["setsid", *python("import time; time.sleep(600)", mark)])
    try:
        with instance.started("sh", "-c", f"{daemon} & sleep 0.2; exit 3") as guard:
            assert guard.ended() == 3
    finally:
        for process in counter.alive(mark):
            os.kill(process, signal.SIGKILL)


@pytest.mark.skipif(not CAN_UNSHARE, reason="takes root and unshare")
def test_the_first_process_of_a_container_reaps_orphans(instance: Instance) -> None:
    script = "for n in 1 2 3 4 5; do (sleep 0.01 &); done; touch left; sleep 600"
    before = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    with instance.started("sh", "-c", script, before=before) as guard:
        until((instance.place / "left").exists, "five orphans")
        children = Path(f"/proc/{guard.process.pid}/task/{guard.process.pid}/children")
        (first,) = children.read_text().split()
        below = Path(f"/proc/{first}/task/{first}/children")
        until(lambda: len(below.read_text().split()) == 1, "the command alone")


def test_the_work_dies_with_the_guard(instance: Instance) -> None:
    mark = uuid.uuid4().hex
    with instance.started(*python("import time\nprint('up', flush=True)\ntime.sleep(600)", mark)) as guard:
        guard.said("up\n")
        # The mark is a word of the guard's command line too.
        assert set(counter.alive(mark)) - {guard.process.pid}
        guard.process.kill()
        guard.ended()
        until(lambda: not counter.alive(mark), "the death of the work")


def test_much_output_is_passed_on_in_little_memory(instance: Instance) -> None:
    code = (
        "import os, time\nfor _ in range(1024): os.write(1, b'x' * 65536)\nprint('words', flush=True)\ntime.sleep(600)"
    )
    with instance.started(*python(code)) as guard:
        until(lambda: (instance.place / "log-1").stat().st_size > 64 * 1024 * 1024 + 5, "64 MB")
        status = Path(f"/proc/{guard.process.pid}/status").read_text()
        peak = int(status.split("VmHWM:")[1].split()[0])
        assert peak < 40 * 1024, f"{peak} kB"


def test_the_work_sees_no_key_and_writes_its_progress(instance: Instance) -> None:
    code = (
        "import json, os, time\nprint(json.dumps(sorted(os.environ)), flush=True)\n"
        "open(os.environ['GPUBID_PROGRESS'], 'w').write('41.5 of 100')\ntime.sleep(600)"
    )
    secrets = {"GPUBID_BUCKET_KEY_ID": "k", "GPUBID_BUCKET_SECRET": "s", "GPUBID_GUARD_URL": "u", "EPOCHS": "3"}
    with instance.started(*python(code), env=secrets) as guard:
        until(lambda: any(beat["progress"] == 41.5 for beat in guard.beats()), "its progress")
        names = json.loads(next(line for line in guard.text().splitlines() if line.startswith("[")))
    assert "EPOCHS" in names
    assert [name for name in names if name.startswith("GPUBID")] == ["GPUBID_PROGRESS"]


@pytest.mark.parametrize("text", ["1e308", "nan", "-inf", "", "words", "9" * 5000])
def test_a_progress_that_is_no_plain_number_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "progress").write_text(text)
    assert guard_status.read_number(tmp_path / "progress") is None


def test_the_notice_that_a_market_gives_is_measured(instance: Instance) -> None:
    code = "import signal, time\nsignal.signal(15, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(600)"
    with instance.started(*python(code)) as guard:
        assert guard.phase("running")["notice"] is None
        guard.said("up\n")
        guard.process.send_signal(signal.SIGTERM)
        notice = instance.home / "notice"

        def lasted() -> bool:
            told = json.loads(notice.read_text()) if notice.exists() else {"sigterm": 0, "alive": 0}
            return bool(told["alive"] - told["sigterm"] >= 20.0)

        until(lasted, "20 s of the guard")
    with instance.started(*python(code)) as guard:
        measured = guard.phase("running")["notice"]
        assert measured["sigterm_seen"] is True
        assert measured["seconds"] >= 20.0
        guard.said("up\n")
    with instance.started("sh", "-c", "exit 1") as guard:
        assert guard.phase("running")["notice"] == {"sigterm_seen": False, "seconds": 0.0}
        guard.ended()
    with instance.started("sh", "-c", "exit 1") as guard:
        assert guard.phase("running")["notice"] is None


TORN = [b"", b'{"run": 1, "do', b"\0" * 4096, b"[]", b'{"run": "1", "done": true}', b"[" * 90_000]


@pytest.mark.parametrize("torn", TORN, ids=range(len(TORN)))
def test_a_torn_state_counts_as_none(tmp_path: Path, torn: bytes) -> None:
    (tmp_path / "state.json").write_bytes(torn)
    (tmp_path / "notice").write_bytes(torn)
    state = disk_state.DiskState(tmp_path, 1)
    assert (state.found, state.facts, state.taken_notice()) == (False, {}, None)
    assert state.keep(lease="L1")
    (tmp_path / "notice").write_bytes(torn)
    assert disk_state.DiskState(tmp_path, 1).taken_notice() == {"sigterm_seen": False, "seconds": 0.0}


WRONG = ["", "{", "[]", "[" * 90_000, '{"version": 2}', '{"version": 1, "paths": ["ckpt"], "lease": "L"}']


@pytest.mark.parametrize("told", WRONG, ids=range(len(WRONG)))
def test_settings_that_cannot_be_read_are_refused(told: str) -> None:
    with pytest.raises(guard_settings.UnusableSettings):
        guard_settings.read({"GPUBID_GUARD": told})


def test_settings_that_cannot_be_read_start_nothing(instance: Instance) -> None:
    with instance.started("sh", "-c", "echo began", env={"GPUBID_GUARD": "{"}) as guard:
        assert guard.ended() == 78
    assert guard.text().startswith("gpubid-guard: cannot start: ")
    assert "began" not in guard.text()


def test_hostile_settings_are_bounded() -> None:
    told = {"version": 1, "paths": ["/ckpt"], "lease": "L", "keep": 1e308, "run": True, "final_within_seconds": -1}
    settings = guard_settings.read({"GPUBID_GUARD": json.dumps(told), "GPUBID_CHECKPOINT_SECONDS": "1e308"})
    assert (settings.keep, settings.run, settings.final_within) == (100, 1, 0.0)
    assert settings.interval == guard_settings.MOST_SECONDS


def test_without_settings_the_command_runs_bare(instance: Instance) -> None:
    words = [sys.executable, "-I", "-S", str(instance.archive), "--", "sh", "-c", "echo $0 began; exit 9"]
    done = subprocess.run(words, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (9, "gpubid-guard: bare: GPUBID_GUARD is not set\nsh began\n")
