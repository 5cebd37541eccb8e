"""The script that starts a workload on a machine of Mithril, run by a real bash with a docker that only writes down."""

import os
import pathlib
import subprocess
from dataclasses import replace
from typing import Any

import pytest

from agent.domain.work.workload import Runtype
from agent.markets.mithril import start_script
from agent.markets.port import Login
from agent.simulator.mithril import startup_script
from tests.markets import spot_bids

NASTY = 'it\'s "quoted" $HOME `id` \\ \n; touch /tmp/never'
DOCKER = """#!/bin/bash
case "$*" in "container inspect"*) test -e "$0.made"; exit;; esac
printf '%s\\0' "$@" >> "$0.calls"; printf '\\036' >> "$0.calls"
case "$*" in *login*) /bin/cat > "$0.password";; *run*) : > "$0.made"; /usr/bin/env -0 > "$0.env";; esac
"""


class Host:
    """A folder with the programs that a machine has."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        for name, text in (("docker", DOCKER), ("systemctl", "#!/bin/sh\n"), ("apt-get", "#!/bin/sh\nexit 9\n")):
            (self.bin / name).write_text(text)
            (self.bin / name).chmod(0o755)

    def start(self, script: str) -> None:
        """Run the script as the machine does at its first boot."""
        own = script.replace(start_script.FOLDER, str(self.folder / "state"))
        path = self.folder / "part-001"
        path.write_text(own.replace("/etc/systemd/system", str(self.folder)))
        env = {"PATH": f"{self.bin}:{os.environ['PATH']}", "HOME": str(self.folder)}
        done = subprocess.run(["bash", str(path)], env=env, capture_output=True, text=True, check=False, timeout=30)
        assert done.returncode == 0, done.stderr

    @property
    def calls(self) -> list[list[str]]:
        calls = (self.bin / "docker.calls").read_text().split("\0\x1e")
        return [call.split("\0") for call in calls if call]

    @property
    def environment(self) -> dict[str, str]:
        pairs = (one.partition("=") for one in (self.bin / "docker.env").read_text().split("\0") if one)
        return {name: value for name, _, value in pairs}


def terms(**changes: Any) -> Any:
    return replace(spot_bids.ORDER, **changes)


def test_the_image_runs_once_with_everything_as_it_was_written(tmp_path: pathlib.Path) -> None:
    host = Host(tmp_path)
    script = start_script.text(
        terms(
            image="ghcr.io/me/train:1",
            command=f"python train.py --note '{NASTY.replace(chr(39), '')}'",
            environment=(("SECRET", NASTY), ("PATH", "/nowhere"), ("HOME", "/root")),
            ports=(9000, 8000),
            login=Login("ghcr.io", "me", "pass'word"),
        )
    )
    host.start(script)
    login, run = host.calls
    assert login[-4:] == ["--username", "me", "--password-stdin", "ghcr.io"]
    assert (host.bin / "docker.password").read_text() == "pass'word"
    assert run[2:] == [
        *("run", "--detach", "--name", "gpubid", "--restart", "on-failure", "--gpus", "all", "--ipc", "host"),
        *("--env", "SECRET", "--env", "PATH", "--env", "HOME"),
        *("--publish", "8000:8000", "--publish", "9000:9000"),
        *("--entrypoint", "python", "ghcr.io/me/train:1", "train.py", "--note", NASTY.replace("'", "")),
    ]
    shown = {name: host.environment[name] for name in ("SECRET", "PATH", "HOME")}
    assert shown == {"SECRET": NASTY, "PATH": "/nowhere", "HOME": "/root"}
    assert not any(NASTY in word and "note" not in word for call in host.calls for word in call[:-1])
    host.start(script)
    assert [call[-2:] for call in host.calls[2:]] == [["start", "gpubid"]], "a second boot starts the same container"
    assert (tmp_path / "state" / "start").stat().st_mode & 0o777 == 0o700
    assert "ExecStart=" in (tmp_path / "gpubid-workload.service").read_text()


@pytest.mark.parametrize(
    ("changes", "tail"),
    [
        ({}, ["ubuntu:22.04"]),
        ({"onstart": NASTY}, ["--entrypoint", "bash", "ubuntu:22.04", "-c", f"{NASTY}\nsleep infinity"]),
        ({"runtype": Runtype.SSH}, ["--entrypoint", "bash", "ubuntu:22.04", "-c", "\nsleep infinity"]),
    ],
    ids=["image", "script", "shell"],
)
def test_without_a_command_the_script_or_the_image_runs(
    tmp_path: pathlib.Path, changes: dict[str, Any], tail: list[str]
) -> None:
    host = Host(tmp_path)
    host.start(start_script.text(terms(**changes)))
    (run,) = host.calls
    assert run[12:] == tail


def test_the_script_names_the_disk_and_the_ports_and_nothing_secret_in_its_head() -> None:
    script = start_script.text(terms(disk_gb=16.5, ports=(8000, 22), environment=(("KEY", "s3cret"),)))
    assert start_script.ordered(script) == start_script.OrderedTerms(16.5, (8000, 22))
    assert "s3cret" not in "\n".join(script.splitlines()[:2])
    for other in (None, "", "#!/bin/bash\necho", "# gpubid disk_gb=-5 ports=", "x" * 2000 + script):
        assert start_script.ordered(other) is None
    assert start_script.ordered("# gpubid disk_gb=4 ports=99999,0,80") == start_script.OrderedTerms(4.0, (80,))


def test_keys_of_a_workload_are_let_in() -> None:
    script = start_script.text(terms(ssh_keys=("ssh-ed25519 AAAA me@here",)))
    assert "'ssh-ed25519 AAAA me@here'" in script
    checked = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False, timeout=30)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"command": "python train.py --x 'a b'"}, ("python", "train.py", "--x", "a b")),
        ({"onstart": NASTY}, ("bash", "-c", f"{NASTY}\nsleep infinity")),
        ({}, ()),
    ],
)
def test_the_simulator_reads_it_as_it_is_meant(changes: dict[str, Any], words: tuple[str, ...]) -> None:
    """The two readings share no code."""
    both = {
        "environment": (("A", NASTY),),
        "ports": (8000,),
        "login": Login("ghcr.io", "me", "p"),
        "ssh_keys": ("k me",),
    }
    started = startup_script.read(start_script.text(terms(**both, **changes)))
    assert started == startup_script.Started("ubuntu:22.04", {"A": NASTY}, (8000,), words)
