"""The daemon's ledger: it opens the file safely, remembers its content, and commits facts.

1. One process writes a ledger: the lock is taken before the file is touched.
2. The memory has only committed facts. After a failed commit it is read again.
3. A ledger that could not be written stays unwritable until a commit succeeds and the ballast is back.
"""

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import sqlalchemy as sa

from agent.clock import Clock
from agent.domain.record.hold import OperatorHold
from agent.domain.work.sign_of_life import ShortStarts
from agent.ledger import fill_memory, moved_marks, storage, tidying
from agent.ledger.connection_thread import ConnectionThread, finished
from agent.ledger.file import sidecar, statements
from agent.ledger.leader import Leader
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.memory import Memory, Recollection
from agent.ledger.reader import Reader
from agent.ledger.single_facts import LOST_RUNS, NOTIFIED, WAS_LOST, notified_text
from agent.ledger.storage_port import Storage, WriteRight
from agent.ledger.tables import price_history, schema
from agent.ledger.transaction import Transaction

_FLEET_ID = "fleet_id"
COMMIT_SECONDS = 5.0
"""A commit on a server that takes longer counts as unwritable: nothing is paid for on it. It is never cancelled."""
TIDY_SECONDS = 30.0
"""The longest time for one part of the nightly tidying on a server. Other commits wait for that part."""
READ_SECONDS = 60.0
"""The longest time to read the memory from a server; 100,000 leases took a second."""


class Ledger:
    """The durable record of rents, decisions and spend. Open it with `Ledger.open`, and close it to end its threads."""

    def __init__(self, place: Storage, clock: Clock, lock: WriteRight, tables: ConnectionThread) -> None:
        self.path = place.path
        """The path that names the small files beside the ledger, also where the tables are on a server."""
        self.fleet_id = ""
        self.why_unwritable = ""
        """Why nothing may be paid for, and the fix: the last commit failed, or the ballast has no room. Else empty."""
        self.lapses = 0
        """How often a write failed since the start. After each the tables may be those of another server."""
        self.owed: tuple[OperatorHold, ...] = ()
        """A kill of everything that could not be committed yet; it counts in place of a recorded one."""
        self._writes_begun = self._writes_ended = 0
        self._clock = clock
        self._place = place
        self._lock = lock
        self._tables = tables
        self._reader: Reader | None = None
        self._archive: Reader | None = None
        self._one_report = asyncio.Lock()
        self._turn = asyncio.Lock()
        self._memory = Memory()
        self._is_stale = False

    @classmethod
    async def open(cls, path: Path | Storage, *, clock: Clock, fleet_id: str = "") -> "Ledger":
        """Return the ledger at `path`, created or upgraded if needed. A new fleet gets `fleet_id`, or a random id.

        Raises:
            LedgerError: LOCKED, UNWRITABLE, CORRUPT, NEWER_SCHEMA, UNRELEASED_SCHEMA, FLEET_MISMATCH, MOVED; of a
                server also UNREACHABLE.
        """
        place = storage.of(path)
        try:
            return await cls._opened(place, clock, fleet_id)
        except LedgerError as error:
            if error.code is not Code.UNWRITABLE:
                raise
        # SQLite makes a journal at each start. On a full disk the ballast has its room, so that leases can be ended.
        await finished(asyncio.get_running_loop().run_in_executor(None, place.free_room))
        return await cls._opened(place, clock, fleet_id)

    @classmethod
    async def _opened(cls, place: Storage, clock: Clock, fleet_id: str) -> "Ledger":
        loop = asyncio.get_running_loop()
        lock = await finished(loop.run_in_executor(None, place.lock))
        try:
            await finished(loop.run_in_executor(None, place.prepare))
            ledger = cls(place, clock, lock, await ConnectionThread(place.link("rw"), "rw").open())
        except BaseException:
            lock.release()
            raise
        try:
            await ledger._settle_in(fleet_id)
        except BaseException:
            await ledger.close()
            raise
        return ledger

    @property
    def place(self) -> Storage:
        """The place of the tables, for callers that open a reader of their own."""
        return self._place

    @property
    def is_writable(self) -> bool:
        """Whether the last commit succeeded and the ballast exists; if not, nothing may be paid for."""
        return not self.why_unwritable

    def refuse_unled(self) -> None:
        """Raise if this daemon cannot show that it still leads. On a file it always does.

        Raises:
            LedgerError: UNLED, DEPOSED.
        """
        lost = self._lock.lost()
        if lost is not None:
            raise lost

    def permit(self, *, is_paying: bool = False) -> Callable[[], str]:
        """Return a function to be asked before the first byte of what is now recorded as sent.

        It returns why the request must not leave, or an empty text.
        """
        return self._lock.permit(is_paying=is_paying)

    def leader(self) -> Leader | None:
        """Return this daemon as the leader of its fleet; None on a file."""
        return self._lock.leader()

    @property
    def epoch(self) -> int:
        """The number of this daemon's epoch; 0 on a file."""
        leader = self._lock.leader()
        return 0 if leader is None else leader.epoch

    def announce(self, page: str) -> None:
        """Give standbys the address of this daemon's page."""
        self._lock.announce(page)

    @property
    def is_served(self) -> bool:
        """Whether the tables are on a server, where a standby may take the lead."""
        return self._place.is_served

    async def replica_danger(self) -> str:
        """Return why a replica of the server could take over without a committed order, or an empty text.

        Raises:
            LedgerError: UNWRITABLE, the server does not answer; DEPOSED.
        """
        return await self._tables.run(self._place.replica_danger, within_seconds=COMMIT_SECONDS, reads=True)

    def recollection(self, now: dt.datetime | None = None) -> Recollection:
        """Return the memory at `now` with the owed kill.

        It needs no SQL, and is the same object while nothing changed.
        """
        known = self._memory.recollection(now or self._clock.now())
        if not self.owed:
            return known
        kinds = {owed.target.kind for owed in self.owed}
        others = (each for each in known.holds if each.target.kind not in kinds)
        return replace(known, holds=(*others, *self.owed))

    @property
    def was_lost(self) -> bool:
        """Whether an existing fleet has new or restored tables, so that earlier spend is unknown until settled."""
        return self._memory.was_lost

    @property
    def has_lost_runs(self) -> bool:
        """Whether earlier tables of this fleet were lost: buckets may have runs that these do not know."""
        return self._memory.has_lost_runs

    @property
    def short_starts(self) -> ShortStarts:
        """The last starts of the daemon in a row that ended before a second pass."""
        return self._memory.short_starts

    def is_uncounted(self, market: str) -> bool:
        """Return whether a market's charges from before these tables are still unknown."""
        return self._memory.was_lost and market not in self._memory.counted_again

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Yield a transaction that commits its facts when the block ends; an exception in the block drops them.

        Other transactions wait meanwhile, so the block must not await anything slow.

        Raises:
            LedgerError: UNWRITABLE, CONFLICT, CORRUPT at the end of the block; then nothing of it is kept.
        """
        async with self._turn:
            if self._is_stale:
                await self._read_anew()
            gathered = Transaction(self._memory)
            yield gathered
            if gathered.work:
                await self._commit(gathered)

    async def tidy(self) -> None:
        """Roll up old prices, and delete ended cooldowns and old decisions; once a day is enough.

        Each part is a transaction of its own: other commits have their turn in between, and what is done stays done.

        Raises:
            LedgerError: UNWRITABLE, CONFLICT, CORRUPT; the next tidying does the rest.
        """
        now = self._clock.now()
        before = price_history.raw_before(now)
        while (oldest := await self._oldest_price(before)) is not None:
            await self._tidy(tidying.prices(oldest, before), now)
        for part in tidying.others(now):
            await self._tidy(part, now)

    async def _oldest_price(self, before: dt.datetime) -> dt.datetime | None:
        query = price_history.oldest(before)
        return await self._tables.run(lambda link: link.scalar(query), within_seconds=TIDY_SECONDS, reads=True)

    async def _tidy(self, part: tidying.Part, now: dt.datetime) -> None:
        def work(link: sa.Connection) -> None:
            for statement, values in part:
                link.execute(statement, values)

        async with self._turn:
            # A price that has not changed for long has lost its sample, so its next sight must be stored again.
            await self._guarded(work, lambda: self._memory.forget_old(now), TIDY_SECONDS)

    def room(self) -> tuple[int, int, dt.datetime | None]:
        """Return the bytes of the file and its journal, the free bytes on its disk, and the newest backup's time."""
        return self._place.size_bytes(), sidecar.free_bytes(self.path), sidecar.last_backup(self.path)

    async def settled(self) -> int:
        """Wait until no write is under way; return the version, which changes with each write."""
        async with self._turn:
            return self._writes_begun

    def is_still_at(self, version: int) -> bool:
        """Return whether nothing was written since that version, so that a reader's rows match the memory."""
        return self._writes_begun == self._writes_ended == version

    async def reader(self) -> Reader:
        """Return a reader with its own connection, so that a long answer does not delay a commit."""
        if self._reader is None:
            self._reader = await self._new_reader()
        return self._reader

    @asynccontextmanager
    async def archive(self) -> AsyncIterator[Reader]:
        """Yield a separate reader for reports, one report at a time, so that nothing else waits for a year's rows."""
        async with self._one_report:
            if self._archive is None:
                self._archive = await self._new_reader()
            yield self._archive

    async def _new_reader(self) -> Reader:
        return Reader(await ConnectionThread(self._place.link("ro"), "ro").open(), self._place)

    async def close(self) -> None:
        """Close the connections and give up the lock."""
        for each in (self._reader, self._archive):
            if each is not None:
                await each.close()
        await self._tables.close()
        self._lock.release()

    async def _commit(self, gathered: Transaction) -> None:
        def work(link: sa.Connection) -> None:
            statements.execute_all(link, gathered.work)

        await self._guarded(work, gathered.remember)

    async def _guarded(
        self, work: Callable[[sa.Connection], None], then: Callable[[], None], within_seconds: float | None = None
    ) -> None:
        self._writes_begun += 1
        try:
            await self._tables.run(work, then, within_seconds=within_seconds or COMMIT_SECONDS)
        except LedgerError as error:
            await self._after_failure(error)
            raise
        finally:
            self._writes_ended = self._writes_begun
        if not self.is_writable:
            self.why_unwritable = self._lack_of_room()

    def _lack_of_room(self) -> str:
        """Return why the last records have no room of their own; empty if they have."""
        if self._place.keep_room():
            return ""
        return f"the disk of {self.path} is full: make room (`df {self.path.parent}`); until then nothing is paid for"

    async def _after_failure(self, error: LedgerError) -> None:
        if error.code is Code.UNWRITABLE:
            self.lapses += 1
            self.why_unwritable = error.sentence
            self._place.free_room()
        # Only the file shows whether a failed commit took place. If it cannot be read now, it is read before anything
        # else is written.
        self._is_stale = True
        with suppress(LedgerError):
            self._memory = await self._tables.run(self._recall, within_seconds=READ_SECONDS, reads=True)
            self._is_stale = False

    async def _read_anew(self) -> None:
        """Read the memory again from the file, and refuse changes that were decided on the old memory.

        Raises:
            LedgerError: the file cannot be read, or the write took place: pending changes must be decided again.
        """
        before, self._memory = (
            self._memory,
            await self._tables.run(self._recall, within_seconds=READ_SECONDS, reads=True),
        )
        self._is_stale = False
        if before.holds_as(self._memory):
            return
        raise LedgerError(
            Code.UNWRITABLE,
            f"{self._place.shown} was read again after a write without an answer: pending changes are decided again",
        )

    def _recall(self, link: sa.Connection) -> Memory:
        return fill_memory.recall(link, self._clock.now())

    async def _settle_in(self, fleet_id: str) -> None:
        beside_id = sidecar.read_fleet_id(self.path)
        facts = await self._tables.run(fill_memory.meta, within_seconds=READ_SECONDS, reads=True)
        moved_marks.refuse(facts, self._place.shown)
        if _FLEET_ID not in facts:
            # Every event of new tables is news, also those from before notifications begin.
            facts = {_FLEET_ID: beside_id or fleet_id or sidecar.new_fleet_id(), NOTIFIED: notified_text(0)}
            if beside_id is not None:
                facts |= {WAS_LOST: "1", LOST_RUNS: "1"}
            new = [{"key": key, "value": value} for key, value in facts.items()]
            await self._tables.run(
                lambda link: link.execute(sa.insert(schema.meta), new).close(), within_seconds=COMMIT_SECONDS
            )
        self.fleet_id = facts[_FLEET_ID]
        if beside_id is None:
            sidecar.write_fleet_id(self.path, self.fleet_id)
        elif beside_id != self.fleet_id:
            raise self._mismatch(beside_id)
        self._memory = await self._tables.run(self._recall, within_seconds=READ_SECONDS, reads=True)
        self.why_unwritable = self._lack_of_room()

    def _mismatch(self, beside_id: str) -> LedgerError:
        file = sidecar.sibling(self.path, ".fleet")
        return LedgerError(
            Code.FLEET_MISMATCH,
            f"{self.path} belongs to fleet {self.fleet_id}, {file.name} beside it has {beside_id}: two ledgers were "
            f"mixed up. Put the right file in its place; if the ledger is the right one, delete {file} and gpubid "
            "writes it again",
        )
