"""Ports that tests hand to programs are never the kernel's, and never another worker's."""

import re
import socket
from pathlib import Path

from tests.support import ports

TESTS = Path(__file__).parents[1]


def test_each_worker_has_ports_of_its_own_that_the_kernel_gives_to_nobody() -> None:
    shares = [ports.share(worker) for worker in range(ports.WORKERS)]
    every = [port for share in shares for port in share]
    assert len(set(every)) == len(every)
    assert min(map(len, shares)) >= 1_000
    assert max(every) < ports.BELOW


def test_a_port_is_free_and_given_once() -> None:
    found = [ports.free() for _ in range(5)]
    assert len(set(found)) == 5
    assert max(found) < ports.below_kernel()
    for port in found:
        with socket.create_server(("127.0.0.1", port)):
            pass


def test_no_test_lets_the_kernel_choose_a_port_for_later() -> None:
    closed_again = re.compile(r"create_server\(\(\S+, 0\)\) as (\w+):\n\s+return|\.bind\(\(\S+, 0\)\)")
    found = [file.name for file in TESTS.rglob("*.py") if closed_again.search(file.read_text(encoding="utf-8"))]
    assert found == []
