"""A ledger while no daemon runs: its lock, its connection, and the marks of one that went back in time."""

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from agent.ledger import fill_memory, moved_marks, single_facts
from agent.ledger.connection_thread import Link
from agent.ledger.file import sidecar
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.moved_marks import MOVED_TO
from agent.ledger.storage_port import Storage


def mark_restored(place: Storage, at: dt.datetime) -> None:
    """Mark a ledger that another tool restored: its spend since then is unknown.

    Raises:
        LedgerError: LOCKED, a daemon runs; MISSING, there is no ledger; MOVED; and the errors of the place.
    """
    with held(place):
        refuse_empty(place)
        with opened(place) as there:
            there.run(lambda link: _mark(link, at))


def _mark(link: sa.Connection, at: dt.datetime) -> None:
    for statement, values in single_facts.marks_of_loss(at):
        link.execute(sa.text(statement), values).close()


@contextmanager
def held(place: Storage) -> Iterator[None]:
    """Hold the right to write a ledger. Raises: LedgerError LOCKED, UNWRITABLE."""
    lock = place.lock()
    try:
        yield
    finally:
        lock.release()
        if not place.is_served:
            sidecar.hand_over(place.path)


def missing(source: Storage) -> LedgerError:
    """Return the error that a place has no ledger."""
    return LedgerError(Code.MISSING, f"there is no ledger at {source.shown}")


def refuse_empty(source: Storage) -> None:
    """Raise LedgerError MISSING without a ledger, MOVED if it was moved or is half a copy.

    The right to write is held.
    """
    source.prepare()
    known = facts(source)
    if not known:
        raise missing(source)
    if MOVED_TO in known:
        raise LedgerError(
            Code.MOVED,
            f"{source.shown} was moved to {known[MOVED_TO]} already: write that place under [ledger]; it has what was "
            "recorded since",
        )
    # The ledger from which it was copied can still be opened: moved on, it would be a second one of the same fleet.
    moved_marks.refuse(known, source.shown)


class Open:
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


def facts(place: Storage) -> dict[str, str]:
    """Return the single facts of a ledger, read beside the session that has the right to write."""
    with opened(place, "ro") as there:
        facts: dict[str, str] = there.run(fill_memory.meta)
    return facts


@contextmanager
def opened(place: Storage, mode: str = "rw") -> Iterator[Open]:
    """Connect to a ledger; mode is ro, or rw while the right to write is held."""
    there = Open(place.link(mode))
    try:
        yield there
    finally:
        there.close()
