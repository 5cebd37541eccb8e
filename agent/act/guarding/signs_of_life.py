"""Writes the daemon's signs of life for guards, whose dead man's switches wait for them.

Invariants:
1. Each open lease with a guard gets them. Its switch counts as its container got it at the rent: the file may have
   another one today.
2. No cycle waits for a bucket: a sign is written beside it, and a failed one again after `AGAIN_SECONDS`.
3. Only a write that the bucket confirmed counts as a sign.
4. A daemon whose passes fail looks after nothing. It writes no sign before its first good pass, and none once the last
   good pass is older than half of a switch's time. A person's order is written all the same.
5. A daemon whose key a market refuses looks after nothing there. For the leases of that market alone it writes no sign
   before the market's first good answer, and none once every listing was refused for half of a switch's time. A market
   that does not answer refuses nothing, and a listing without an answer ends such a series.
6. The ledger keeps the last confirmed sign of each folder: after a restart the count goes on from that sign.
7. No sign is known to reach the guard of an adopted lease whose run is unknown. Its silence counts from the adoption,
   whatever was written to the folders that it may read.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import structlog

from agent import background_tasks
from agent.act.guarding import dead_man_switches
from agent.act.guarding.dead_man_switches import Switch, Unfound
from agent.buckets.bucket_client import BucketClient
from agent.buckets.bucket_errors import BucketError
from agent.clock import Clock
from agent.decide.facts import Alert
from agent.decide.operators import sign_alerts
from agent.domain.market.account_refusal import Refusal
from agent.domain.record.event import Event
from agent.domain.slot import Slot
from agent.domain.work import sign_of_life
from agent.domain.work.guard_terms import Bucket
from agent.domain.work.sign_of_life import KeptSign, ShortStarts
from agent.domain.work.workload import Workload
from agent.ledger.memory import Recollection
from agent.ledger.store import Ledger

log = structlog.get_logger("gpubid.signs")

AGAIN_SECONDS = 60.0
MOST_AT_ONCE = 16
MOST_NAMED = 8
"""The most switches that an answer names with their moments."""
SHORT_STARTS = 3
"""Starts in a row that ended before their second pass, from which on the daemon counts as crashing: a person may
restart it twice."""
FAILED_PASSES = 2
"""Failed passes after a start from which on they count as failing: an order may interrupt the first one."""

Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
Fire = tuple[Slot, datetime | None, str]
"""A slot, the moment at which its switch fires (None: any moment), and its guard's action on the instance then."""


@dataclass(slots=True)
class _Written:
    """The signs of one folder, and those that this program wrote."""

    kept: KeptSign
    """When the first was due, and the last that the bucket confirmed, also one from before this program began."""
    due_at: float
    """When this program had to write its first, in seconds of the monotonic clock: a wall clock may be set back."""
    written_at: float | None = None
    """When its last one was confirmed, in seconds of the monotonic clock."""
    has_failed: bool = False
    """Whether its last try failed."""
    tried_at: float = float("-inf")
    """By the monotonic clock, in seconds."""

    def silent_for(self, now: datetime, seconds: float) -> timedelta:
        """Return how long no sign has been confirmed, at a time of the wall clock and seconds of the monotonic one."""
        if self.written_at is not None:
            return timedelta(seconds=seconds - self.written_at)
        return max(self.own_silence(seconds), now - (self.kept.written_at or self.kept.due_at))

    def own_silence(self, seconds: float) -> timedelta:
        """Return how long this program has written no sign that was confirmed."""
        return timedelta(seconds=seconds - (self.due_at if self.written_at is None else self.written_at))


class SignsOfLife:
    """Keeps guards from firing while the daemon lives."""

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        spawn: Spawn,
        secret: Callable[[str], str],
        refusals: Callable[[], Mapping[str, Refusal]] = dict,
        *,
        is_dry: bool = False,
    ) -> None:
        """Start tasks with `spawn`; `secret` gives the key of a bucket by the name of its credential.

        `refusals` gives the markets that refuse our key. A dry one knows no switch.
        """
        self._refusals = refusals
        self._is_dry = is_dry
        self._ledger = ledger
        self._clock = clock
        self._spawn = spawn
        self._secret = secret
        self._switches: tuple[Switch, ...] = ()
        self._unfound: tuple[Unfound, ...] = ()
        self._known: dict[tuple[Bucket, str], _Written] = {}
        self._running: dict[tuple[Bucket, str], asyncio.Task[None]] = {}
        self._began = clock.monotonic()
        self._good_at: float | None = None
        """When the last good pass ended, in seconds of the monotonic clock."""
        self._failed_passes = 0
        """Passes before the first good one."""
        self._is_withheld = self._is_counted = False

    def note_pass(self) -> None:
        """Note that a pass succeeds now."""
        self._good_at = self._clock.monotonic()

    async def keep(self, workloads: Iterable[Workload]) -> None:
        """Bring the ledger in step with the confirmed signs, and read the earlier ones from it.

        Raises:
            LedgerError: it could not be written.
        """
        if self._is_dry:
            return
        known = self._see(workloads)
        await self._count_start()
        before = {sign.key: sign for sign in known.signs}
        after = {written.kept.key: written.kept for written in self._known.values()}
        if before == after:
            return
        async with self._ledger.transaction() as tx:
            for key, sign in after.items():
                if before.get(key) != sign:
                    tx.keep_sign(sign)
            for key, sign in before.items():
                if key not in after:
                    tx.forget_sign(sign)

    async def _count_start(self) -> None:
        """Count this start until a pass has followed a good one, and report starts that all ended before that.

        Nothing else of such a start may ever be recorded, so this is done before its first pass.
        """
        kept = self._ledger.short_starts
        if self._is_counted and (self._good_at is None or not kept.count):
            return
        after, alerts = ShortStarts(), list[Alert]()
        if not self._is_counted:
            now, seconds = self._clock.now(), self._clock.monotonic()
            silent = [(each, after, self._known[each.key].silent_for(now, seconds)) for each, after in self._waiting()]
            is_due = kept.count >= SHORT_STARTS and not kept.is_alerted
            alerts = [
                sign_alerts.short_starts(each.slot, after, silent_for, kept.count)
                for each, after, silent_for in silent
                if is_due and silent_for >= after / 4
            ]
            after = ShortStarts(kept.count + 1, is_alerted=kept.is_alerted or bool(alerts))
        async with self._ledger.transaction() as tx:
            tx.keep_short_starts(after)
            for alert in alerts:
                log.warning("alert", code=alert.code, key=alert.key)
                tx.append_event(
                    Event(at=self._clock.now(), kind=alert.kind, reason_code=alert.code, reason=alert.sentence)
                )
        self._is_counted = True

    def look(self, workloads: Iterable[Workload], *, is_ordered: bool = False) -> None:
        """Begin to write the signs that are due; `is_ordered` if a person's order must be spread."""
        absent_until = self._see(workloads).absent_until
        self._failed_passes += self._good_at is None and not is_ordered
        withheld = set() if is_ordered else {each.key for each in self._switches if not self._is_looked_after(each)}
        self._log_withheld(len(withheld))
        # The folder that was tried longest ago goes first: a bucket that hangs lets no switch of another one fire.
        keys = dict.fromkeys(switch.key for switch in self._switches)
        for key in sorted(keys, key=lambda each: self._known[each].tried_at):
            written = self._known[key]
            may_begin = key not in withheld and len(self._running) < MOST_AT_ONCE
            if may_begin and self._is_due(key, written, absent_until):
                written.tried_at = self._clock.monotonic()
                self._running[key] = self._spawn(self._write(*key, written, absent_until))

    def _see(self, workloads: Iterable[Workload]) -> Recollection:
        """Derive the switches and their signs from the ledger, and return its memory."""
        now = self._clock.now()
        known = self._ledger.recollection(now)
        works = tuple(workloads)
        self._switches = dead_man_switches.switches(known, works, self._ledger.fleet_id)
        self._unfound = dead_man_switches.unfound(known, works)
        self._running = {key: task for key, task in self._running.items() if not task.done()}
        keys = dict.fromkeys(switch.key for switch in self._switches)
        self._known = {key: written for key, written in self._known.items() if key in keys or key in self._running}
        kept = {sign.key: sign for sign in known.signs}
        for place, folder in [key for key in keys if key not in self._known]:
            where = place.endpoint, place.name, place.prefix, folder
            sign = kept.get(where) or KeptSign(*where, due_at=now)
            self._known[place, folder] = _Written(sign, self._clock.monotonic())
        return known

    async def spread(self, workloads: Iterable[Workload]) -> str:
        """Write the changed signs, wait for them, and return a sentence about the switches that they reached."""
        known = tuple(workloads)
        rounds = 0
        # A write that had begun has the old absence, and only `MOST_AT_ONCE` run at once.
        while rounds < 2 + len(self._switches) // MOST_AT_ONCE:
            self.look(known, is_ordered=True)
            if self._running:
                await asyncio.wait(self._running.values())
            rounds += 1
        absent_until = self._ledger.recollection(self._clock.now()).absent_until
        waiting = self._waiting()
        missed = [each for each in waiting if not self._knows(self._known[each[0].key], absent_until)]
        count = len(waiting) + len(self._unfound)
        said = f"{len(waiting) - len(missed)} of {count} dead man's switch(es) can read it in their buckets"
        moments = [f"{slot} {sign_of_life.spoken(at)}" for slot, at, _ in self._fires(missed)]
        more = f" and {len(moments) - MOST_NAMED} more" if len(moments) > MOST_NAMED else ""
        return f"{said}; without a new sign these fire: {', '.join(moments[:MOST_NAMED])}{more}" if moments else said

    def fires(self) -> tuple[Fire, ...]:
        """Return each switch, the soonest moment at which it fires if the daemon ends now, and its action then.

        None means any moment: no sign is known that the bucket confirmed.
        """
        return self._fires(self._waiting())

    def _waiting(self) -> list[tuple[Switch, timedelta]]:
        """Return the switches that fire and are known to read our signs, with their times."""
        return [(each, each.after) for each in self._switches if each.after is not None and not each.is_guess]

    def _fires(self, switches: Iterable[tuple[Switch, timedelta]]) -> tuple[Fire, ...]:
        """Return when these switches fire, and those of which nobody knows that any sign reaches them."""
        found: list[Fire] = [(each.slot, None, each.ending) for each in self._unfound]
        for each, after in switches:
            sign = self._known[each.key].kept
            # A clock that was ahead wrote a sign whose time is still to come.
            is_known = sign.written_at is not None and sign.written_at <= self._clock.now()
            at = sign.written_at if is_known else None
            fires_at = None if at is None else sign_of_life.fires_at(at, after, sign.absent_until)
            found.append((each.slot, fires_at, each.ending))
        return tuple(sorted(found, key=lambda fire: fire[0]))

    def alerts(self) -> tuple[Alert, ...]:
        """Return an alert for each switch that had no sign, or no good pass, for a quarter of its time.

        A daemon that was away for so long raises no alert: only one that has tried since does.
        """
        failing_for, now, seconds = self._failing_for(), self._clock.now(), self._clock.monotonic()
        refusals = self._refusals()
        found = [
            sign_alerts.unfound(each.slot, str(each.place), each.after, now - each.since)
            for each in self._unfound
            if now - each.since >= each.after / 4
        ]
        for each, after in self._waiting():
            written, quarter = self._known[each.key], after / 4
            silent_for = written.silent_for(now, seconds)
            refusal = each.refusal(refusals)
            if failing_for >= quarter:
                found.append(sign_alerts.failing(each.slot, after, failing_for))
            elif silent_for >= quarter and self._good_at is None and self._failed_passes >= FAILED_PASSES:
                found.append(sign_alerts.failing_since_start(each.slot, after, silent_for))
            elif refusal is not None and max(refusal.lasts, silent_for * refusal.is_since_start) >= quarter:
                found.append(sign_alerts.refused(each.slot, after, sorted(each.markets), refusal.lasts))
            elif silent_for >= quarter and (written.has_failed or written.own_silence(seconds) >= quarter):
                found.append(sign_alerts.alert(each.slot, str(each.place), after, silent_for))
        return tuple(found)

    def silences(self) -> Mapping[str, float]:
        """Return by workload how long no sign was confirmed, as a share of the switch's time; the longest of its slots.

        A workload without a switch has none. It needs no pass and no ledger that can be written.
        """
        now, seconds = self._clock.now(), self._clock.monotonic()
        found: dict[str, float] = {}
        shares = [
            (each.slot, self._known[each.key].silent_for(now, seconds) / after) for each, after in self._waiting()
        ]
        for slot, share in (*shares, *((each.slot, (now - each.since) / each.after) for each in self._unfound)):
            found[slot.workload] = max(0.0, share, found.get(slot.workload, 0.0))
        return found

    def _failing_for(self) -> timedelta:
        """Return how long no pass has succeeded."""
        return timedelta(seconds=self._clock.monotonic() - (self._began if self._good_at is None else self._good_at))

    def _is_looked_after(self, switch: Switch) -> bool:
        """Return whether passes succeed, and a market takes our key: only then is this daemon's life worth a sign."""
        half = (switch.after or sign_of_life.SHORTEST) / 2
        refusal = switch.refusal(self._refusals())
        is_refused = refusal is not None and (refusal.is_since_start or refusal.lasts >= half)
        return self._good_at is not None and self._failing_for() < half and not is_refused

    def _log_withheld(self, count: int) -> None:
        if count and not self._is_withheld:
            log.error(
                "sign.withheld",
                switches=count,
                reason="no pass succeeds, or the market refuses the key: guards end their instances in time",
            )
        self._is_withheld = bool(count)

    async def close(self) -> None:
        """End every write."""
        await background_tasks.end(self._running)

    @staticmethod
    def _knows(written: _Written, absent_until: datetime | None) -> bool:
        """Return whether this program's last confirmed sign has this absence."""
        return written.written_at is not None and written.kept.absent_until == absent_until

    def _is_due(self, key: tuple[Bucket, str], written: _Written, absent_until: datetime | None) -> bool:
        if key in self._running:
            return False
        age = None if written.written_at is None else self._clock.monotonic() - written.written_at
        is_fresh = age is not None and age < sign_of_life.EVERY.total_seconds()
        if is_fresh and self._knows(written, absent_until):
            return False
        return is_fresh or self._clock.monotonic() - written.tried_at >= AGAIN_SECONDS

    async def _write(self, place: Bucket, folder: str, written: _Written, absent_until: datetime | None) -> None:
        now = self._clock.now()
        try:
            client = BucketClient(place, self._secret(place.credential))
            content = json.dumps(sign_of_life.content(now, absent_until)).encode()
            await client.write(f"{folder}/{sign_of_life.NAME}", content)
        except Exception as error:  # noqa: BLE001 - a key that is missing or wrong, and whatever a store may do
            said = str(error) if isinstance(error, BucketError) else type(error).__name__
            log.warning("sign.unwritten", bucket=str(place), reason=said)
            written.has_failed = True
        else:
            written.kept = replace(written.kept, written_at=now, absent_until=absent_until)
            written.written_at, written.has_failed = self._clock.monotonic(), False
