"""Folders of guards' buckets that another fleet or workload has claimed, for `gpubid check` and `gpubid doctor`."""

import asyncio
from typing import TYPE_CHECKING

from agent.cli.setup.doctor_checks import Line, Verdict
from agent.cli.shared import session

if TYPE_CHECKING:
    from agent.config.settings import Config
    from agent.domain.work.guard_terms import Bucket
    from agent.domain.work.workload import Workload

MOST_CLAIM = 1 << 12


async def of_others(config: "Config") -> list[Line]:
    """Return a failure for each folder with another claim.

    A bucket that does not answer, or whose credential this process does not have, proves nothing.
    """
    fleet_id = _fleet_id(config)
    if not fleet_id:
        return []
    found = await asyncio.gather(*(_checked(work, fleet_id) for work in config.workloads))
    return [line for line in found if line is not None]


async def _checked(work: "Workload", fleet_id: str) -> Line | None:
    from agent.systemd import CredentialError

    place = work.guard.bucket if work.guard is not None else None
    try:
        return None if place is None else await _claim(work, place, session.named(place.credential), fleet_id)
    except CredentialError:
        return None


def _fleet_id(config: "Config") -> str:
    """Return the fleet's id, or an empty text if there is none yet or it cannot be read."""
    from agent.ledger.file import sidecar
    from agent.ledger.ledger_errors import LedgerError

    try:
        return sidecar.read_fleet_id(config.ledger) or ""
    except (LedgerError, OSError):
        return ""


async def _claim(work: "Workload", place: "Bucket", secret: str, fleet_id: str) -> Line | None:
    """Return a failure if the claim in the folder names another fleet or workload."""
    from agent.buckets.bucket_client import BucketClient
    from agent.buckets.bucket_errors import BucketError, BucketTooLarge
    from agent.domain.work import folder_claim

    try:
        content = await BucketClient(place, secret).read(folder_claim.NAME, MOST_CLAIM)
    except BucketTooLarge:
        content = b""
    except (BucketError, ValueError):
        # `gpubid doctor` has a line of its own for this.
        return None
    claim = folder_claim.read(content)
    if content is None or (claim is not None and claim.is_of(fleet_id, work)):
        return None
    whose = "the claim cannot be read" if claim is None else f"fleet {claim.fleet}, workload {claim.workload}"
    sentence = f"{place} is claimed already ({whose}): each could overwrite the other's checkpoints"
    fix = f"write another folder into bucket; if the claim is out of date, delete {place}/{folder_claim.NAME}"
    return Line(f"folder {work.name}", Verdict.FAIL, sentence, fix)
