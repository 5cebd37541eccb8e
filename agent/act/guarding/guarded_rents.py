"""Rents of guarded slots: the bucket is asked before the market, and may make a rent needless or let it wait.

Invariants:
1. After a lost or restored ledger nothing is rented for a run without a lease before its bucket was listed: an earlier
   run may be there, and a first run beside it would be paid work from zero. Nothing bills while the slot waits. A run
   that had a lease only looks for a later one: it goes on if the bucket cannot be listed.
2. A bucket that could not be listed is asked again after `WAITS`. No cycle asks it in between.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from agent.act.guarding import needless_rent
from agent.act.guarding.guard_launch import GuardLaunch
from agent.act.guarding.guard_launches import GuardLaunches
from agent.clock import Clock
from agent.decide.facts import Alert
from agent.decide.operators import unlisted_buckets
from agent.domain.record.guard_run import GuardRun
from agent.domain.record.intent import Intent
from agent.domain.slot import Slot
from agent.domain.work.decision import Decision, Rent
from agent.domain.work.workload import Workload
from agent.ledger.store import Ledger

WAITS = timedelta(minutes=10)
STAYS = timedelta(hours=1)
"""How much longer than `WAITS` the alert of a slot lasts: the next try needs an offer."""


class GuardedRents:
    """Prepares the guards of rents, and remembers the slots that wait for their bucket."""

    def __init__(self, ledger: Ledger, clock: Clock, guards: GuardLaunches | None) -> None:
        """Prepare with `guards`; without them a rent of a guarded workload is refused later, as not prepared."""
        self._ledger = ledger
        self._clock = clock
        self._guards = guards
        self._launches: dict[str, GuardLaunch] = {}
        self._waiting: dict[Slot, tuple[datetime, str]] = {}
        """By slot that waits for its bucket: when it is asked again, and why it waits."""

    async def is_needless(self, intent: Intent, decision: Decision, work: Workload | None) -> bool:
        """Prepare the start of the guard that a rent begins, and return whether nothing is rented.

        Until the intent is recorded nothing is owed to the market.

        Raises:
            LedgerError: the ledger could not be written.
        """
        if self._guards is None or not isinstance(decision, Rent) or work is None or work.guard is None:
            return False
        known = self._ledger.recollection(self._clock.now())
        if unlisted_buckets.waits(known.cooldowns, intent.slot):
            return True
        run = next(
            (each for each in known.guard_runs if (each.slot, each.run) == (intent.slot, intent.guard_run)), None
        )
        is_first = run is not None and not await (await self._ledger.reader()).has_worked(run)
        is_behind = self._ledger.has_lost_runs
        launch = await self._guards.launch(work, intent, run, is_first=is_first, is_behind=is_behind)
        if launch is None:
            return False
        if run is not None and launch.unlisted and is_behind and is_first:
            await self._wait(intent, run, launch.unlisted)
            return True
        self._waiting.pop(intent.slot, None)
        if await needless_rent.recorded(self._ledger, intent, launch, has_worked=not is_first, is_behind=is_behind):
            return True
        self._launches[intent.intent_id] = launch
        return False

    def take(self, intent_id: str) -> GuardLaunch | None:
        """Return how the guard of a rent starts, once."""
        return self._launches.pop(intent_id, None)

    def alerts(self) -> Sequence[Alert]:
        """Return the alerts of the slots that wait for their bucket, and of buckets that refuse our key."""
        now = self._clock.now()
        waiting = [(slot, why) for slot, (until, why) in self._waiting.items() if now < until + STAYS]
        refused = self._guards.alerts() if self._guards is not None else ()
        return (*(unlisted_buckets.alert(slot, why) for slot, why in waiting), *refused)

    async def _wait(self, intent: Intent, run: GuardRun, why: str) -> None:
        until = self._clock.now() + WAITS
        self._waiting[intent.slot] = until, unlisted_buckets.sentence(run, why)
        async with self._ledger.transaction() as tx:
            tx.add_expiring(unlisted_buckets.cooldown(run, why, until))
