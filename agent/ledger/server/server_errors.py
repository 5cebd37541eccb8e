"""The errors of PostgreSQL in the ledger's words, by SQLSTATE. No message is matched: servers speak many languages."""

import psycopg
from sqlalchemy import exc

from agent.ledger.ledger_errors import Code, LedgerError

UNWRITABLE = ("08", "25", "28", "3D", "40", "53", "55", "57", "58", "42501")
"""Connection, read-only or wrong transaction, refused role, no such database, conflict of transactions, no resources,
a locked object, an operator's hand or a shutdown, the server's own disk, a missing right."""
BROKEN_RULE = ("21", "22", "23", "42601", "42P18", "42804", "42883")
"""A value that does not fit, a constraint, and statements that no release should have sent."""
DAMAGED = ("XX001", "XX002", "42P01", "42703", "3F", "42P07", "42710")
"""A damaged table or index; no such table, column or schema, or one that is of something else: no ledger of ours."""
_CHECK = "`gpubid doctor` checks the server; until then nothing is paid for"


class NotCommitted(Exception):
    """A commit ended without an error, but it is not certain that it is durable."""


def state_of(error: BaseException) -> str:
    """Return the SQLSTATE of an error of the driver, or nothing if the server did not send one."""
    cause = error.orig if isinstance(error, exc.StatementError) and error.orig is not None else error
    return getattr(cause, "sqlstate", None) or ""


def in_our_words(error: Exception, shown: str) -> LedgerError:
    """Return the ledger's error for an error of the driver or of SQLAlchemy; `shown` is the address for messages."""
    cause = error.orig if isinstance(error, exc.StatementError) and error.orig is not None else error
    state, why = state_of(error), _line(cause)
    if isinstance(cause, LedgerError):
        return cause
    if isinstance(cause, NotCommitted):
        return LedgerError(
            Code.UNWRITABLE,
            f"{shown} did not confirm a commit ({why}): look at its synchronous replica; until a commit is confirmed "
            "nothing is paid for",
        )
    is_answer_lacking = not state and isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError)
    if is_answer_lacking or state.startswith(UNWRITABLE):
        return LedgerError(Code.UNWRITABLE, f"{shown} cannot be written ({why}): {_CHECK}")
    if not isinstance(cause, psycopg.Error) or not state or state.startswith(BROKEN_RULE):
        return LedgerError(Code.CONFLICT, f"the ledger refused a value ({why}): this is a defect, report it")
    if not state.startswith(DAMAGED):
        # A proxy or an extension may send any state. It says nothing about the tables, and may pass.
        return LedgerError(Code.UNWRITABLE, f"{shown} failed in an unknown way ({state}, {why}): {_CHECK}")
    return LedgerError(
        Code.CORRUPT,
        f"{shown} is damaged or no ledger ({why}): restore the database from its backup, or name another schema",
    )


def unreached(error: psycopg.Error, shown: str) -> str:
    """Return the sentence of a session that could not begin: no answer, or a refused role or database."""
    ours = in_our_words(error, shown)
    is_answer_lacking = ours.code is Code.UNWRITABLE
    return f"{shown} cannot be reached ({_line(error)}): {_CHECK}" if is_answer_lacking else ours.sentence


def _line(error: BaseException) -> str:
    """Return the first line of an error. The driver's errors name hosts, databases and roles, but no password."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
