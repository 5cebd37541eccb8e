"""One connection to the ledger's tables, on its own thread, with every failure as a `LedgerError`.

A whole transaction crosses to the thread once. The asynchronous driver crosses for each statement, so a transaction of
five statements took four times as long (measured: 2.9 ms against 0.7 ms).
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, Self, TypeVar

import sqlalchemy as sa
from sqlalchemy import exc

from agent.ledger.ledger_errors import LedgerError

T = TypeVar("T")


class Link(Protocol):
    """One engine: how to connect, begin and commit, and the ledger's errors for its own."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The driver's own errors."""
        ...

    @property
    def probe(self) -> sa.Executable:
        """A query that reads something, to learn at once whether the tables can be reached."""
        ...

    def connect(self) -> sa.Connection:
        """Return a connection that leaves transactions to its user.

        Raises:
            LedgerError: this process may not write any more.
        """
        ...

    def begin(self, raw: Any) -> None:  # noqa: ANN401 - the driver's own connection
        """Begin a transaction."""
        ...

    def commit(self, raw: Any, *, reads: bool) -> None:  # noqa: ANN401 - as above
        """Commit it, or raise if it is not certain that it is durable; `reads` says that nothing was written."""
        ...

    def rollback(self, raw: Any) -> None:  # noqa: ANN401 - as above
        """Drop it. A connection that is gone has dropped it already."""
        ...

    def in_our_words(self, error: Exception) -> LedgerError:
        """Return the ledger's error for an error of the driver or of SQLAlchemy."""
        ...

    def is_lost(self, error: LedgerError) -> bool:
        """Return whether the connection must be dropped after an error, and made again."""
        ...

    def sever(self) -> None:
        """End a transaction that takes too long, from another thread; nothing is ever cancelled at the server."""
        ...

    def dispose(self) -> None:
        """Forget the engine."""
        ...


async def finished(future: asyncio.Future[T], then: Callable[[], None] = lambda: None) -> T:
    """Return the result of a thread's work. A thread cannot be stopped, so a cancelled caller waits for its end."""
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.shield(future)
        except asyncio.CancelledError as error:
            cancelled = error
        except Exception:  # noqa: BLE001, S110 - raised again by result() below
            pass
    if future.exception() is None:
        then()
    if cancelled is not None:
        raise cancelled
    return future.result()


READ_SECONDS = 60.0
"""A cycle waits for some queries, and the watchdog ends a daemon whose cycle takes 20 polls."""


class _Deadline:
    """Severs a transaction that takes too long. Its seconds begin once it is connected: before, nothing can be severed.

    Connecting has its own time limits.
    """

    def __init__(self, seconds: float | None, sever: Callable[[], None]) -> None:
        self._seconds = seconds
        self._sever = sever
        self._loop = asyncio.get_running_loop()
        self._late: asyncio.TimerHandle | None = None
        self._is_over = False

    def begin(self) -> None:
        """Begin to count, from the thread of the connection."""
        if self._seconds is not None:
            self._loop.call_soon_threadsafe(self._arm)

    def end(self) -> None:
        """Stop, from the event loop."""
        self._is_over = True
        if self._late is not None:
            self._late.cancel()

    def _arm(self) -> None:
        if not self._is_over and self._seconds is not None:
            self._late = self._loop.call_later(self._seconds, self._sever)


class ConnectionThread:
    """A connection that outlives single transactions; `run` may be called from one event loop at a time."""

    def __init__(self, link: Link, name: str) -> None:
        self._link = link
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"ledger-{name}")
        self._connection: sa.Connection | None = None

    async def open(self) -> Self:
        """Connect, and close the connection again if that fails."""
        try:
            await self.run(lambda connection: connection.execute(self._link.probe).scalar(), reads=True)
        except LedgerError:
            await self.close()
            raise
        return self

    async def run(
        self,
        work: Callable[[sa.Connection], T],
        then: Callable[[], None] = lambda: None,
        *,
        within_seconds: float | None = None,
        reads: bool = False,
    ) -> T:
        """Run `work` in one transaction and return its result; call `then` after the commit.

        `reads` says that `work` writes nothing.

        A transaction that takes longer than `within_seconds` after it is connected ends as UNWRITABLE where the engine
        is on a server.

        A cancelled caller still waits for the end of the work, and `then` is still called. A commit cannot be undone,
        and leaving it unattended would let the memory and the file differ.

        Raises:
            LedgerError: UNWRITABLE, CONFLICT or CORRUPT; then nothing of `work` is kept.
        """
        deadline = _Deadline(within_seconds, self._link.sever)
        try:
            return await self._finish(lambda: self._transact(work, connected=deadline.begin, reads=reads), then)
        finally:
            deadline.end()

    async def read(self, query: sa.Executable, value_of: Callable[[Any], T]) -> list[T]:
        """Return the rows of a query as values, made on the ledger's thread to keep the event loop free.

        Errors of `value_of` are passed on unchanged. A query that takes longer than `READ_SECONDS` on a server ends:
        a cycle waits for some.

        Raises:
            LedgerError: UNWRITABLE, CONFLICT or CORRUPT.
        """
        deadline = _Deadline(READ_SECONDS, self._link.sever)
        found = partial(self._transact, lambda link: rows(link, query), connected=deadline.begin, reads=True)
        try:
            return await self._finish(lambda: [value_of(row) for row in found()])
        finally:
            deadline.end()

    async def each(self, query: sa.Executable, see: Callable[..., None]) -> None:
        """Call `see` with the columns of each row as it is read, on the ledger's thread; no row is kept.

        Raises:
            LedgerError: UNWRITABLE, CONFLICT or CORRUPT.
        """

        def work(link: sa.Connection) -> None:
            for row in link.execute(query):
                see(*row)

        await self.run(work, reads=True)

    async def close(self) -> None:
        """Disconnect and end the thread."""
        await self._finish(self._disconnect)
        self._thread.shutdown()

    async def _finish(self, work: Callable[[], T], then: Callable[[], None] = lambda: None) -> T:
        return await finished(asyncio.get_running_loop().run_in_executor(self._thread, work), then)

    def _transact(
        self, work: Callable[[sa.Connection], T], *, connected: Callable[[], None] = lambda: None, reads: bool = False
    ) -> T:
        """Run `work` in one transaction; call `connected` before it begins."""
        errors: tuple[type[Exception], ...] = (
            *self._link.errors,
            exc.SQLAlchemyError,
            ValueError,
            OverflowError,
        )
        try:
            connection = self._connected()
            connected()
            return self._transacted(connection, work, reads=reads)
        except errors as error:
            refused = self._link.in_our_words(error)
            if self._link.is_lost(refused):
                self._drop()
            raise refused from error

    def _connected(self) -> sa.Connection:
        if self._connection is None:
            self._connection = self._link.connect()
            # SQLAlchemy's transaction lasts as long as the connection and sends nothing. The real ones are begun
            # and ended below: through SQLAlchemy that takes as long again as SQLite's own work.
            self._connection.begin()
        return self._connection

    def _transacted(self, connection: sa.Connection, work: Callable[[sa.Connection], T], *, reads: bool) -> T:
        """Run `work` in one transaction, which is rolled back whatever ends it before its commit."""
        raw: Any = connection.connection.driver_connection
        self._link.begin(raw)
        try:
            result = work(connection)
            self._link.commit(raw, reads=reads)
        except BaseException:
            self._link.rollback(raw)
            raise
        return result

    def _drop(self) -> None:
        """Forget a connection that is of no use any more."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(exc.SQLAlchemyError, *self._link.errors):
                connection.invalidate()
                connection.close()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._link.dispose()


def rows(connection: sa.Connection, query: sa.Executable) -> list[Any]:
    """Return the rows of a query as mappings."""
    return list(connection.execute(query).mappings())
