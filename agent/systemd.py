"""The protocol with systemd: readiness, the watchdog, and credentials."""

import contextlib
import os
import socket
from collections.abc import Mapping
from pathlib import Path

MAX_CREDENTIAL = 4096
STORE = Path("/etc/credstore")
"""The folder in which systemd looks for a unit's credential. gpubid looks there too, if its user may read it."""
_MICROS = 1_000_000


class CredentialError(Exception):
    """A key is not available. `code` is for programs; the text names the places searched, never their content."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


class Notifier:
    """Reports the program's state to the service manager; silent if there is none."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Read the address and the watchdog's patience from systemd's environment."""
        address = environment.get("NOTIFY_SOCKET", "")
        # A leading @ is systemd's way to write the NUL byte of an abstract address.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self.watchdog_seconds = _watchdog_seconds(environment)

    def ready(self, status: str = "") -> bool:
        """Report the end of start-up or of a reload."""
        return self._send("READY=1", _status(status))

    def reloading(self, monotonic: float) -> bool:
        """Report the beginning of a reload, at `monotonic` seconds of the machine."""
        return self._send("RELOADING=1", f"MONOTONIC_USEC={int(monotonic * _MICROS)}")

    def stopping(self, status: str = "") -> bool:
        """Report that the program is stopping."""
        return self._send("STOPPING=1", _status(status))

    def status(self, text: str) -> bool:
        """Report in a sentence what the program does; `systemctl status` shows it."""
        return self._send(_status(text))

    def watchdog(self) -> bool:
        """Report that every job makes progress."""
        return self._send("WATCHDOG=1")

    def _send(self, *lines: str) -> bool:
        """Send one datagram; an unreachable manager is no reason to stop working."""
        if not self._address:
            return False
        message = "\n".join(line for line in lines if line).encode()
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as link,
        ):
            link.setblocking(False)
            link.sendto(message, self._address)
            return True
        return False


def _status(text: str) -> str:
    return f"STATUS={' '.join(text.split())[:500]}" if text else ""


def _watchdog_seconds(environment: Mapping[str, str]) -> float | None:
    """Return the watchdog's patience, or None when it does not watch this process."""
    micros = environment.get("WATCHDOG_USEC", "")
    if not micros.isdecimal() or environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    return int(micros) / _MICROS or None


def credential(name: str, file: Path | None, environment: Mapping[str, str]) -> str:
    """Return a key: from `file` if it is named, else systemd's credential `name`, else the variable NAME.

    Without any of these, systemd's own store is read, so that root's verbs have the key of the service.

    Raises:
        CredentialError: it is nowhere, cannot be read, or is no key.
    """
    directory = environment.get("CREDENTIALS_DIRECTORY", "")
    variable = variable_of(name)
    if file is not None:
        return _checked(_read(file), str(file))
    if directory and (Path(directory) / name).exists():
        return _checked(_read(Path(directory) / name), f"credential {name}")
    if environment.get(variable):
        return _checked(environment[variable], f"variable {variable}")
    if os.access(STORE / name, os.R_OK):
        return _checked(_read(STORE / name), f"credential {name}")
    ways = f"set the variable {variable}, write {STORE / name}, or add LoadCredential={name}:FILE to the unit"
    raise CredentialError("no_credential", f"there is no key named {name}; {ways}")


def variable_of(name: str) -> str:
    """Return the environment variable that may have the key of a credential."""
    return name.upper().replace("-", "_").replace(".", "_")


def _read(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_CREDENTIAL + 1)
    except OSError as error:
        sentence = f"{file}: cannot be read ({os.strerror(error.errno or 0)}); check its path and its permissions"
        raise CredentialError("unreadable", sentence) from None
    if len(content) > MAX_CREDENTIAL:
        raise CredentialError(
            "too_large", f"{file}: is larger than {MAX_CREDENTIAL} bytes; name the file with the key alone"
        )
    return content.decode("latin-1")


def _checked(text: str, where: str) -> str:
    key = text.strip()
    if not key:
        raise CredentialError("empty", f"{where}: is empty; write the key into it")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise CredentialError("no_key", f"{where}: holds more than one word or odd characters; write the key alone")
    return key
