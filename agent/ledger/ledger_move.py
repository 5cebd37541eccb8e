"""The move of a whole ledger between a file and a server, while no daemon runs.

1. Both places are locked throughout. The source is only marked, never changed otherwise, and kept.
2. At no instant can both be opened: the target stays marked as unfinished until the source is marked as moved. A move
   that was broken off is run again.
"""

import datetime as dt
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from agent.ledger import fill_memory, portable, table_copy
from agent.ledger.connection_thread import Link
from agent.ledger.file import sidecar
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.moved_marks import MOVED_TO, UNFINISHED
from agent.ledger.storage_port import Storage
from agent.ledger.table_copy import TableFigures
from agent.ledger.tables import schema


def move(source: Storage, target: Storage, at: dt.datetime) -> dict[str, TableFigures]:
    """Move a ledger, and return the figures of its tables, which both places have.

    Raises:
        LedgerError: LOCKED, a daemon runs; MISSING, there is nothing to move; BAD_BACKUP, the target has a ledger, or
            the copy differs; and the errors of the two places.
    """
    if source.shown == target.shown:
        raise LedgerError(Code.BAD_BACKUP, f"{source.shown} is the ledger's place already: name another one")
    if source.is_missing():
        # Taking the lock would create its file beside no ledger.
        raise _missing(source)
    with _held(source), _held(target):
        _refuse_empty(source)
        with _opened(source) as from_there, _opened(_empty(target, at)) as to_there:
            return _moved(source, target, from_there, to_there)


def _moved(source: Storage, target: Storage, from_there: "_Open", to_there: "_Open") -> dict[str, TableFigures]:
    before: dict[str, TableFigures] = from_there.run(table_copy.figures)

    def copied(link: sa.Connection) -> dict[str, TableFigures]:
        from_there.run(lambda read: table_copy.copy(read, link))
        target.finish_copy(link)
        _mark(link, UNFINISHED, _known_anywhere(source))
        return table_copy.figures(link)

    found = table_copy.differences(before, to_there.run(copied))
    if found:
        raise LedgerError(Code.BAD_BACKUP, f"{target.shown} does not have what was sent: {'; '.join(found[:3])}")
    from_there.run(lambda link: _mark(link, MOVED_TO, _known_anywhere(target)))
    to_there.run(lambda link: link.execute(sa.delete(schema.meta).where(schema.meta.c.key == UNFINISHED)).close())
    return before


def _mark(link: sa.Connection, key: str, value: str) -> None:
    link.execute(portable.stored(schema.meta), [{"key": key, "value": value}]).close()


def _known_anywhere(place: Storage) -> str:
    """Return a place as a person on another box can find it: a file with its machine and whole path."""
    return place.shown if place.is_served else f"{socket.gethostname()}:{place.path.absolute()}"


@contextmanager
def _held(place: Storage) -> Iterator[None]:
    lock = place.lock()
    try:
        yield
    finally:
        lock.release()
        if not place.is_served:
            sidecar.hand_over(place.path)


def _missing(source: Storage) -> LedgerError:
    return LedgerError(Code.MISSING, f"there is no ledger at {source.shown}: nothing to move")


def _refuse_empty(source: Storage) -> None:
    source.prepare()
    facts = _facts(source)
    if not facts:
        raise _missing(source)
    if MOVED_TO in facts:
        raise LedgerError(
            Code.MOVED,
            f"{source.shown} was moved to {facts[MOVED_TO]} already: write that place under [ledger]; it has what was "
            "recorded since",
        )


def _empty(target: Storage, at: dt.datetime) -> Storage:
    """Return the target with empty tables. A ledger there that was moved away, or half copied, is renamed first."""
    if not target.is_missing():
        target.prepare()
        facts = _facts(target)
        if facts and not facts.keys() & {MOVED_TO, UNFINISHED}:
            raise LedgerError(Code.BAD_BACKUP, f"{target.shown} has a ledger already: name an empty place")
        if facts:
            target.put_aside(at)
    target.prepare()
    return target


class _Open:
    """A connection whose transactions run on the calling thread."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._connection = link.connect()
        self._connection.begin()

    def run(self, work: Callable[[sa.Connection], Any]) -> Any:  # noqa: ANN401 - what the work returns
        """Return the result of `work`, in one transaction.

        Raises:
            LedgerError: the engine refused; nothing of `work` is kept.
        """
        raw = self._connection.connection.driver_connection
        errors: tuple[type[Exception], ...] = (exc.SQLAlchemyError, *self._link.errors)
        try:
            self._link.begin(raw)
            try:
                result = work(self._connection)
                self._link.commit(raw, reads=False)
            except BaseException:
                self._link.rollback(raw)
                raise
        except errors as error:
            raise self._link.in_our_words(error) from error
        return result

    def close(self) -> None:
        """Disconnect."""
        self._connection.close()
        self._link.dispose()


def _facts(place: Storage) -> dict[str, str]:
    """Return the single facts of a ledger, read beside the session that has the right to write."""
    with _opened(place, "ro") as there:
        facts: dict[str, str] = there.run(fill_memory.meta)
    return facts


@contextmanager
def _opened(place: Storage, mode: str = "rw") -> Iterator[_Open]:
    there = _Open(place.link(mode))
    try:
        yield there
    finally:
        there.close()
