"""Keeps the public keys of a workload registered with its running instances: reads them back, and adds what is missing.

Invariants:
1. No cycle waits for a reading. At most `MOST_AT_ONCE` run; each instance is read once its run begins, after each
   registration, and every `EVERY`.
2. A pass registers at most `MOST_ORDERS` keys, together within `ORDER_SECONDS`, and after tries that did not help waits
   ever longer.
3. Nothing is written to an instance that is not proven to be ours (rule 18), for another account (rule 5), where the
   market may not spend, beside a second daemon, or under a kill.
4. The ledger has since when the market shows all keys in the present run; an unchanged world writes nothing.
"""

import asyncio
import math
from collections.abc import Callable, Container, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import structlog

from agent import beside_tasks
from agent.act.shell_keys import key_order
from agent.clock import Clock
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
"""Leases whose instances should have keys, with these keys, by their ids."""
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


class KeyRegistration:
    """Registers keys with the instances of one fleet."""

    def __init__(
        self, ledger: Ledger, markets: Mapping[str, port.Market], clock: Clock, spawn: Spawn, new_id: Callable[[], str]
    ) -> None:
        """Read and write through `markets`; `spawn` starts a task beside the cycles."""
        self._ledger = ledger
        self._keys = {name: keys for name, market in markets.items() if (keys := market.instance_keys()) is not None}
        self._clock = clock
        self._spawn = spawn
        self._new_id = new_id
        self._read: dict[str, _Reading] = {}
        self._tries: dict[str, _Tries] = {}
        self._running: dict[str, asyncio.Task[None]] = {}

    async def keep(self, fleet: Fleet, unsent: str) -> None:
        """Record what the readings showed, register missing keys, and begin the readings that are due.

        Called after a cycle, before anything else may change the ledger's leases. `fleet` has the workloads and the
        markets. `unsent` says why nothing may be sent at all. A ledger that cannot be written ends this: everything is
        found again.
        """
        now = self._clock.now()
        known = self._ledger.recollection(now)
        wanted = dict(_wanted(known.leases, fleet.workloads, self._keys))
        self._forget(wanted)
        try:
            await self._record(wanted)
            if not unsent and operator_holds.kill_of_everything(known.holds, now) is None:
                await self._register(wanted, fleet.markets)
        except LedgerError as error:
            log.error("key.unwritten", code=error.code.value, reason=error.sentence)
        # The one that was read longest ago goes first: an instance that cannot be read keeps no other waiting.
        for lease_id, (lease, keys) in sorted(wanted.items(), key=lambda pair: self._read_at(pair[0])):
            if lease_id not in self._running and len(self._running) < MOST_AT_ONCE and self._is_due(lease):
                self._running[lease_id] = self._spawn(self._look(lease, keys))

    async def settle(self) -> None:
        """Wait for the readings that are under way."""
        await beside_tasks.settle(self._running)

    async def close(self) -> None:
        """End every reading."""
        await beside_tasks.end(self._running)

    def _forget(self, wanted: Mapping[str, object]) -> None:
        self._running = {key: task for key, task in self._running.items() if not task.done()}
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

    async def _register(self, wanted: _Wanted, views: Mapping[str, MarketView]) -> None:
        now = self._clock.monotonic()
        orders: list[tuple[Lease, str]] = []
        for lease, _ in wanted.values():
            read = self._read.get(lease.lease_id)
            if read is None or read.run_since != lease.run_since or not read.missing:
                continue
            tries = self._tries.setdefault(lease.lease_id, _Tries(lease.run_since))
            if tries.run_since != lease.run_since:
                tries = self._tries[lease.lease_id] = _Tries(lease.run_since)
            view = views.get(lease.market)
            may_write = view is not None and not view.no_spend_because
            if may_write and now >= tries.again_at and len(orders) < MOST_ORDERS:
                tries.count += 1
                tries.again_at = now + min(AGAIN_SECONDS * 2 ** (tries.count - 1), EVERY.total_seconds())
                orders.append((lease, read.missing[0]))
        ended = await asyncio.gather(*(self._order(lease, key) for lease, key in orders), return_exceptions=True)
        for failure in ended:
            if isinstance(failure, BaseException):
                raise failure

    async def _order(self, lease: Lease, key: str) -> None:
        intent = key_order.intent_of(lease, key, self._new_id(), self._clock.now())
        # A registration counts only once the market shows it.
        self._read.pop(lease.lease_id, None)
        await key_order.carry_out(self._ledger, self._keys[lease.market], key, intent, self._clock.now)


def _wanted(
    leases: Iterable[Lease], workloads: Iterable[Workload], able: Container[str]
) -> Iterator[tuple[str, tuple[Lease, tuple[str, ...]]]]:
    """Yield the leases whose instances should have keys, with these keys, by their ids."""
    works = {work.name: work for work in workloads}
    for lease in leases:
        work = works.get(lease.slot.workload)
        is_ours = lease.is_proven and not lease.is_estranged and not lease.is_held
        may_have = lease.state is LeaseState.RUNNING and lease.market in able
        if work is not None and work.ssh_keys and may_have and is_ours:
            yield lease.lease_id, (lease, work.ssh_keys)
