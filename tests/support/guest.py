"""Debian booted in a container: a real systemd, apt and Prometheus, thrown away at the end.

Debootstrap makes the base once, outside the project (GPUBID_GUESTS, by default /var/cache/gpubid-guests). Each guest
writes into memory above it. A guest has its own loopback and no other network, unless it is wired to other guests.
"""

import contextlib
import itertools
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

RELEASE = "bookworm"
PACKAGES = (
    "systemd",
    "systemd-sysv",
    "dbus",
    "procps",
    "python3",
    "ca-certificates",
    "adduser",
    "prometheus",
    "libfaketime",
)
BASES = Path(os.environ.get("GPUBID_GUESTS", "/var/cache/gpubid-guests"))
BOOT_SECONDS, COMMAND_SECONDS, BASE_SECONDS = 90.0, 180.0, 900.0
NETWORK = "10.77.0"
"""Of guests that are wired: the first is `NETWORK.1`, and so on."""
_numbers = itertools.count(1)
ENVIRONMENT = ("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8")


class Guest:
    """A booted container; commands run in it as root."""

    def __init__(self, leader: int) -> None:
        """Enter it by the process id of its first process."""
        self._leader = leader

    def wire(self, *others: "Guest") -> None:
        """Plug this guest, as `NETWORK.1`, and others, as `NETWORK.2` and so on, into a switch of this one."""
        self._link("link add wire type bridge", f"addr add {NETWORK}.1/24 dev wire", "link set wire up")
        for number, other in enumerate(others, 2):
            port = f"port{number}"
            self._link(
                f"link add {port} type veth peer name wire netns {other._leader}", f"link set {port} master wire up"
            )
            other._link(f"addr add {NETWORK}.{number}/24 dev wire", "link set wire up")

    def lose_power(self) -> None:
        """End a wired guest as a machine that loses its power: no other one hears a word of it."""
        self._link("link set wire down")
        os.kill(self._leader, signal.SIGKILL)

    def _link(self, *orders: str) -> None:
        for order in orders:
            enter = ["nsenter", "--target", str(self._leader), "--net", "ip"]
            subprocess.run([*enter, *order.split()], check=True, timeout=COMMAND_SECONDS)

    def run(self, command: str, *, given: str = "", user: str = "") -> "subprocess.CompletedProcess[str]":
        """Run a shell command to its end."""
        enter = ["nsenter", "--target", str(self._leader), "--all", "env", "-i", *ENVIRONMENT]
        script = f"su {user} -s /bin/sh -c {shlex.quote(command)}" if user else command
        return subprocess.run(
            [*enter, "DEBIAN_FRONTEND=noninteractive", "sh", "-c", f"cd /root && {script}"],
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_SECONDS,
        )

    def out(self, command: str, *, given: str = "", user: str = "") -> str:
        """Run a command that must succeed and return what it printed, standard error after it."""
        ran = self.run(command, given=given, user=user)
        assert ran.returncode == 0, f"{command}: {ran.returncode}\n{ran.stdout}\n{ran.stderr}\n{self.journal()}"
        return ran.stdout + ran.stderr

    def until(self, command: str, what: str) -> str:
        """Run a command until it succeeds, a bounded number of times, and return what it printed."""
        # A slow host of the simulated market takes minutes to start a container.
        for _ in range(480):
            ran = self.run(command)
            if ran.returncode == 0:
                return ran.stdout
            time.sleep(0.25)
        raise AssertionError(f"never seen: {what}\n{ran.stdout}\n{ran.stderr}\n{self.journal()}")

    def shows(self, key: str, unit: str = "gpubid.service") -> str:
        """Return a property of a unit."""
        return self.out(f"systemctl show --property {key} --value {unit}").strip()

    def journal(self, unit: str = "gpubid.service") -> str:
        """Return the last log lines of a unit."""
        return self.run(f"journalctl --no-pager --lines 60 --output cat --unit {unit}").stdout

    def write(self, path: str, text: str, mode: str = "644") -> None:
        """Write a file."""
        self.out(f"mkdir -p {Path(path).parent} && cat > {path} && chmod {mode} {path}", given=text)


def base(*more: str) -> Path:
    """Return the folder of the base with more packages, and make it if there is none.

    Skip, with the reason, if no guest can be booted.
    """
    missing = [tool for tool in ("debootstrap", "systemd-nspawn", "nsenter") if shutil.which(tool) is None]
    if os.geteuid() != 0 or missing:
        unbootable(f"{', '.join(missing) or 'root'} is missing (Debian packages debootstrap, systemd-container)")
    packages = (*PACKAGES, *more)
    made = BASES / "-".join((RELEASE, *packages))
    if not made.is_dir():
        draft = BASES / "draft"
        shutil.rmtree(draft, ignore_errors=True)
        BASES.mkdir(parents=True, exist_ok=True)
        order = ["debootstrap", "--variant=minbase", f"--include={','.join(packages)}", RELEASE, str(draft)]
        ran = subprocess.run(order, capture_output=True, text=True, check=False, timeout=BASE_SECONDS)
        if ran.returncode != 0:
            unbootable(f"debootstrap failed: {ran.stdout[-500:]}")
        draft.rename(made)
    return made


def unbootable(why: str) -> None:
    """Skip, or fail if GPUBID_GUEST=required."""
    sentence = f"NO GUEST WAS BOOTED, THE PACKAGE WAS NOT INSTALLED ANYWHERE: {why}"
    if os.environ.get("GPUBID_GUEST") == "required":
        pytest.fail(sentence)
    pytest.skip(sentence)


@contextlib.contextmanager
def booted(packages: Path, *more: str) -> Iterator[Guest]:
    """Boot a guest that has more of Debian's packages, and sees a folder at /mnt."""
    order = ["systemd-nspawn", "--quiet", f"--directory={base(*more)}", "--volatile=overlay", "--boot", "--register=no"]
    order += ["--keep-unit", "--private-network", "--console=pipe", f"--machine=gpubid-{os.getpid()}-{next(_numbers)}"]
    order += [f"--bind-ro={packages}:/mnt"]
    container = subprocess.Popen(
        order, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield Guest(_leader(container))
    finally:
        container.terminate()
        try:
            container.wait(20)
        except subprocess.TimeoutExpired:
            container.kill()
            container.wait()
        assert container.stdout is not None
        container.stdout.close()


def _leader(container: "subprocess.Popen[str]") -> int:
    """Wait until the guest's systemd has booted and return its process id."""
    deadline = time.monotonic() + BOOT_SECONDS
    while time.monotonic() < deadline and container.poll() is None:
        children = Path(f"/proc/{container.pid}/task/{container.pid}/children").read_text().split()
        if children:
            state = Guest(int(children[0])).run("systemctl is-system-running --wait")
            if state.stdout.strip() in {"running", "degraded"}:
                return int(children[0])
        time.sleep(0.25)
    if container.poll() is None:
        container.kill()
    said = container.communicate()[0]
    unbootable(f"systemd-nspawn: {said[-500:].strip() or 'the guest never came up'}")
    raise AssertionError
