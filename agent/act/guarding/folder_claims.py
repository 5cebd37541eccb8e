"""Claims the folders of guards for their workloads, and logs a folder that has another claim."""

import structlog

from agent.buckets.bucket_client import BucketClient
from agent.buckets.bucket_errors import BucketTaken, BucketTooLarge
from agent.domain.work import folder_claim
from agent.domain.work.workload import Workload

log = structlog.get_logger("gpubid.guard")

MOST_BYTES = 1 << 12


async def claim(client: BucketClient, fleet_id: str, work: Workload) -> None:
    """Claim a folder that nobody has claimed. Another claim is left as it is, and logged.

    Raises:
        BucketAway: the bucket did not answer, so the folder's claim is unknown.
    """
    mine = folder_claim.of(fleet_id, work)
    try:
        content = await client.read(folder_claim.NAME, MOST_BYTES)
    except BucketTooLarge:
        content = b""  # Something is there, and it is no claim of ours.
    theirs = folder_claim.read(content)
    if content is None:
        try:
            await client.write(folder_claim.NAME, folder_claim.written(mine), is_new=True)
        except BucketTaken:
            log.warning("guard.folder_claimed", bucket=str(client.place), workload=work.name)
    elif theirs is None or not theirs.is_of(fleet_id, work):
        log.warning("guard.folder_claimed", bucket=str(client.place), workload=work.name)
    elif theirs != mine:
        await client.write(folder_claim.NAME, folder_claim.written(mine))
