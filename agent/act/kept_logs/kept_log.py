"""The files of kept logs: one for each stretch of running of a lease, compressed, in a folder beside the ledger.

Invariants:
1. A file is replaced whole. Its first line is its header as JSON; the lines of the container follow.
2. A log that could not be read never replaces one that was read.
3. Three bounds hold: files of one lease, files, and bytes. Past a bound the files with the oldest output are deleted.
"""

import contextlib
import gzip
import hashlib
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

SUFFIX = ".log.gz"
MOST_FILES = 1_000
MOST_RUNS = 4
"""Files of one lease: its last stretches of running."""
MOST_TEXT = 256 * 1024
"""Bytes of one log, before it is compressed; the last lines are kept."""
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")
_LEVEL = 6


class KeptLog(msgspec.Struct, frozen=True):
    """The header of a kept log."""

    lease: str
    slot: str
    market: str
    run: int
    """The number of the lease's stretch of running that printed it; 0 before the first."""
    moment: str
    """What had happened when it was read, such as `outbid`."""
    taken_at: datetime
    lines: int
    problem: str = ""
    """Why there are no lines; empty for a log that was read."""


def folder_of(ledger: Path) -> Path:
    """Return the folder of a ledger's kept logs."""
    return ledger.with_name(ledger.name + ".logs")


def write(folder: Path, kept: KeptLog, lines: Sequence[str], most_bytes: int) -> KeptLog:
    """Keep the last of these lines, delete the files past the bounds, and return the header as it was written.

    Raises:
        OSError: it cannot be written; what was kept before is whole.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / _name(kept)
    before = header(file)
    if kept.problem and before is not None and not before.problem:
        return before
    last = _last(lines)
    kept = msgspec.structs.replace(kept, lines=len(last))
    text = b"\n".join([msgspec.json.encode(kept), *(line.encode("utf-8", "replace") for line in last)])
    draft = file.with_name(file.name + ".new")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as out:
            out.write(gzip.compress(text, _LEVEL, mtime=0))
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)
    _make_room(folder, most_bytes)
    return kept


def header(file: Path) -> KeptLog | None:
    """Return the header of a file; None if there is no such file, or it cannot be read."""
    try:
        with gzip.open(file) as packed:
            return msgspec.json.decode(packed.readline(MOST_TEXT), type=KeptLog)
    except (OSError, EOFError, zlib.error, msgspec.DecodeError):
        return None


def headers(folder: Path) -> list[tuple[KeptLog, Path]]:
    """Return the kept logs of a folder, the oldest output first.

    Raises:
        PermissionError: this user may not read the folder.
    """
    try:
        files = [file for file in folder.iterdir() if file.name.endswith(SUFFIX)]
    except FileNotFoundError:
        return []
    found = [(kept, file) for file in files if (kept := header(file)) is not None]
    return sorted(found, key=lambda pair: (pair[0].taken_at, pair[0].lease))


def lines_of(file: Path) -> list[str]:
    """Return the lines of a kept log; none if it was deleted meanwhile or is damaged."""
    try:
        with gzip.open(file) as packed:
            packed.readline(MOST_TEXT)
            text = packed.read(2 * MOST_TEXT)
    except (OSError, EOFError, zlib.error):
        return []
    return text.decode("utf-8", "replace").splitlines()


def previous(kept: Iterable[KeptLog], target: str, present: tuple[str, int] | None) -> KeptLog | None:
    """Return the newest kept log of a slot, a workload or a lease; None without any.

    `present` is the lease that runs now and the number of its stretch of running, which is no previous one. A log that
    was read counts before one that could not be read.
    """
    mine = [
        each
        for each in kept
        if target in {each.slot, each.slot.rpartition("/")[0], each.lease} and (each.lease, each.run) != present
    ]
    return max(mine, key=lambda each: (not each.problem, each.taken_at), default=None)


def _name(kept: KeptLog) -> str:
    """Return a file name of harmless characters: a market chooses the id of an instance."""
    digest = hashlib.sha256(kept.lease.encode()).hexdigest()[:32]
    return f"{kept.lease if _SAFE.fullmatch(kept.lease) else digest}.{kept.run:06d}{SUFFIX}"


def _last(lines: Sequence[str]) -> list[str]:
    """Return the last lines that have room."""
    last: list[str] = []
    room = MOST_TEXT
    for line in reversed(lines):
        room -= len(line.encode("utf-8", "replace")) + 1
        if room < 0:
            break
        last.append(line)
    return last[::-1]


def _make_room(folder: Path, most_bytes: int) -> None:
    """Delete files past the bounds, those whose output is oldest first."""
    sizes = {}
    for file in folder.glob(f"*{SUFFIX}"):
        with contextlib.suppress(OSError):
            state = file.stat()
            sizes[file] = (state.st_mtime_ns, state.st_size)
    newest = sorted(sizes, key=lambda file: sizes[file][0], reverse=True)
    of_lease: Counter[str] = Counter()
    room, left = most_bytes, MOST_FILES
    for file in newest:
        lease = file.name.split(".")[0]
        of_lease[lease] += 1
        room -= sizes[file][1]
        left -= 1
        if room < 0 or left < 0 or of_lease[lease] > MOST_RUNS:
            file.unlink(missing_ok=True)
