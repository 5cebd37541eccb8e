"""The ending of leases: a release that fails becomes a pause and stays due, and attempts keep a pace (rule 20).

Invariants:
1. No intent is written for a call that the market has closed to us, or that failed a moment ago.
2. While an instance may bill its GPU, each of its ending calls is tried again within `AGAIN_GPU[-1]` seconds.
3. The memory of this module only delays: after a restart every ending call that is due is tried at once.
4. A release that is confirmed and due again was not carried out: it counts as one without a usable answer.
"""

from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from agent.act.journal import Journal
from agent.clock import Clock
from agent.decide.moves import due_endings
from agent.domain.record.intent import Intent, IntentState
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.work.decision import Pause, Reason, Release
from agent.domain.work.only_copy import may_leave
from agent.domain.work.workload import Workload

log = structlog.get_logger(__name__)

AGAIN_GPU = (5.0, 15.0, 30.0, 60.0)
"""Seconds after each failure before the same call is tried again, while a GPU may bill."""
AGAIN_DISK = (15.0, 30.0, 60.0)
"""The same for an instance that bills only its disk: it is not urgent, and the release stays due."""
FAILURES_TO_PAUSE = 2
"""A release without a usable answer may have been done; after this many in a row the instance is also paused."""
FORGOTTEN_AFTER = 3600.0
"""Seconds after which an ending call that is not tried again is forgotten: its lease has ended."""

_Key = tuple[type[Pause] | type[Release], str, str]


@dataclass(slots=True)
class _Failures:
    """Attempts in a row of one ending call: `ours` is when we try again, `market` when the market allows it.

    `is_refused` says that the last one was a refusal, so that nothing was done. A confirmed attempt counts too while
    the lease is being released: a listing that shows it carried out ends the attempts.
    """

    count: int = 0
    is_refused: bool = False
    ours: float = 0.0
    market: float = 0.0


class ReleaseAttempts:
    """Ends leases through the journal."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        """Send through `journal`."""
        self._journal = journal
        self._clock = clock
        self._failures: dict[_Key, _Failures] = {}

    def hasten(self) -> None:
        """Send orders at once that only our own pace delays: a person asks."""
        for failures in self._failures.values():
            failures.ours = 0.0

    async def end(self, order: Pause | Release, work: Workload | None) -> list[Intent]:
        """Carry out a pause or a release when it is due; return the intents as they ended.

        A release that fails, or that may not be tried now, is replaced by a pause. The lease stays due for its release.

        Raises:
            LedgerError: as the journal.
        """
        if not self._journal.reaches(order.lease.market):
            return await self._keep_due(order)
        if isinstance(order, Pause) and not self._journal.can_pause(order.lease):
            return await self._end_unpausable(order, work)
        done: list[Intent] = []
        is_due = self._is_due(order)
        if is_due:
            intent = await self._journal.carry_out(order, work)
            if intent is None:
                return done
            done.append(intent)
            self._note(order, intent)
        elif isinstance(order, Release):
            await self._journal.keep_due(order)
        if isinstance(order, Release) and self._must_pause(order):
            said = "its release was refused or got no answer: paused until it can be released"
            pause = Pause(self._journal.present(order.lease), Reason(order.reason.code, said, limit=order.reason.limit))
            done += await self.end(pause, work)
        return done

    async def _keep_due(self, order: Pause | Release) -> list[Intent]:
        """Record a release that nothing can be sent for here: the next daemon with that market sends it."""
        log.warning("ending.unreached", lease=order.lease.lease_id, market=order.lease.market)
        if isinstance(order, Release):
            await self._journal.keep_due(order)
        return []

    async def _end_unpausable(self, order: Pause, work: Workload | None) -> list[Intent]:
        """Release a lease that is to be paused where nothing can be: only that ends its cost.

        A lease whose disk may hold the only checkpoint stays as it is (rule 11), except under a kill or a hard cap.
        """
        if not due_endings.is_hard(order) and work is not None and not may_leave(order.lease, work):
            log.warning("pause.impossible", lease=order.lease.lease_id, market=order.lease.market)
            return []
        said = f"{order.reason.sentence}; {order.lease.market} cannot pause, so it is released"
        return await self.end(Release(order.lease, replace(order.reason, sentence=said)), work)

    def _is_due(self, order: Pause | Release) -> bool:
        failures = self._failures.get(_key(order))
        return failures is None or self._clock.monotonic() >= max(failures.ours, failures.market)

    def _note(self, order: Pause | Release, intent: Intent) -> None:
        lease = self._journal.present(order.lease)
        if intent.state is IntentState.CONFIRMED and lease.state is not LeaseState.RELEASING:
            self._failures.pop(_key(order), None)
            return
        now = self._clock.monotonic()
        self._failures = {key: each for key, each in self._failures.items() if now - each.ours < FORGOTTEN_AFTER}
        failures = self._failures.setdefault(_key(order), _Failures(ours=now))
        failures.count += 1
        failures.is_refused = intent.state is IntentState.REJECTED
        waits = AGAIN_GPU if self._may_bill_gpu(lease) else AGAIN_DISK
        failures.ours = now + waits[min(failures.count, len(waits)) - 1]
        failures.market = now + _seconds(self._journal.reopens_at(intent), self._clock.now())

    def _must_pause(self, order: Release) -> bool:
        failures = self._failures.get(_key(order))
        if failures is None or not self._may_bill_gpu(self._journal.present(order.lease)):
            return False
        if not self._journal.can_pause(order.lease):
            return False
        return failures.count >= FAILURES_TO_PAUSE or failures.is_refused

    def _may_bill_gpu(self, lease: Lease) -> bool:
        """Return whether an instance may bill its GPU now or once a start takes place that is queued or in doubt."""
        is_down = lease.paused_by_us and lease.bills is not Bills.GPU_AND_DISK and not self._journal.may_start(lease)
        return lease.bills is not Bills.NOTHING and not is_down


def _key(order: Pause | Release) -> _Key:
    return type(order), order.lease.market, order.lease.instance_id


def _seconds(until: datetime | None, now: datetime) -> float:
    return 0.0 if until is None else max(0.0, (until - now).total_seconds())
