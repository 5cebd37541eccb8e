"""Keeps the public keys of a workload registered with its running instances: reads them back, and adds what is missing.

Invariants:
1. No cycle and no order of a person waits for a reading or a registration. At most `MOST_AT_ONCE` readings run; each
   instance is read once its run begins, after each registration, and every `EVERY`.
2. At most `MOST_ORDERS` keys are registered at a time, one for each instance. After each try that did not help, the
   wait before the next one is longer.
3. Nothing is written to an instance that is not proven to be ours (rule 18), for another account (rule 5), where the
   market may not spend, beside a second daemon, or under a kill. This is asked again just before a key is sent.
4. The ledger has the time since when the market shows all keys in the present run. An unchanged world writes nothing.
"""

import asyncio
import math
from collections.abc import Callable, Container, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from msgspec.structs import replace

from agent import background_tasks
from agent.act.shell_keys import key_order
from agent.act.shell_keys.missing_keys import MissingKeys
from agent.clock import Clock
from agent.decide.facts import Alert
from agent.decide.operators import operator_holds
from agent.domain.fleet import Fleet, MarketView
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work import public_key
from agent.domain.work.workload import Workload
from agent.ledger.ledger_errors import LedgerError
from agent.ledger.store import Ledger
from agent.markets import market_errors, port

log = structlog.get_logger("gpubid.keys")

MOST_AT_ONCE = 2
MOST_ORDERS = 2
READ_SECONDS = 15.0
EVERY = timedelta(minutes=30)
AGAIN_SECONDS = 60.0
"""The wait after a try that did not help; it doubles with each, up to `EVERY`."""

_Wanted = Mapping[str, tuple[Lease, tuple[str, ...]]]
"""By lease id, each lease whose instance should have keys, and these keys."""
Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


@dataclass(frozen=True, slots=True)
class _Reading:
    """The last reading of an instance's keys: in the run that began at `run_since`."""

    run_since: datetime | None
    at: datetime
    monotonic: float
    missing: tuple[str, ...]
    problem: str = ""


@dataclass(slots=True)
class _Tries:
    run_since: datetime | None
    count: int = 0
    again_at: float = 0.0
    missing: int = 0
    """How many keys were missing when the last one was sent."""


class KeyRegistration:
    """Registers keys with the instances of one fleet."""

    def __init__(
        self,
        ledger: Ledger,
        markets: Mapping[str, port.Market],
        clock: Clock,
        spawn: Spawn,
        new_id: Callable[[], str],
        unsent: Callable[[], str],
    ) -> None:
        """Read and write through `markets`; `spawn` starts a task beside the cycles.

        `unsent` says why nothing may be sent at all, for another account or beside a second daemon.
        """
        self._ledger = ledger
        self._keys = {name: keys for name, market in markets.items() if (keys := market.instance_keys()) is not None}
        self._clock = clock
        self._spawn = spawn
        self._new_id = new_id
        self._unsent = unsent
        self._read: dict[str, _Reading] = {}
        self._tries: dict[str, _Tries] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._ordering: dict[str, asyncio.Task[None]] = {}
        self._missing = MissingKeys()
        self.underway: set[str] = set()
        """The intents of registrations that are under way: between two cycles these are no leftovers of a crash."""

    async def keep(self, fleet: Fleet) -> None:
        """Record what the readings showed, and begin the registrations and the readings that are due.

        Called after a cycle, before anything else may change the ledger's leases. `fleet` has the workloads and the
        markets. A ledger that cannot be written ends this: everything is found again.
        """
        known = self._ledger.recollection(self._clock.now())
        wanted = dict(_wanted(known.leases, fleet.workloads, self._keys))
        self._forget(wanted)
        try:
            await self._record(wanted)
        except LedgerError as error:
            log.error("key.unwritten", code=error.code.value, reason=error.sentence)
        else:
            self._register(wanted, fleet.markets)
        # The one that was read longest ago goes first: an instance that cannot be read keeps no other waiting.
        for lease_id, (lease, keys) in sorted(wanted.items(), key=lambda pair: self._read_at(pair[0])):
            is_idle = lease_id not in self._running and lease_id not in self._ordering
            if is_idle and len(self._running) < MOST_AT_ONCE and self._is_due(lease):
                self._running[lease_id] = self._spawn(self._look(lease, keys))
        self._count_missing(wanted, fleet)

    def alerts(self) -> tuple[Alert, ...]:
        """Return an alert for each running lease whose keys stay missing."""
        return self._missing.alerts()

    async def settle(self) -> None:
        """Wait for the readings and registrations that are under way."""
        await background_tasks.settle({**self._running, **self._ordering})

    async def close(self) -> None:
        """End every reading and registration; one that was sent is in doubt at the next start."""
        await background_tasks.end(self._running)
        await background_tasks.end(self._ordering)

    def _count_missing(self, wanted: _Wanted, fleet: Fleet) -> None:
        whys = {key: read.problem for key, read in self._read.items() if read.problem}
        lit = [name for name, view in fleet.markets.items() if view.is_fresh]
        known = {lease.lease_id: lease for lease in self._ledger.recollection(self._clock.now()).leases}
        leases = [known[lease_id] for lease_id in wanted if lease_id in known]
        self._missing.see(leases, whys, lit, self._clock.monotonic())

    def _forget(self, wanted: Mapping[str, object]) -> None:
        self._running = {key: task for key, task in self._running.items() if not task.done()}
        self._ordering = {key: task for key, task in self._ordering.items() if not task.done()}
        self._read = {key: each for key, each in self._read.items() if key in wanted}
        self._tries = {key: each for key, each in self._tries.items() if key in wanted}

    def _read_at(self, lease_id: str) -> float:
        read = self._read.get(lease_id)
        return -math.inf if read is None else read.monotonic

    def _is_due(self, lease: Lease) -> bool:
        read = self._read.get(lease.lease_id)
        if read is None or read.run_since != lease.run_since:
            return True
        wait = AGAIN_SECONDS if read.problem else EVERY.total_seconds()
        return self._clock.monotonic() - read.monotonic >= wait

    async def _look(self, lease: Lease, keys: tuple[str, ...]) -> None:
        began, problem = self._clock.now(), ""
        missing: tuple[str, ...] = ()
        try:
            async with asyncio.timeout(READ_SECONDS):
                missing = public_key.missing(keys, await self._keys[lease.market].shown(lease.instance_id))
        except (market_errors.MarketError, TimeoutError) as error:
            problem = str(error) or "no answer"
            log.info("keys.unread", lease=lease.lease_id, reason=problem[:200])
        self._read[lease.lease_id] = _Reading(lease.run_since, began, self._clock.monotonic(), missing, problem)
        tries = self._tries.get(lease.lease_id)
        if tries is not None and not problem and len(missing) < tries.missing:
            # The last try helped, so the next key need not wait.
            del self._tries[lease.lease_id]

    async def _record(self, wanted: _Wanted) -> None:
        changed = []
        for lease, _ in wanted.values():
            read = self._read.get(lease.lease_id)
            if read is not None and not read.problem and read.run_since == lease.run_since:
                shown = None if read.missing else max(read.at, lease.began)
                if (shown is None) != (not lease.has_keys):
                    changed.append(replace(lease, keys_seen_at=shown))
                    log.info("keys.seen" if shown is not None else "keys.missing", lease=lease.lease_id)
        if changed:
            async with self._ledger.transaction() as tx:
                for lease in changed:
                    tx.update_lease(lease)

    def _register(self, wanted: _Wanted, views: Mapping[str, MarketView]) -> None:
        now = self._clock.monotonic()
        for lease, _ in wanted.values():
            read = self._read.get(lease.lease_id)
            is_busy = lease.lease_id in self._running or lease.lease_id in self._ordering
            if read is None or is_busy or read.run_since != lease.run_since or not read.missing:
                continue
            tries = self._tries.setdefault(lease.lease_id, _Tries(lease.run_since))
            if tries.run_since != lease.run_since:
                tries = self._tries[lease.lease_id] = _Tries(lease.run_since)
            view = views.get(lease.market)
            may_write = view is not None and not view.no_spend_because and not self._why_not(lease)
            if may_write and now >= tries.again_at and len(self._ordering) < MOST_ORDERS:
                tries.count, tries.missing = tries.count + 1, len(read.missing)
                tries.again_at = now + min(AGAIN_SECONDS * 2 ** (tries.count - 1), EVERY.total_seconds())
                self._ordering[lease.lease_id] = self._spawn(self._order(lease, read.missing[0]))

    def _why_not(self, lease: Lease) -> str:
        """Return why no key is sent to a lease's instance now."""
        now = self._clock.now()
        known = self._ledger.recollection(now)
        if operator_holds.kill_of_everything(known.holds, now) is not None:
            return "all spending was stopped by `gpubid kill`"
        still = next((each for each in known.leases if each.lease_id == lease.lease_id), None)
        if still is None or not _may_have(still, self._keys) or still.run_since != lease.run_since:
            return "its lease does not run any more"
        return self._unsent()

    async def _order(self, lease: Lease, key: str) -> None:
        intent = key_order.intent_of(lease, key, self._new_id(), self._clock.now())
        # A registration counts only once the market shows it.
        self._read.pop(lease.lease_id, None)
        self.underway.add(intent.intent_id)
        try:
            order = key_order.KeyOrder(self._ledger, self._keys[lease.market], self._clock.now)
            await order.carry_out(key, intent, lambda: self._why_not(lease))
        except LedgerError as error:
            log.error("key.unwritten", code=error.code.value, reason=error.sentence)
        finally:
            self.underway.discard(intent.intent_id)


def _wanted(
    leases: Iterable[Lease], workloads: Iterable[Workload], able: Container[str]
) -> Iterator[tuple[str, tuple[Lease, tuple[str, ...]]]]:
    """Yield the leases whose instances should have keys, with these keys, by their ids."""
    works = {work.name: work for work in workloads}
    for lease in leases:
        work = works.get(lease.slot.workload)
        if work is not None and work.ssh_keys and _may_have(lease, able):
            yield lease.lease_id, (lease, work.ssh_keys)


def _may_have(lease: Lease, able: Container[str]) -> bool:
    """Return whether the instance of a lease may be written to, and runs on one of the markets `able` to take keys."""
    is_ours = lease.is_proven and not lease.is_estranged and not lease.is_held
    return is_ours and lease.state is LeaseState.RUNNING and lease.market in able
