"""Reads the notes of guards in their buckets: their beats, and how the work ended.

Invariants:
1. A cycle waits for buckets at most `PATIENCE_SECONDS`, and once per lease `FIRST_PATIENCE_SECONDS`. A slower answer is
   collected in a later cycle.
2. At most one reading a lease and `MOST_AT_ONCE` together run; each ends by the bucket client's own deadline.
3. A bucket that does not answer changes nothing: its last answer stays, with its time, and no absence is assumed.
4. Everything read is bounded, typed and cleaned. A beat of another shape counts as missing, an end of another shape as
   unreadable.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec
import structlog

from agent import background_tasks
from agent.buckets.bucket_client import BucketClient
from agent.buckets.bucket_errors import BucketAway, BucketTooLarge
from agent.clock import Clock
from agent.domain.fleet import MarketView
from agent.domain.market.instance import InstanceState
from agent.domain.record.lease import LeaseState
from agent.domain.work.acceptance_report import AcceptanceReport
from agent.domain.work.guard_report import GuardBeat, GuardEnd, GuardReport, GuardSwitch
from agent.domain.work.guard_terms import Accept, Bucket
from agent.domain.work.workload import Workload
from agent.ledger.memory import Recollection
from agent.markets import text

log = structlog.get_logger("gpubid.guard_reader")

PATIENCE_SECONDS = 0.5
FIRST_PATIENCE_SECONDS = 5.0
"""For the first reading of a lease. Without the note of a dead man's switch its stop looks like a person's, and a batch
is held. The container may have a switch that the file does not have any more."""
EVERY_SECONDS = 60.0
AWAITED_EVERY_SECONDS = 1.0
NEVER = float("-inf")
"""A guard that was asked for a checkpoint is read in every cycle: its lease bills until it has answered."""
AWAITED_FOR = timedelta(minutes=15)
"""Longer than any `final_within`."""
MOST_AT_ONCE = 16
MOST_BYTES = 1 << 16
MOST_LINE = 200
END = "end.json"

T = TypeVar("T", GuardBeat, GuardEnd, GuardSwitch, AcceptanceReport)
Spawn = Callable[[Coroutine[Any, Any, GuardReport | None]], asyncio.Task[GuardReport | None]]
Reports = Mapping[str, GuardReport]
"""By the id of the intent that rented the lease."""


@dataclass(frozen=True, slots=True)
class GuardTarget:
    """One lease whose guard's notes are read; `is_urgent` if something waits for its end.

    `asked_at` is when it was last asked for a checkpoint, `is_checked` whether its guard checks the host.
    """

    lease: str
    place: Bucket
    folder: str
    is_urgent: bool
    asked_at: datetime | None = None
    is_checked: bool = False


def targets(
    known: Recollection, workloads: Iterable[Workload], fleet_id: str, views: Iterable[MarketView] = ()
) -> tuple[GuardTarget, ...]:
    """Return the leases that may have a guard at work, or had one a moment ago.

    A lease that ran and is not listed as running now is urgent: its last checkpoint shows how much work a loss cost.
    """
    rows = {(view.market, row.instance_id): row for view in views if view.is_fresh for row in view.instances}
    stopped = {at for at, row in rows.items() if row.state is not InstanceState.RUNNING}
    works = {work.name: work for work in workloads}
    runs = {(run.slot, run.run): run for run in known.guard_runs}
    found = []
    for lease in known.leases:
        work = works.get(lease.slot.workload)
        place = work.guard.bucket if work is not None and work.guard is not None else None
        run = runs.get((lease.slot, lease.guard_run or 0))
        if place is not None and run is not None and lease.has_run and not lease.is_held:
            folder = run.folder(fleet_id)
            has_just_stopped = lease.state is LeaseState.RUNNING and (lease.market, lease.instance_id) in stopped
            is_urgent = lease.interrupted_by is not None or has_just_stopped
            is_checked = work is not None and work.guard is not None and work.guard.accept is not Accept.OFF
            asked_at = lease.checkpoint_asked_at
            found.append(GuardTarget(lease.intent_id, place, folder, is_urgent, asked_at, is_checked))
    return tuple(found)


class GuardReader:
    """Reads the notes of guards."""

    def __init__(self, clock: Clock, spawn: Spawn, secret: Callable[[str], str]) -> None:
        """Start tasks with `spawn`; `secret` gives the key of a bucket by the name of its credential."""
        self._clock = clock
        self._spawn = spawn
        self._secret = secret
        self._running: dict[str, asyncio.Task[GuardReport | None]] = {}
        self._asked: dict[str, float] = {}
        self._away: set[Bucket] = set()
        self._clients: dict[Bucket, tuple[str, BucketClient]] = {}
        self.reports: Reports = {}
        """The last reports; the mapping is replaced at every change."""

    async def look(self, wanted: Sequence[GuardTarget]) -> None:
        """Start the readings that are due, wait a moment, and keep the last reports of these leases.

        After a start all leases are read for the first time, in as many rounds as fit into the first patience.
        """
        leases = {target.lease for target in wanted}
        patience = PATIENCE_SECONDS if leases <= self._asked.keys() else FIRST_PATIENCE_SECONDS
        now = asyncio.get_running_loop().time
        until = now() + patience
        while True:
            self._begin(wanted)
            if self._running:
                await asyncio.wait(self._running.values(), timeout=max(until - now(), 0.0))
            self._collect(leases)
            if now() >= until or leases <= self._asked.keys():
                return

    @property
    def spoken(self) -> frozenset[str]:
        """The intents of leases whose guard was heard."""
        return frozenset(lease for lease, report in self.reports.items() if report.beat is not None)

    def _begin(self, wanted: Iterable[GuardTarget]) -> None:
        # A guard that was asked for its last checkpoint goes first, then the one that was read longest ago, so that of
        # a hundred leases all are heard.
        for target in sorted(wanted, key=lambda each: (each.asked_at is None, self._asked.get(each.lease, NEVER))):
            if self._is_due(target) and len(self._running) < MOST_AT_ONCE:
                self._asked[target.lease] = self._clock.monotonic()
                self._running[target.lease] = self._spawn(self._read(target))

    async def close(self) -> None:
        """End every reading."""
        await background_tasks.end(self._running)

    def _is_due(self, target: GuardTarget) -> bool:
        if target.lease in self._running:
            return False
        last = self._asked.get(target.lease)
        every = EVERY_SECONDS / 4 if target.is_urgent else EVERY_SECONDS
        if target.asked_at is not None and self._clock.now() - target.asked_at < AWAITED_FOR:
            every = AWAITED_EVERY_SECONDS
        return last is None or self._clock.monotonic() - last >= every

    def _collect(self, wanted: set[str]) -> None:
        reports = {lease: report for lease, report in self.reports.items() if lease in wanted}
        for lease, task in list(self._running.items()):
            if task.done():
                del self._running[lease]
                report = None if task.cancelled() or task.exception() is not None else task.result()
                if report is not None and lease in wanted:
                    reports[lease] = report
        self._asked = {lease: at for lease, at in self._asked.items() if lease in wanted or lease in self._running}
        if reports != self.reports:
            self.reports = reports

    async def _read(self, target: GuardTarget) -> GuardReport | None:
        """Return the notes of a lease in its bucket, or None if the bucket did not answer every request."""
        began = self._clock.now()
        try:
            client = self._client(target.place)
            beat, _ = await _object(client, f"{target.folder}/beat-{target.lease}.json", GuardBeat)
            end, unread = await _end(client, target)
            switch = await _switch(client, target)
            acceptance = await _acceptance(client, target)
        except Exception as error:  # noqa: BLE001 - a key that is missing or wrong, and whatever a store may do
            self._note_away(target.place, error)
            return None
        self._away.discard(target.place)
        beat = beat if beat is not None and beat.lease == target.lease else None
        before = self.reports.get(target.lease)
        changed, seen = _changed_at(before, beat, began), _seen_at(before, beat, began)
        worked = _worked_at(before, beat, began)
        is_unfinished = not unread and (end is None or not end.done)
        unfinished = began if is_unfinished else before.unfinished_at if before is not None else None
        end = _cleaned(end)
        return GuardReport(began, beat, changed, end, unread, seen, switch, worked, acceptance, unfinished)

    def _client(self, place: Bucket) -> BucketClient:
        """Return the client of a bucket, made anew when its key has changed."""
        secret = self._secret(place.credential)
        known = self._clients.get(place)
        if known is None or known[0] != secret:
            known = self._clients[place] = secret, BucketClient(place, secret)
        return known[1]

    def _note_away(self, place: Bucket, error: Exception) -> None:
        if place not in self._away:
            self._away.add(place)
            said = str(error) if isinstance(error, BucketAway) else type(error).__name__
            log.warning("bucket.away", bucket=str(place), reason=said)


async def _end(client: BucketClient, target: GuardTarget) -> tuple[GuardEnd | None, str]:
    """Return the final end of the run or else that of the lease, and the name of an end that exists but is unreadable.

    Raises:
        BucketAway: the content of the bucket is unknown.
    """
    end, is_unread = await _object(client, f"{target.folder}/{END}", GuardEnd)
    if is_unread:
        return None, END
    if end is not None and end.done:
        return end, ""
    name = f"ended-{target.lease}.json"
    end, is_unread = await _object(client, f"{target.folder}/{name}", GuardEnd)
    # A guard that started again has taken such a note back: it is nobody's.
    is_own = end is not None and end.lease == target.lease
    return end if is_own else None, name if is_unread else ""


async def _switch(client: BucketClient, target: GuardTarget) -> GuardSwitch | None:
    """Return the note of a dead man's switch that fired.

    Raises:
        BucketAway: the content of the bucket is unknown.
    """
    return (await _object(client, f"{target.folder}/deadman-{target.lease}.json", GuardSwitch))[0]


async def _acceptance(client: BucketClient, target: GuardTarget) -> AcceptanceReport | None:
    """Return the guard's check of its host, if the guard makes one.

    Raises:
        BucketAway: the content of the bucket is unknown.
    """
    if not target.is_checked:
        return None
    report, _ = await _object(client, f"{target.folder}/acceptance-{target.lease}.json", AcceptanceReport)
    if report is None or report.lease != target.lease:
        return None
    gpus = tuple(msgspec.structs.replace(each, name=_clean(each.name)) for each in report.gpus)
    script = report.script
    if script is not None:
        script = msgspec.structs.replace(script, last_line=text.clean(script.last_line, MOST_LINE))
    cleaned = {"driver": _clean(report.driver), "cuda_error": _clean(report.cuda_error)}
    return msgspec.structs.replace(report, gpus=gpus, script=script, **cleaned)


def _clean(name: str | None) -> str | None:
    return None if name is None else text.clean(name, MOST_LINE)


async def _object(client: BucketClient, path: str, kind: type[T]) -> tuple[T | None, bool]:
    """Return an object of the bucket, None unless it has that shape, and whether it exists with another shape.

    Raises:
        BucketAway: the content of the bucket is unknown.
    """
    try:
        content = await client.read(path, MOST_BYTES)
        return (None, False) if content is None else (msgspec.json.decode(content, type=kind), False)
    except (BucketTooLarge, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None, True


def _changed_at(before: GuardReport | None, beat: GuardBeat | None, now: datetime) -> datetime | None:
    """Return when a beat was new; None for the beat of the first report, since its age is not known."""
    if before is None or beat is None:
        return None
    return before.beat_changed_at if before.beat == beat else now


def _worked_at(before: GuardReport | None, beat: GuardBeat | None, now: datetime) -> datetime | None:
    """Return when a beat last showed progress of the work; None while none was seen."""
    if before is None or beat is None:
        return before.work_changed_at if before is not None else None
    is_same = before.beat is not None and beat.is_same_work(before.beat)
    return before.work_changed_at if is_same else now


def _seen_at(before: GuardReport | None, beat: GuardBeat | None, now: datetime) -> datetime:
    """Return since when every reading has found this same beat, or no beat."""
    is_same = before is not None and before.beat == beat
    return (before.beat_seen_at if before is not None and is_same else None) or now


def _cleaned(end: GuardEnd | None) -> GuardEnd | None:
    if end is None:
        return None
    return msgspec.structs.replace(end, last_lines=[text.clean(line, MOST_LINE) for line in end.last_lines])
