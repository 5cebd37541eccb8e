"""The move of a whole ledger between a file and a server, while no daemon runs.

1. Both places are locked throughout. The source is only marked, never changed otherwise, and kept.
2. At no instant can both be opened: the target stays marked as unfinished until the source is marked as moved. A move
   that was broken off is run again, from the same source.
"""

import datetime as dt
import socket

import sqlalchemy as sa

from agent.ledger import offline, portable, table_copy
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
        raise offline.missing(source)
    with offline.held(source), offline.held(target):
        if finished := _finished(source, target):
            return finished
        offline.refuse_empty(source)
        with offline.opened(source) as from_there, offline.opened(_empty(target, at)) as to_there:
            return _moved(source, target, from_there, to_there)


def _finished(source: Storage, target: Storage) -> dict[str, TableFigures] | None:
    """End a move that broke off in its last step, when only the mark of the whole copy was left; None if none did."""
    if target.is_missing():
        return None
    source.prepare()
    target.prepare()
    marks = offline.facts(source).get(MOVED_TO), offline.facts(target).get(UNFINISHED)
    if marks != (_known_anywhere(target), _known_anywhere(source)):
        return None
    with offline.opened(source) as from_there, offline.opened(target) as to_there:
        before: dict[str, TableFigures] = from_there.run(table_copy.figures)
        if table_copy.differences(before, to_there.run(table_copy.figures)):
            return None
        to_there.run(_unmark)
    return before


def _moved(
    source: Storage, target: Storage, from_there: offline.Open, to_there: offline.Open
) -> dict[str, TableFigures]:
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
    to_there.run(_unmark)
    return before


def _unmark(link: sa.Connection) -> None:
    link.execute(sa.delete(schema.meta).where(schema.meta.c.key == UNFINISHED)).close()


def _mark(link: sa.Connection, key: str, value: str) -> None:
    link.execute(portable.stored(schema.meta), [{"key": key, "value": value}]).close()


def _known_anywhere(place: Storage) -> str:
    """Return a place as a person on another box can find it: a file with its machine and whole path."""
    return place.shown if place.is_served else f"{socket.gethostname()}:{place.path.absolute()}"


def _empty(target: Storage, at: dt.datetime) -> Storage:
    """Return the target with empty tables. A ledger there that was moved away, or half copied, is renamed first."""
    if not target.is_missing():
        target.prepare()
        facts = offline.facts(target)
        if facts and not facts.keys() & {MOVED_TO, UNFINISHED}:
            raise LedgerError(Code.BAD_BACKUP, f"{target.shown} has a ledger already: name an empty place")
        if facts:
            target.put_aside(at)
    target.prepare()
    return target
