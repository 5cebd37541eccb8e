"""The guard as one file: a zip archive that Python runs. The same source gives the same bytes."""

import hashlib
import io
import zipfile
from pathlib import Path

NAME = "guard.pyz"
_FOLDER = Path(__file__).parents[1] / "guard"
_ENTRY = "agent.guard.guard_entry:main"
_FIRST_LINE = b"#!/usr/bin/env python3\n"
_DATE = (1980, 1, 1, 0, 0, 0)
"""The earliest date of a zip archive. With the dates of the files, every checkout would give other bytes."""
_ON_UNIX, _MODE = 3, 0o100644 << 16


def packed(folder: Path = _FOLDER) -> bytes:
    """Return the archive of the guard's source."""
    module, _, function = _ENTRY.partition(":")
    files = {"__main__.py": f"from {module} import {function}\n\n{function}()\n".encode(), "agent/__init__.py": b""}
    for path in sorted(folder.rglob("*.py")):
        files[f"agent/guard/{path.relative_to(folder).as_posix()}"] = path.read_bytes()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, body in sorted(files.items()):
            archive.writestr(_entry(name), body, compresslevel=9)
    return _FIRST_LINE + out.getvalue()


def digest(archive: bytes) -> str:
    """Return the SHA-256 that names an archive."""
    return hashlib.sha256(archive).hexdigest()


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system, entry.external_attr = _ON_UNIX, _MODE
    return entry
