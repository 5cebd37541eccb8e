"""A reader of the ledger, also while the daemon writes it: queries, with answers as values of the domain."""

import asyncio
import datetime as dt
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import sqlalchemy as sa

from agent.domain.market.capacity import Capacity
from agent.domain.market.gpu import GpuModel
from agent.domain.market.host import HostRecord
from agent.domain.market.market_notice import NoticeGiven
from agent.domain.market.offer import Offer
from agent.domain.market.price import PriceHour, PriceSample
from agent.domain.money import Usd
from agent.domain.record.account import Line, LostWork
from agent.domain.record.event import Event
from agent.domain.record.guard_run import GuardRun
from agent.domain.record.host_check import HostCheck
from agent.domain.record.intent import Intent
from agent.domain.record.lease import Lease
from agent.domain.record.metered_volume import MeteredVolume
from agent.domain.record.shadow_account import Counted, ShadowAccount, ShadowDecision
from agent.domain.record.work_done import LastNumber
from agent.domain.slot import Slot
from agent.ledger import fill_memory, moved_marks, single_facts, storage
from agent.ledger.connection_thread import ConnectionThread, rows
from agent.ledger.file import ledger_check, sidecar, table_export
from agent.ledger.leader import Leader
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.memory import Recollection
from agent.ledger.storage_port import Storage
from agent.ledger.tables import (
    decisions,
    event_rows,
    guard_rows,
    host_rows,
    intent_rows,
    lease_rows,
    market_bills,
    pool_rows,
    price_history,
    search_history,
    shadow_rows,
    spend_lines,
    spend_rows,
)
from agent.ledger.tables.decisions import RecordedDecision
from agent.ledger.tables.market_bills import BillLine
from agent.ledger.tables.spend_rows import SpendKey, SpendLine
from agent.ledger.tables.types import Query

T = TypeVar("T")
LIMIT = 1000
"""The default number of rows of an answer: enough for a page, too few to fill the memory."""


class Reader:
    """A read-only view of a ledger; every answer is of one committed instant."""

    def __init__(self, tables: ConnectionThread, place: Storage) -> None:
        self._tables = tables
        self._place = place

    async def events(
        self,
        since: dt.datetime | None = None,
        until: dt.datetime | None = None,
        workload: str | None = None,
        kinds: Sequence[str] = (),
        limit: int = LIMIT,
        leases: Collection[str] | None = None,
        market: str | None = None,
    ) -> list[Event]:
        """Return events, newest first; if leases or a market are named, only theirs."""
        query = event_rows.between(since, until, workload, kinds, limit, leases, market)
        return await self._all(query, event_rows.event_of)

    async def slot_events(
        self, slots: Collection[Slot], kinds: Collection[str], since: dt.datetime, limit: int = LIMIT
    ) -> list[Event]:
        """Return events of these kinds, of these slots and of slots numbered between them, newest first."""
        return await self._all(event_rows.of_slots(slots, kinds, since, limit), event_rows.event_of)

    async def last_events(self, leases: Collection[str], kinds: Collection[str], before: dt.datetime) -> list[Event]:
        """Return the last event of these kinds before an instant, of each of these leases that has one."""
        if not leases:
            return []
        return await self._all(event_rows.last_before(leases, kinds, before), event_rows.event_of)

    async def events_after(self, event_id: int, limit: int = LIMIT) -> list[Event]:
        """Return the events after an event, oldest first."""
        return await self._all(event_rows.after(event_id, limit), event_rows.event_of)

    async def last_event_id(self) -> int:
        """Return the number of the last event; 0 without one."""
        return int(await self._tables.run(lambda link: link.scalar(event_rows.LAST)) or 0)

    async def notified(self) -> int | None:
        """Return the last event whose notifications were sent; None in tables of a gpubid that kept it elsewhere."""
        text = (await self.meta()).get(single_facts.NOTIFIED)
        return None if text is None else single_facts.notified_of(text)

    async def count_events(self, kind: str, workload: str, since: dt.datetime, until: dt.datetime) -> int:
        """Return the number of a workload's events of a kind, both ends included."""
        query = event_rows.count(kind, workload, since, until)
        return int(await self._tables.run(lambda link: link.scalar(query)) or 0)

    async def prices(
        self,
        market: str | None = None,
        gpu: GpuModel | None = None,
        host_id: str | None = None,
        since: dt.datetime | None = None,
        until: dt.datetime | None = None,
        limit: int = LIMIT,
        hosts: Collection[str] | None = None,
    ) -> list[PriceSample]:
        """Return changes of prices, newest first; prices older than two weeks are in `price_hours`."""
        named = hosts if host_id is None else (host_id,)
        return await self._all(price_history.history(market, gpu, named, since, until, limit), price_history.sample_of)

    async def last_prices(self, leases: Collection[str], before: dt.datetime) -> list[PriceSample]:
        """Return the last price before an instant of the slice of each of these leases."""
        return await self._all(price_history.last_before(leases, before), price_history.sample_of)

    async def each_ask(
        self, models: Collection[str], since: dt.datetime, until: dt.datetime, see: Callable[..., None]
    ) -> None:
        """Call `see(market, host_id, gpus, gpu, hour, ask)` for each ask, on the ledger's thread; no row is kept.

        The asks of one host and number of GPUs come one after another, oldest first: hours since the epoch, and
        micro-dollars an hour or None.
        """
        query = price_history.asks(models, since, until)
        await self._tables.each(query, see)

    async def looks(
        self, since: dt.datetime | None = None, until: dt.datetime | None = None
    ) -> list[search_history.Seen]:
        """Return every search that found offers, oldest first; they are kept as long as raw prices."""
        return await self._all(search_history.between(since, until), search_history.look_of)

    async def slices(self) -> list[Offer]:
        """Return the last offer of every seen slice, without its prices."""
        slices = await self._all(search_history.SLICES, search_history.offer_of)
        return [offer for offer in slices if offer is not None]

    async def regions(self) -> set[str]:
        """Return the regions of every seen slice, as its market writes them."""
        return set(await self._all(search_history.REGIONS, lambda columns: columns["region"] or ""))

    async def price_hours(
        self,
        market: str | None = None,
        gpu: GpuModel | None = None,
        since: dt.datetime | None = None,
        until: dt.datetime | None = None,
        limit: int = LIMIT,
    ) -> list[PriceHour]:
        """Return rolled-up prices, the newest first."""
        return await self._all(price_history.hours(market, gpu, since, until, limit), price_history.hour_of)

    async def spend_by(
        self, key: SpendKey, since: dt.date | None = None, until: dt.date | None = None
    ) -> list[SpendLine]:
        """Return sums of spend, sorted by key, from day `since` up to but not including `until`."""
        return await self._all(spend_rows.summed(key, since, until), spend_rows.line_of)

    async def bills(self, since: dt.date, until: dt.date) -> list[BillLine]:
        """Return estimates and charges of days from `since` up to but not including `until`."""
        return await self._all(market_bills.between(since, until), market_bills.line_of)

    async def lines(self, since: dt.date | None = None, until: dt.date | None = None) -> list[Line]:
        """Return money and paid time by lease and day, from day `since` up to but not including `until`."""
        return await self._all(spend_lines.lines(since, until), spend_lines.line_of)

    async def lines_and_payers(
        self, since: dt.date | None = None, until: dt.date | None = None
    ) -> tuple[list[Line], list[Lease], Mapping[str, MeteredVolume]]:
        """Return lines, open leases and volumes of one instant: each paid span is in a line or still to be metered."""

        def work(link: sa.Connection) -> tuple[list[Line], list[Lease], Mapping[str, MeteredVolume]]:
            lines = [spend_lines.line_of(row) for row in rows(link, spend_lines.lines(since, until))]
            leases = [lease_rows.lease_of(row) for row in rows(link, lease_rows.OPEN)]
            return lines, leases, fill_memory.volumes(fill_memory.meta(link))

        return await self._tables.run(work)

    async def first_day_within(self, most: int, since: dt.date | None, until: dt.date | None) -> dt.date | None:
        """Return the first day from which there are at most `most` lines (at least the last day); None if all fit."""
        count, first = 0, cast("dt.date | None", None)
        for row in await self._tables.run(lambda link: rows(link, spend_lines.by_day(since, until))):
            count += row["lines"]
            if first is not None and count > most:
                return first
            first = row["day"]
        return None

    async def sums(
        self, until: dt.date, since: dt.date | None = None, *, of_leases_only: bool = False
    ) -> dict[str, Counted]:
        """Return each workload's figures up to and including a day, from day `since` or since the ledger began."""
        query = spend_lines.sums(until, since, of_leases_only=of_leases_only)
        sums = await self._tables.run(lambda link: rows(link, query))
        return {row["workload"]: spend_lines.counted_of(row) for row in sums}

    async def lost_work(self, since: dt.datetime | None = None, until: dt.datetime | None = None) -> list[LostWork]:
        """Return the time that interruptions wasted, oldest first."""
        return await self._all(spend_lines.lost_work(since, until), spend_lines.lost_work_of)

    async def lost_at(self, lease_id: str, at: dt.datetime) -> int:
        """Return the microseconds of work that the end of a lease at `at` wasted; 0 if none is recorded."""
        losses = await self.lost_work(at, at + dt.timedelta(microseconds=1))
        return sum(each.lost for each in losses if each.lease_id == lease_id)

    async def counted(self, market: str, since: dt.date, until: dt.date) -> dict[str, tuple[str, Usd]]:
        """Return (lease id, amount) of the ledger's count by instance, for days up to but not including `until`."""
        counted_rows = await self._tables.run(lambda link: rows(link, market_bills.counted(market, since, until)))
        return {row["instance_id"]: (row["lease_id"], row["estimate"]) for row in counted_rows}

    async def days_of(self, market: str, since: dt.date, until: dt.date) -> list[dt.date]:
        """Return the days on which a lease of a market cost anything."""
        counted_rows = await self._tables.run(lambda link: rows(link, market_bills.counted(market, since, until)))
        return sorted({row["day"] for row in counted_rows})

    async def intents(
        self, limit: int = LIMIT, ids: Collection[str] | None = None, leases: Collection[str] | None = None
    ) -> list[Intent]:
        """Return intents in any state, the last recorded first; if ids or leases are named, only those."""
        return await self._all(intent_rows.newest(limit, ids, leases), intent_rows.intent_of)

    async def leases(
        self, limit: int = LIMIT, instances: Collection[str] | None = None, ids: Collection[str] | None = None
    ) -> list[Lease]:
        """Return leases in any state, the last opened first; if instances or ids are named, only those."""
        return await self._all(lease_rows.newest(limit, instances, ids), lease_rows.lease_of)

    async def instances(self, market: str) -> frozenset[str]:
        """Return the id of every instance of a market that ever had a lease, however many leases it had."""
        return frozenset(await self._all(lease_rows.instances(market), lambda columns: columns["instance_id"]))

    async def has_worked(self, run: GuardRun) -> bool:
        """Return whether a run ever had a lease."""
        return bool(await self._all(lease_rows.of_run(run), lease_rows.lease_of))

    async def last_numbers(self) -> list[LastNumber]:
        """Return the last number that a guard reported in each run of each slot."""
        return await self._all(guard_rows.LAST_NUMBERS, guard_rows.number_of)

    async def notices(self) -> list[NoticeGiven]:
        """Return the notices before losses to markets, the last reported first."""
        return await self._all(guard_rows.LAST_NOTICES, guard_rows.notice_of)

    async def host_checks(self) -> list[HostCheck]:
        """Return the checks of hosts by their guards: on every open lease, and on the ended ones checked last."""
        ended = await self._all(guard_rows.LAST_CHECKS, guard_rows.check_of)
        return ended + await self._all(guard_rows.OPEN_CHECKS, guard_rows.check_of)

    async def hosts(self) -> list[HostRecord]:
        """Return our record of every host."""
        return await self._all(host_rows.HOSTS, host_rows.host_of)

    async def capacity(self) -> list[Capacity]:
        """Return every known pool."""
        return await self._all(pool_rows.POOLS, pool_rows.capacity_of)

    async def decisions(self, slots: Collection[Slot] | None = None) -> list[RecordedDecision]:
        """Return the last decision of each slot; if slots are named, only of those."""
        query = decisions.last_per_slot() if slots is None else decisions.last_of(slots)
        return await self._all(query, decisions.decision_of)

    async def weighed(self) -> list[RecordedDecision]:
        """Return the last decision of each slot that chose among several priced ways."""
        return await self._all(decisions.last_weighed_per_slot(), decisions.decision_of)

    async def shadows(self) -> list[ShadowAccount]:
        """Return the present figures of every shadow."""
        return await self._all(shadow_rows.ACCOUNTS, shadow_rows.account_of)

    async def shadow_decisions(
        self, workload: str | None = None, strategy: str | None = None, limit: int = LIMIT
    ) -> list[ShadowDecision]:
        """Return the decisions of shadows, newest first."""
        return await self._all(shadow_rows.newest(workload, strategy, limit), shadow_rows.decision_of)

    async def last_shadow_decisions(self) -> list[ShadowDecision]:
        """Return the last decision of each shadow for each slot."""
        return await self._all(shadow_rows.last_per_slot(), shadow_rows.decision_of)

    async def meta(self) -> dict[str, str]:
        """Return the fleet id and account ids: keys fleet_id and account/MARKET."""
        return await self._tables.run(fill_memory.meta)

    async def rehearsed_until(self) -> dt.datetime | None:
        """Return the end of the rehearsal that wrote this ledger; None if a daemon wrote it."""
        end = (await self.meta()).get(single_facts.REHEARSED_UNTIL)
        return None if end is None else dt.datetime.fromisoformat(end)

    async def refuse_rehearsed(self) -> None:
        """Refuse a ledger that a rehearsal wrote: its market is gone, so no cycle can continue from it.

        Raises:
            LedgerError: REHEARSED.
        """
        end = await self.rehearsed_until()
        if end is not None:
            ended = f"a rehearsal wrote this ledger and ended at {end:%Y-%m-%d %H:%M:%S} UTC, so it has no next cycle"
            verbs = "`gpubid fleet`, `gpubid spend`, `gpubid savings` and `gpubid ledger events` read it"
            raise LedgerError(Code.REHEARSED, f"{ended}: {verbs}; to run, name another file as [ledger] path")

    async def recollection(self, now: dt.datetime) -> Recollection:
        """Return the daemon's memory at `now`, read from the file."""
        memory = await self._tables.run(lambda link: fill_memory.recall(link, now))
        return memory.recollection(now)

    async def backup(self, to: Path, *, at: dt.datetime) -> None:
        """Copy the ledger to a file that does not exist yet, check the copy and keep the time.

        Raises:
            LedgerError: BAD_BACKUP, UNWRITABLE, CORRUPT.
        """
        await self.copy(to)
        sidecar.note_backup(self._place.path, at)

    async def copy(self, to: Path) -> None:
        """Copy the ledger to a file that does not exist yet and check the copy; it does not count as a backup.

        Raises:
            LedgerError: BAD_BACKUP, UNWRITABLE, CORRUPT.
        """
        await asyncio.to_thread(self._place.copy, to)

    async def export(
        self, names: Sequence[str], folder: Path, suffix: str, opener: table_export.Opener
    ) -> list[table_export.Exported]:
        """Write tables of one instant to files that do not exist yet.

        Raises:
            LedgerError: UNWRITABLE, CORRUPT.
        """
        return await self._tables.run(lambda link: table_export.export(link, names, folder, suffix, opener))

    def last_backup(self) -> dt.datetime | None:
        """Return when the newest backup was made."""
        return sidecar.last_backup(self._place.path)

    async def leading(self) -> Leader | None:
        """Return the daemon that leads this ledger now, on any machine; None if nobody does, and for a file."""
        return await asyncio.to_thread(self._place.leading)

    async def verify(self) -> ledger_check.Verification:
        """Check the file and the rules between its rows."""
        return await asyncio.to_thread(self._place.verify)

    async def close(self) -> None:
        """Disconnect."""
        await self._tables.close()

    async def _all(self, query: Query, value_of: Callable[[Mapping[str, Any]], T]) -> list[T]:
        return await self._tables.read(query, value_of)


async def open_reader(path: Path | Storage) -> Reader:
    """Return a reader of a ledger, without a lock, a migration or any write.

    Raises:
        LedgerError: MISSING, UNREADABLE, UNREACHABLE, CORRUPT, MOVED; OLDER_SCHEMA, NEWER_SCHEMA and
            UNRELEASED_SCHEMA, another release wrote it.
    """
    place = storage.of(path)
    await asyncio.to_thread(place.check_readable)
    reader = Reader(await ConnectionThread(place.link("ro"), "ro").open(), place)
    try:
        moved_marks.refuse(await reader.meta(), place.shown)
    except LedgerError:
        await reader.close()
        raise
    return reader
