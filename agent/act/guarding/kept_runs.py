"""The runs of a slot in its bucket: their claims, and how their work ended."""

import re

import msgspec

from agent.buckets.bucket_client import BucketClient
from agent.buckets.bucket_errors import BucketTaken, BucketTooLarge
from agent.decide.reconcile.guards import guard_end
from agent.domain.record.guard_run import GuardRun
from agent.domain.work import run_claim
from agent.domain.work.guard_report import GuardEnd
from agent.domain.work.run_claim import KeptRun, RunClaim
from agent.domain.work.workload import Workload, WorkloadKind

END = "end.json"
MOST_BYTES = 1 << 16
RUN = re.compile("[1-9][0-9]{0,8}")


async def highest(client: BucketClient, fleet_id: str, present: GuardRun, work: Workload) -> KeptRun | None:
    """Return the highest run of a slot, also in the folder of its workload's old name; None without any.

    Raises:
        BucketAway: the bucket did not answer.
    """
    runs = [
        (int(number), name, f"{fleet_id}/{name}/{present.slot.index}/{number}")
        for name in dict.fromkeys(filter(None, (present.name, work.name, work.was)))
        for number in await client.folders(f"{fleet_id}/{name}/{present.slot.index}")
        if RUN.fullmatch(number)
    ]
    if not runs:
        return None
    number, name, mine = max(runs, key=lambda run: run[0])
    end = await found(client, f"{mine}/{END}")
    return KeptRun(number, await claim_in(client, mine), finished(end, work), name)


async def claim(client: BucketClient, folder: str, run: GuardRun) -> None:
    """Claim the folder of a run; a claim that is there stays.

    Raises:
        BucketAway: the bucket did not answer.
    """
    try:
        await client.write(f"{folder}/{run_claim.NAME}", run_claim.written(run), is_new=True)
    except BucketTaken:
        return


async def claim_in(client: BucketClient, folder: str) -> RunClaim | None:
    """Return the claim in the folder of a run, or None if it has none that can be read.

    Raises:
        BucketAway: the bucket did not answer.
    """
    return run_claim.read(await found(client, f"{folder}/{run_claim.NAME}"))


async def found(client: BucketClient, path: str) -> bytes | None:
    """Return an object of the bucket; empty if it is larger than any of ours, None if it does not exist.

    Raises:
        BucketAway: the bucket did not answer, so its content is not known.
    """
    try:
        return await client.read(path, MOST_BYTES)
    except BucketTooLarge:
        return b""


def finished(end: bytes | None, work: Workload) -> str:
    """Return how a batch's work was done, by its end in the bucket; empty if it was not, or the end is unreadable."""
    if not end or work.kind is not WorkloadKind.BATCH:
        return ""
    try:
        return guard_end.finished(msgspec.json.decode(end, type=GuardEnd), work)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
