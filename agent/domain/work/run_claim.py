"""The claim on the folder of a run: the spec of its work, and when it began. A later ledger knows the run by it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from agent.domain.record.guard_run import GuardRun

NAME = "run.json"
"""Its name below the folder of the run."""


class RunClaim(msgspec.Struct, frozen=True):
    """The spec of one run, by its digest, and its beginning. Anybody with the bucket's key may have written it."""

    version: Literal[1]
    spec: Annotated[str, msgspec.Meta(max_length=256)]
    begun_at: Annotated[datetime, msgspec.Meta(tz=True)]

    def is_of(self, run: GuardRun) -> bool:
        """Return whether a ledger's run made the claim; a run of another ledger may have the same number."""
        return self.begun_at == run.begun_at


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A run of a slot in its bucket."""

    number: int
    claim: RunClaim | None = None
    """None: an older release began it, or nobody can read its claim."""
    finished: str = ""
    """How its work was done; empty if it is not."""
    name: str = ""
    """The workload's name in its folder, perhaps an old one; empty: the present run's."""

    def is_in_folder_of(self, run: GuardRun) -> bool:
        """Return whether its folder is that of a ledger's run."""
        return (self.number, self.name or run.name) == (run.run, run.name)


def written(run: GuardRun) -> bytes:
    """Return the claim of a run as the bytes of its object."""
    return msgspec.json.encode(RunClaim(1, run.spec_digest, run.begun_at))


def read(content: bytes | None) -> RunClaim | None:
    """Return the claim in an object, or None if it has none that can be read."""
    try:
        return None if content is None else msgspec.json.decode(content, type=RunClaim)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
