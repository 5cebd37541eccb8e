"""A stop at dstack reaches the work: its runner signals the shell alone, which it starts on a terminal of its own."""

import fcntl
import hashlib
import json
import os
import pty
import shlex
import shutil
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from agent.domain.work import guard_prelude
from tests.markets.test_dstack_orders import ordered
from tests.support.guarded import Instance

WAITS = """\
import signal, sys, time
def stop(*_):
    print("signalled", flush=True)
    sys.exit(7)
signal.signal(signal.SIGINT, stop)
print("began", flush=True)
time.sleep(60)
"""
SHELLS = [
    pytest.param(words, marks=pytest.mark.skipif(shutil.which(words[0]) is None, reason=f"{words[0]} is not here"))
    for words in (["/bin/bash"], ["/bin/dash"], ["busybox", "sh"])
]
PATIENCE_SECONDS = 30.0


def work(place: Path) -> str:
    (place / "work.py").write_text(WAITS)
    return f"{sys.executable} {shlex.quote(str(place / 'work.py'))}"


class Runner:
    """Starts the commands of an order as the server's runner does: on a terminal, as the leader of its session."""

    def __init__(self, shell: list[str], commands: list[str], place: Path, **environment: str) -> None:
        self._terminal, there = pty.openpty()
        joined = " && ".join(command.strip() for command in commands)

        def leads() -> None:
            os.setsid()
            fcntl.ioctl(there, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            [*shell, "-i", "-c", joined],
            stdin=there,
            stdout=there,
            stderr=there,
            cwd=place,
            env={**os.environ, **environment},
            preexec_fn=leads,  # noqa: PLW1509 - no thread of this test takes a lock
        )
        os.close(there)
        os.set_blocking(self._terminal, False)
        self.said = ""

    def until(self, part: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while part not in self.said:
            assert time.monotonic() < deadline, self.said
            try:
                self.said += os.read(self._terminal, 4096).decode()
            except OSError:
                time.sleep(0.02)

    def becomes(self, program: str) -> None:
        """Wait until the shell has replaced itself by a program."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while Path(f"/proc/{self.process.pid}/comm").read_text().strip() != program:
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._terminal)


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize("way", ["command", "onstart", "background"])
def test_a_stop_reaches_the_work_in_every_shell(shell: list[str], way: str, tmp_path: Path) -> None:
    line = work(tmp_path)
    ways = {
        "command": {"command": line, "onstart": ""},
        "onstart": {"command": "", "onstart": f"echo first\n{line}"},
        "background": {"command": "", "onstart": f"{line} &\nwait"},
    }
    runner = Runner(shell, ordered(**ways[way])["configuration"]["commands"], tmp_path)
    try:
        runner.until("began")
        runner.process.send_signal(signal.SIGINT)
        runner.until("signalled")
        assert runner.process.wait(PATIENCE_SECONDS) in {7, 130}
    finally:
        runner.close()


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_a_stop_after_the_script_ends_the_container(shell: list[str], tmp_path: Path) -> None:
    runner = Runner(shell, ordered(command="", onstart="echo over")["configuration"]["commands"], tmp_path)
    try:
        runner.until("over")
        runner.becomes("sleep")
        runner.process.send_signal(signal.SIGINT)
        assert runner.process.wait(PATIENCE_SECONDS) != 0
    finally:
        runner.close()


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize("way", ["command", pytest.param("onstart", marks=pytest.mark.nightly)])
def test_a_stop_reaches_the_guard_which_ends_the_work_and_says_so(shell: list[str], way: str, tmp_path: Path) -> None:
    instance, line = Instance(tmp_path / "disk"), work(tmp_path)
    instance.home.mkdir()
    (instance.home / "guard.pyz").write_bytes(instance.archive.read_bytes())
    told = {
        "GPUBID_GUARD": json.dumps(instance.settings()),
        "GPUBID_GUARD_HOME": str(instance.home),
        "GPUBID_GUARD_SHA256": hashlib.sha256(instance.archive.read_bytes()).hexdigest(),
    }
    ways = {
        "command": {"command": guard_prelude.command(line), "onstart": ""},
        "onstart": {"command": "", "onstart": guard_prelude.script(line)},
    }
    runner = Runner(shell, ordered(**ways[way])["configuration"]["commands"], tmp_path, **told)
    try:
        runner.until("began")
        runner.process.send_signal(signal.SIGINT)
        runner.until('"sigterm_seen":true')
        runner.process.wait(PATIENCE_SECONDS)
    finally:
        runner.close()
