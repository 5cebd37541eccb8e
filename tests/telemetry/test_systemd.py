"""What systemd hears, and where keys are found."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent import systemd
from agent.systemd import CredentialError, Notifier, credential

OURS = "the process of the test"


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[socket.socket, str]]:
    """Listen as the service manager does, under a path and under an abstract name."""
    name = str(tmp_path / "notify")
    address = name if request.param == "path" else f"\0{name}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(address)
        listening.settimeout(5)
        yield listening, address.replace("\0", "@")


def test_every_message(manager: tuple[socket.socket, str]) -> None:
    listening, address = manager
    notifier = Notifier({"NOTIFY_SOCKET": address})
    said = [
        (notifier.ready("1 workload\n on vast "), b"READY=1\nSTATUS=1 workload on vast"),
        (notifier.ready(), b"READY=1"),
        (notifier.reloading(12.5), b"RELOADING=1\nMONOTONIC_USEC=12500000"),
        (notifier.stopping("draining"), b"STOPPING=1\nSTATUS=draining"),
        (notifier.status("waiting"), b"STATUS=waiting"),
        (notifier.watchdog(), b"WATCHDOG=1"),
    ]
    for was_sent, message in said:
        assert was_sent
        assert listening.recv(4096) == message


def test_a_status_is_bounded_and_cannot_smuggle_a_line(manager: tuple[socket.socket, str]) -> None:
    listening, address = manager
    Notifier({"NOTIFY_SOCKET": address}).status("x\nSTOPPING=1 " * 200)
    assert b"\n" not in (message := listening.recv(65_536))
    assert len(message) <= 507


def test_nobody_listening_is_no_error(tmp_path: Path) -> None:
    assert not Notifier({}).ready()
    assert not Notifier({"NOTIFY_SOCKET": str(tmp_path / "gone")}).ready()


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": OURS}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
    ],
)
def test_the_watchdogs_patience(environment: dict[str, str], expected: float | None) -> None:
    # The process that collects the tests need not be the one that runs them.
    told = {name: str(os.getpid()) if value is OURS else value for name, value in environment.items()}
    assert Notifier(told).watchdog_seconds == expected


def test_a_key_is_looked_for_in_order(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("from-file\n")
    (tmp_path / "vast_api_key").write_text("from-systemd\n")
    environment = {"CREDENTIALS_DIRECTORY": str(tmp_path), "VAST_API_KEY": "from-variable"}
    assert credential("vast_api_key", tmp_path / "file", environment) == "from-file"
    assert credential("vast_api_key", None, environment) == "from-systemd"
    assert credential("vast_api_key", None, {**environment, "CREDENTIALS_DIRECTORY": "/nowhere"}) == "from-variable"
    assert credential("vast-api.key", None, environment) == "from-variable"


def test_the_store_of_systemd_is_asked_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systemd, "STORE", tmp_path)
    (tmp_path / "vast_api_key").write_text("from-store\n")
    assert credential("vast_api_key", None, {}) == "from-store"
    assert credential("vast_api_key", None, {"VAST_API_KEY": "from-variable"}) == "from-variable"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"two words", "no_key"),
        (b"secret\xff", "no_key"),
        (b"secret\0secret", "no_key"),
        (b"k" * 5000, "too_large"),
    ],
)
def test_what_is_no_key_is_refused_without_being_repeated(tmp_path: Path, content: bytes, code: str) -> None:
    (tmp_path / "key").write_bytes(content)
    with pytest.raises(CredentialError) as caught:
        credential("", tmp_path / "key", {})
    assert caught.value.code == code
    assert "secret" not in str(caught.value)


def test_a_key_that_is_nowhere(tmp_path: Path) -> None:
    with pytest.raises(
        CredentialError, match=r"set the variable VAST_API_KEY, .* or add LoadCredential=vast_api_key:FILE to the unit"
    ):
        credential("vast_api_key", None, {})
    with pytest.raises(CredentialError, match="cannot be read"):
        credential("", tmp_path / "none", {})
    with pytest.raises(CredentialError, match="cannot be read"):
        credential("", tmp_path, {})
