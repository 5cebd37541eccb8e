"""The claim on a folder of a bucket: the fleet and the workload whose guards keep checkpoints there."""

from typing import Annotated, Literal

import msgspec

from agent.domain.work.workload import Workload

NAME = "claim.json"
"""Its name below the folder."""
Text = Annotated[str, msgspec.Meta(max_length=256)]


class FolderClaim(msgspec.Struct, frozen=True):
    """One folder belongs to one workload of one fleet, because its key allows to overwrite everything in it."""

    version: Literal[1]
    fleet: Text
    workload: Text

    def is_of(self, fleet_id: str, work: Workload) -> bool:
        """Return whether a workload of a fleet may use the folder, also under its old name."""
        return self.fleet == fleet_id and self.workload in {work.name, work.was}


def of(fleet_id: str, work: Workload) -> FolderClaim:
    """Return the claim of a workload."""
    return FolderClaim(1, fleet_id, work.name)


def written(claim: FolderClaim) -> bytes:
    """Return a claim as the bytes of its object."""
    return msgspec.json.encode(claim)


def read(content: bytes | None) -> FolderClaim | None:
    """Return the claim in an object, or None if it has none that can be read."""
    try:
        return None if content is None else msgspec.json.decode(content, type=FolderClaim)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
