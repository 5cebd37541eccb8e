"""Any other store by rclone, where it is on PATH: SFTP, Drive, WebDAV and so on. No conditions, no resumed uploads."""

from __future__ import annotations

import calendar
import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Callable, Sequence

from agent.guard.guard_clock import GuardClock
from agent.guard.object_store import DiskFailed, Fetched, Listed, Refused, TooLarge, Unreachable, Uploaded
from agent.guard.reaper import Reaper

PROGRAM = "rclone"
PATIENCE_SECONDS, NOTE_SECONDS = 6 * 3_600.0, 120.0
"""How long rclone may take for a file of a checkpoint, and for everything else: by itself it tries for hours."""
_OF_FILES = "copyto"
NOT_FOUND = 404
_NOT_FOUND_CODES = frozenset({3, 4})
_LARGEST_LISTING_BYTES = 32 * 1024 * 1024
_PIECE = 256 * 1024
_LONGEST_SAID = 300
_LAST_SECONDS = 10.0
"""How long it may take to end once it has closed its output."""


class RcloneStore:
    """The objects of a remote of rclone's, as `remote:`. A key may begin with a slash where the remote has folders."""

    def __init__(self, remote: str, clock: GuardClock, reaper: Reaper) -> None:
        """Run rclone for every request."""
        self._remote = remote
        self._clock = clock
        self._reaper = reaper

    def get(self, key: str, most_bytes: int) -> Fetched | None:
        """Return an object, or None where there is none. A larger one is refused."""
        code, body, said = self._run(["cat", "--count", str(most_bytes + 1), self._place(key)], b"", most_bytes + 1)
        if code in _NOT_FOUND_CODES:
            return None
        if code != 0:
            raise Unreachable(f"rclone: {said}")
        if len(body) > most_bytes:
            raise TooLarge(f"{key} has more than {most_bytes} bytes")
        return Fetched(body, hashlib.sha256(body).hexdigest())

    def put(self, key: str, body: bytes, *, tag: str | None = None, is_new: bool = False) -> bool:
        """Write a small object. The store keeps no condition: a caller that needs one has read the object first."""
        del tag, is_new
        self._do(["rcat", self._place(key)], body)
        return True

    def upload(self, key: str, file: Path) -> Uploaded:
        """Write a file. Its tag at the remote is not known."""
        sha256 = _sha256(file)
        self._do(["copyto", "--no-traverse", str(file), self._place(key)])
        return Uploaded(sha256)

    def download(self, key: str, file: Path, size_bytes: int) -> str:
        """Read an object of a known size into a file, and return its SHA-256. A larger one is not read."""
        code, body, said = self._run(["lsjson", "--stat", "--no-mimetype", self._place(key)], b"", _PIECE)
        if code not in {0, *_NOT_FOUND_CODES}:
            raise Unreachable(f"rclone: {said}")
        if _size(body) != size_bytes:
            raise Refused(f"{key} is not there with {size_bytes} bytes", NOT_FOUND)
        self._do(["copyto", "--no-traverse", self._place(key), str(file)])
        return _sha256(file)

    def list(self, prefix: str, most: int) -> list[Listed]:
        """Return the objects whose keys begin so, `most` at most."""
        folder = prefix.rpartition("/")[0]
        words = ["lsjson", "-R", "--files-only", "--no-mimetype", self._place(folder)]
        code, body, said = self._run(words, b"", _LARGEST_LISTING_BYTES)
        if code in _NOT_FOUND_CODES:
            return []
        if code != 0:
            raise Unreachable(f"rclone: {said}")
        try:
            rows = json.loads(body)
            listed = [self._listed(f"{folder}/{row['Path']}", row) for row in rows[: 10 * most]]
        except (ValueError, KeyError, TypeError):
            raise Refused("rclone's listing cannot be read") from None
        return [row for row in listed if row.key.startswith(prefix)][:most]

    def delete(self, key: str) -> None:
        """Remove an object; one that is not there is no error."""
        if self.list(key, 2):
            self._do(["deletefile", "--retries", "1", self._place(key)])

    def abort_stale(self, prefix: str, is_stale: Callable[[str, float], bool]) -> None:
        """Do nothing: rclone leaves nothing unfinished that it could list."""

    def _listed(self, key: str, row: dict[str, object]) -> Listed:
        try:
            written = float(calendar.timegm(time.strptime(str(row["ModTime"])[:19], "%Y-%m-%dT%H:%M:%S")))
        except ValueError:
            written = 0.0
        return Listed(key, int(str(row["Size"])), self._clock.wall() - written)

    def _place(self, key: str) -> str:
        return f"{self._remote}{key}"

    def _do(self, words: Sequence[str], body: bytes = b"") -> None:
        code, _, said = self._run(words, body, _PIECE)
        if code != 0:
            raise Unreachable(f"rclone: {said}")

    def _run(self, words: Sequence[str], body: bytes, most_bytes: int) -> tuple[int, bytes, str]:
        """Run rclone; return its exit code, its output up to a size, and its last words."""
        try:
            # Its errors go into the same pipe or nowhere: two pipes would have to be read at once.
            process = self._reaper.start(
                lambda: subprocess.Popen(  # noqa: S603 - a program of the operator's image, with words of ours
                    [PROGRAM, "--ask-password=false", *words],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT if words[0] not in {"cat", "lsjson"} else subprocess.DEVNULL,
                )
            )
        except OSError as failure:
            raise Unreachable(f"rclone cannot be started ({failure.strerror})") from None
        most_seconds = PATIENCE_SECONDS if words[0] == _OF_FILES else NOTE_SECONDS
        bound = threading.Timer(most_seconds, _kill, [process.pid])
        bound.daemon = True
        bound.start()
        try:
            printed = _exchanged(process, body, most_bytes)
        finally:
            bound.cancel()
        code = self._reaper.wait(process, _LAST_SECONDS)
        if code is None or code == -signal.SIGKILL:
            _kill(process.pid)
            raise Unreachable(f"rclone did not end within {most_seconds:.0f} s, or was killed")
        return code, printed, printed[-_LONGEST_SAID:].decode("utf-8", "replace").strip().replace("\n", " ")


def is_here() -> bool:
    """Return whether PATH has rclone."""
    return shutil.which(PROGRAM) is not None


def _kill(number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(number, signal.SIGKILL)


def _exchanged(process: subprocess.Popen[bytes], body: bytes, most_bytes: int) -> bytes:
    if process.stdin is None or process.stdout is None:
        return b""
    try:
        with process.stdin:
            process.stdin.write(body)
    except BrokenPipeError:
        pass
    with process.stdout:
        return process.stdout.read(most_bytes)


def _size(body: bytes) -> int | None:
    try:
        size = json.loads(body)["Size"]
    except (ValueError, KeyError, TypeError):
        return None
    return size if isinstance(size, int) else None


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    try:
        with file.open("rb") as source:
            for piece in iter(lambda: source.read(_PIECE), b""):
                digest.update(piece)
    except OSError as failure:
        raise DiskFailed(f"{file.name} cannot be read ({failure.strerror})") from None
    return digest.hexdigest()
