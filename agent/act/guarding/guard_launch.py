"""How a rented container starts under the guard: its command, its script and its variables."""

import json
from dataclasses import dataclass
from datetime import timedelta

from agent.domain.work import guard_prelude, kept_terms
from agent.domain.work.guard_terms import Accept, Bucket, GuardTerms
from agent.domain.work.run_claim import KeptRun
from agent.domain.work.workload import Workload
from agent.markets import registered_markets
from agent.markets.market_record import StopRequest

GUARD = "GPUBID_GUARD"
URL = "GPUBID_GUARD_URL"
DIGEST = "GPUBID_GUARD_SHA256"
KEY_ID = "GPUBID_BUCKET_KEY_ID"
SECRET = "GPUBID_BUCKET_SECRET"  # noqa: S105 - the name of a variable
VERSION = 1
CHECK_SECONDS = 60
"""The longest time for the check of a host: its GPUs are paid for meanwhile."""


@dataclass(frozen=True, slots=True)
class GuardLaunch:
    """The facts that the guard of one lease gets, besides the key."""

    lease: str
    """The id of the intent that rents it, which is known before the market names the instance."""
    run: int
    folder: str
    """Its folder below the bucket's or rclone's, without slashes at its ends; empty without either."""
    manifest_exists: bool
    """Whether a checkpoint of this run may be in the bucket: then it never starts without the guard."""
    url: str
    """The address of the program; empty without a bucket."""
    sha256: str
    kept: KeptRun | None = None
    """The highest run of the slot in the bucket, if the rent's run never had a lease; None: none, or unknown."""
    unlisted: str = ""
    """Why the runs of the slot in the bucket could not be listed, if the rent's run never had a lease."""
    finished: str = ""
    """How the work of the run ended, if it is done already; then nothing is rented for it."""
    market: str = ""
    api: str = ""
    """The base address of that market's API, to which a dead man's switch sends its one request."""

    def root(self, place: Bucket | None) -> str:
        """Return its folder in the bucket, with the bucket's own; empty without one."""
        return "" if place is None else "/".join(part for part in (place.prefix, self.folder) if part)


def environment(
    launch: GuardLaunch, work: Workload, interval_seconds: int, key: tuple[str, str] | None
) -> tuple[tuple[str, str], ...]:
    """Return the variables of a guarded container; `key` is the id and the secret of the bucket's key."""
    settings = json.dumps(_settings(launch, work, interval_seconds), separators=(",", ":"))
    fetched = ((URL, launch.url),) if launch.url else ()
    keys = ((KEY_ID, key[0]), (SECRET, key[1])) if key is not None else ()
    return ((GUARD, settings), (DIGEST, launch.sha256), *fetched, *keys)


def command(work: Workload) -> str:
    """Return the command that starts the guard with the workload's own, or nothing if it has none.

    Raises:
        ValueError: the workload's command cannot be split into words.
    """
    return guard_prelude.command(work.command) if work.command else ""


def script(work: Workload) -> str:
    """Return the start script that starts the guard with the workload's own, or nothing if it has none."""
    return guard_prelude.script(work.onstart) if work.onstart else ""


def _settings(launch: GuardLaunch, work: Workload, interval_seconds: int) -> dict[str, object]:
    terms = work.guard
    if terms is None:
        raise ValueError(f"{work.name} has no guard")
    place = terms.bucket
    bucket = (
        None
        if place is None
        else {
            "endpoint": place.endpoint,
            "region": place.region,
            "name": place.name,
            "root": launch.root(place),
        }
    )
    optional: dict[str, object] = {}
    if terms.deadman is not None and place is not None:
        optional["deadman"] = _switch(launch, terms.deadman, terms)
    if kept_terms.container_digest(work):
        optional["next_variables"] = sorted(kept_terms.variables(work, 0))
    if terms.accept is not Accept.OFF:
        optional["acceptance"] = {"seconds": CHECK_SECONDS, "script": terms.accept_script or None}
    return {
        **optional,
        "version": VERSION,
        "paths": terms.paths,
        "complete": terms.complete or None,
        "ask": terms.ask.value,
        "keep": terms.keep,
        "final_within_seconds": terms.final_within.total_seconds(),
        "done_codes": terms.done_codes,
        "interval_seconds": interval_seconds,
        "bucket": bucket,
        "rclone": f"{terms.rclone}/{launch.folder}" if terms.rclone and place is None else None,
        "lease": launch.lease,
        "run": launch.run,
        "manifest_exists": launch.manifest_exists,
        "logs": terms.logs,
    }


def _switch(launch: GuardLaunch, after: timedelta, terms: GuardTerms) -> dict[str, object]:
    seconds = int(after.total_seconds())
    return {"after_seconds": seconds, "destroy": terms.destroy, "api": launch.api, **asking(launch.market)}


def asking(market: str) -> dict[str, object]:
    """Return how a container asks a market to stop or to end its instance.

    Raises:
        ValueError: the market gives an instance no key; `gpubid check` refuses a switch there.
    """
    key = registered_markets.record(market).instance_key
    if key is None:
        raise ValueError(f"{market} gives an instance no key to stop itself with")
    return {
        "instance_from": key.id_variable,
        "key_from": key.key_variable,
        "stop": _request(key.stop),
        "end": _request(key.end),
    }


def _request(request: StopRequest) -> dict[str, object]:
    return {"method": request.method, "path": request.path, "body": dict(request.body)}
