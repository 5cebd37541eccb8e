"""The records of a tuning loop: one JSON file for each step that is done, with its data, seed and digest."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

STEPS = ("data", "search", "chart", "file", "shadow", "day", "promoted")
"""The steps in their order."""


@dataclass(frozen=True, slots=True)
class Records:
    """The folder of one loop."""

    folder: Path

    def file(self, step: str) -> Path:
        """Return the file of a step."""
        return self.folder / f"{STEPS.index(step) + 1}-{step}.json"

    def read(self, step: str) -> dict[str, Any] | None:
        """Return the record of a step, or None while the step is not done.

        Raises:
            ValueError: the file is no record; the message says what to do.
        """
        file = self.file(step)
        try:
            record = json.loads(file.read_text("utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            raise ValueError(f"{file} cannot be read; remove it to do this step again") from None
        if not isinstance(record, dict) or record.get("digest") != digest(record):
            raise ValueError(f"{file} was changed by hand or cut short; remove it to do this step again")
        return record

    def write(self, step: str, at: datetime, result: Mapping[str, Any]) -> dict[str, Any]:
        """Record the result of a step, whole or not at all. Return it with its digest.

        Raises:
            OSError: the folder cannot be written.
        """
        record = plain({"step": step, "at": at.isoformat(), **result})
        record["digest"] = digest(record)
        self.folder.mkdir(parents=True, exist_ok=True)
        draft = self.folder / f".{step}.{os.getpid()}.new"
        draft.write_text(json.dumps(record, indent=2) + "\n", "utf-8")
        draft.replace(self.file(step))
        return record

    def put_aside(self, at: datetime) -> Path | None:
        """Rename the folder, so that a loop may begin again. Return its new name, or None if there is no folder.

        Raises:
            OSError: it cannot be renamed.
        """
        if not self.folder.exists():
            return None
        aside = self.folder.with_name(f"{self.folder.name}.{at:%Y%m%dT%H%M%SZ}")
        self.folder.rename(aside)
        return aside


def plain(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result as JSON would give it back."""
    decoded: dict[str, Any] = json.loads(json.dumps(dict(result), default=str))
    return decoded


def digest(record: Mapping[str, Any]) -> str:
    """Return the digest of a record's result. Equal results have equal digests."""
    content = {key: value for key, value in record.items() if key not in {"at", "digest"}}
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:16]
