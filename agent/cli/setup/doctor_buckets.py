"""The checks of `gpubid doctor` on the guards' buckets: a bucket answers, and its key opens only its folder."""

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING

from agent.cli.setup.doctor_checks import Line, Verdict
from agent.cli.shared import session

if TYPE_CHECKING:
    from agent.config.settings import Config
    from agent.domain.work.guard_terms import Bucket
    from agent.domain.work.workload import Workload

MOST_CLAIM = 1 << 12
TRIED = "gpubid-doctor"
"""The object that the check writes, always the same and empty: a key may not be allowed to delete it."""
UNSEEN = "its key cannot list other folders; whether it can open them is not known"
WIDE = "its key opens more than this folder, and every rented host can read that key"


async def buckets(config: "Config") -> list[Line]:
    """Return a line for the bucket of each workload's guard. A missing credential already has its own line."""
    from agent.systemd import CredentialError

    lines, fleet_id = [], _fleet_id(config)
    for work in config.workloads:
        place = work.guard.bucket if work.guard is not None else None
        if place is None:
            continue
        try:
            secret = session.named(place.credential)
            line = await _checked(f"bucket {work.name}", place, secret)
            lines.append(line)
            if line.verdict is not Verdict.FAIL:
                lines += await _writes(f"bucket {work.name}", place, secret)
            if fleet_id:
                lines += await _claims(work, place, secret, fleet_id)
        except CredentialError:
            continue
    return lines


def _fleet_id(config: "Config") -> str:
    """Return the fleet's id, or an empty text if there is none yet or it cannot be read."""
    from agent.ledger.file import sidecar
    from agent.ledger.ledger_errors import LedgerError

    try:
        return sidecar.read_fleet_id(config.ledger) or ""
    except (LedgerError, OSError):
        return ""


async def _claims(work: "Workload", place: "Bucket", secret: str, fleet_id: str) -> list[Line]:
    """Return a failure if the claim in the folder names another fleet or workload."""
    from agent.buckets.bucket_client import BucketClient
    from agent.buckets.bucket_errors import BucketError, BucketTooLarge
    from agent.domain.work import folder_claim

    try:
        content = await BucketClient(place, secret).read(folder_claim.NAME, MOST_CLAIM)
    except BucketTooLarge:
        content = b""
    except (BucketError, ValueError):
        # The bucket's own line already reports this.
        return []
    claim = folder_claim.read(content)
    if content is None or (claim is not None and claim.is_of(fleet_id, work)):
        return []
    whose = "the claim cannot be read" if claim is None else f"fleet {claim.fleet}, workload {claim.workload}"
    sentence = f"{place} is claimed already ({whose}): each could overwrite the other's checkpoints"
    fix = f"write another folder into bucket; if the claim is out of date, delete {place}/{folder_claim.NAME}"
    return [Line(f"folder {work.name}", Verdict.FAIL, sentence, fix)]


async def _writes(name: str, place: "Bucket", secret: str) -> list[Line]:
    """Return a failure if the store itself refuses to let the key write into the folder."""
    from agent.buckets.bucket_client import BucketClient
    from agent.buckets.bucket_errors import BucketAway, BucketError

    try:
        await BucketClient(place, secret).write(TRIED, b"")
    except BucketAway as error:
        fix = "let the key write objects in its folder; it needs no right to delete"
        return [Line(name, Verdict.FAIL, f"{place} may be read, not written: {error}", fix)] if error.is_proven else []
    except BucketError:
        return []
    return []


async def _checked(name: str, place: "Bucket", secret: str) -> Line:
    from agent.buckets.bucket_client import BucketClient
    from agent.buckets.bucket_errors import BucketError

    missing = f"gpubid-doctor-{secrets.token_hex(8)}"
    try:
        await BucketClient(place, secret).read(missing, 1)
    except ValueError as error:
        return Line(name, Verdict.FAIL, f"the credential {place.credential} {error}", "write KEY_ID:SECRET into it")
    except BucketError as error:
        fix = "check address, region and key; the key must be allowed to list its folder"
        return Line(name, Verdict.FAIL, str(error), fix)
    if not place.prefix:
        fix = f"keep the checkpoints in a folder, as in s3://{place.name}/train, with a key for that folder alone"
        return Line(name, Verdict.WARN, f"{place} answers; whether its key opens other folders cannot be checked", fix)
    try:
        await BucketClient(replace(place, prefix=""), secret).read(missing, 1)
    except BucketError as error:
        if error.code != "refused":
            return Line(
                name,
                Verdict.WARN,
                f"{place} answers; whether its key opens other folders could not be checked",
                "try again",
            )
        # A store also answers this for a missing object if the key may open the folder but not list it.
        fix = "check the key's rights at the store: it needs only this folder"
        return Line(name, Verdict.WARN, f"{place} answers; {UNSEEN}", fix)
    return Line(name, Verdict.FAIL, f"{place}: {WIDE}", f"make a key for {place} alone")
