"""Boxes with network namespaces of their own, each with a wire to this machine that can be cut. Root makes them."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PORT_BEGINS = f"gp{os.getpid() % 100_000}"
"""A name of a network device has 15 characters at most."""


@dataclass(frozen=True, slots=True)
class Network:
    """A bridge of this machine, and the namespaces of two boxes that are wired to it."""

    address: str
    names: tuple[str, str]

    def cut(self, number: int) -> None:
        """Unplug the wire of a box at this end: what was sent is lost, and nobody is told."""
        _ip("link", "set", self.names[number], "down")

    def join(self, number: int) -> None:
        """Plug the wire in again."""
        _ip("link", "set", self.names[number], "up")


def is_allowed() -> bool:
    """Return whether this process may make namespaces and bridges."""
    name = f"{PORT_BEGINS}try"
    try:
        _ip("netns", "add", name)
        _ip("netns", "delete", name)
        _ip("link", "add", name, "type", "bridge")
        _ip("link", "delete", name)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


@contextlib.contextmanager
def network(port: int) -> Iterator[Network]:
    """Wire two boxes to this machine while the block runs. Port `port` of their loopback is that of ours."""
    bridge = f"{PORT_BEGINS}br"
    # Of the addresses that are for trials of networks.
    prefix = f"198.18.{os.getpid() % 250}"
    made = Network(f"{prefix}.1", (f"{PORT_BEGINS}a", f"{PORT_BEGINS}b"))
    with contextlib.ExitStack() as stack:
        _ip("link", "add", bridge, "type", "bridge")
        stack.callback(_ip, "link", "delete", bridge)
        _ip("address", "add", f"{made.address}/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        stack.enter_context(_relay((), made.address, port, "127.0.0.1"))
        for number, name in enumerate(made.names):
            _ip("netns", "add", name)
            stack.callback(_ip, "netns", "delete", name)
            _wire(bridge, name, f"{prefix}.{number + 2}")
            stack.enter_context(_relay(("ip", "netns", "exec", name), "127.0.0.1", port, made.address))
        yield made


def _wire(bridge: str, name: str, address: str) -> None:
    """Wire a namespace to the bridge. The wire's end here has the namespace's name."""
    _ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
    _ip("link", "set", name, "master", bridge, "up")
    _ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
    for device in ("lo", "eth0"):
        _ip("-n", name, "link", "set", device, "up")


@contextlib.contextmanager
def _relay(within: tuple[str, ...], here: str, port: int, there: str) -> Iterator[None]:
    words = [*within, sys.executable, "-m", "tests.support.relay", here, str(port), there, str(port)]
    program = subprocess.Popen(words, cwd=ROOT)
    try:
        yield
    finally:
        program.terminate()
        program.wait()


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)
