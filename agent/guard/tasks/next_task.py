"""The task that the daemon assigns to this container once its own is done: its note, and the environment it gives.

A note says only which task it is: its folder, its run, and the values of variables that the rent named for that.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Collection, Mapping

from agent.guard.bucket_notes import VERSION

_LEASE = re.compile(r"[A-Za-z0-9_-]{1,256}")
_MOST_TEXT, _MOST_VALUE, _MOST_RUN = 1_024, 32_768, 2**31


def note_name(lease: str) -> str:
    """Return the name of the note with the task after a container's present one."""
    return f"next-{lease}.json"


@dataclass(frozen=True)
class NextTask:
    """A task: the name of its lease, its folder in the bucket, its run, and its own variables."""

    lease: str
    root: str
    run: int
    manifest_exists: bool
    variables: Mapping[str, str]

    def note(self) -> Mapping[str, Any]:
        """Return it as `parsed` reads it."""
        return {
            "version": VERSION,
            "lease": self.lease,
            "root": self.root,
            "run": self.run,
            "manifest_exists": self.manifest_exists,
            "variables": dict(self.variables),
        }


def parsed(note: Mapping[str, Any], allowed: Collection[str]) -> NextTask | None:
    """Return the task in a note, or None if it has none that can begin. Only variables in `allowed` may be set."""
    lease, root, run = note.get("lease"), note.get("root"), note.get("run")
    variables = note.get("variables")
    is_named = isinstance(lease, str) and _LEASE.fullmatch(lease) and isinstance(root, str) and _is_folder(root)
    is_run = isinstance(run, int) and not isinstance(run, bool) and 1 <= run <= _MOST_RUN
    if not is_named or not is_run or not isinstance(variables, dict) or not set(variables) <= set(allowed):
        return None
    if not all(isinstance(text, str) and len(text) <= _MOST_VALUE and "\0" not in text for text in variables.values()):
        return None
    # A checkpoint that may exist must be found: it is also looked for if the note does not say.
    return NextTask(lease, root, run, note.get("manifest_exists") is not False, variables)  # type: ignore[arg-type]


def environment(rented: Mapping[str, str], task: NextTask) -> dict[str, str]:
    """Return the environment of a rent with a later task in place of its own."""
    settings = json.loads(rented["GPUBID_GUARD"])
    settings.update(rented=settings["lease"], lease=task.lease, run=task.run, manifest_exists=task.manifest_exists)
    settings["bucket"] = {**settings["bucket"], "root": task.root}
    return {**rented, **task.variables, "GPUBID_GUARD": json.dumps(settings, separators=(",", ":"))}


def without(rented: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a rent after whose task no other one begins here."""
    settings = {**json.loads(rented["GPUBID_GUARD"]), "next_variables": None}
    return {**rented, "GPUBID_GUARD": json.dumps(settings, separators=(",", ":"))}


def _is_folder(root: str) -> bool:
    parts = root.split("/")
    return len(root) <= _MOST_TEXT and root.isprintable() and not {"", ".", ".."} & set(parts)
