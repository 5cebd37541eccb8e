"""The checks of `gpubid doctor` on the guards' buckets: a bucket answers, and its key opens only its folder."""

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING

from agent.cli.setup import bucket_claims
from agent.cli.setup.doctor_checks import Line, Verdict
from agent.cli.shared import session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent.config.settings import Config
    from agent.domain.work.guard_terms import Bucket

TRIED = "gpubid-doctor"
"""The object that the check writes, always the same and empty: a key may not be allowed to delete it."""
UNSEEN = "its key cannot list other folders; whether it can open them is not known"
WIDE = "its key opens more than this folder, and every rented host can read that key"


async def buckets(config: "Config") -> list[Line]:
    """Return a line for the bucket of each workload's guard. A missing credential already has its own line."""
    from agent.systemd import CredentialError

    lines = []
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
        except CredentialError:
            continue
    return [*lines, *await bucket_claims.of_others(config)]


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
    return await _width(name, place, secret, missing)


async def _width(name: str, place: "Bucket", secret: str, missing: str) -> Line:
    """Return whether the key opens the bucket, a folder around its own, or one whose name begins like it."""
    from agent.buckets.bucket_client import BucketClient
    from agent.buckets.bucket_errors import BucketError

    is_unknown = False
    for prefix in _others(place.prefix, missing):
        other = replace(place, prefix=prefix)
        try:
            await BucketClient(other, secret).read(missing, 1)
        except BucketError as error:
            is_unknown |= error.code != "refused"
        else:
            fix = f"make a key for {place}/ alone"
            return Line(name, Verdict.FAIL, f"{place}: {WIDE}: {other} was tried", fix)
    if is_unknown:
        sentence = f"{place} answers; whether its key opens other folders could not be checked"
        return Line(name, Verdict.WARN, sentence, "try again")
    # A store also answers this for a missing object if the key may open the folder but not list it.
    fix = "check the key's rights at the store: it needs only this folder"
    return Line(name, Verdict.WARN, f"{place} answers; {UNSEEN}", fix)


def _others(prefix: str, missing: str) -> "Iterator[str]":
    """Yield the folders that a key for one folder must not open: those around it, and one whose name begins like it."""
    parts = prefix.split("/")
    yield from ("/".join(parts[:count]) for count in range(len(parts)))
    yield f"{prefix}-{missing}"
