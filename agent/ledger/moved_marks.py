"""The marks of a ledger that was moved: neither such a ledger nor a half-filled one may be opened."""

from collections.abc import Mapping

from agent.ledger.ledger_errors import Code, LedgerError

MOVED_TO = "moved_to"
"""The key of the place to which a ledger was moved."""
UNFINISHED = "unfinished_move_from"
"""The key of the place from which a move did not end."""
MARKS = (MOVED_TO, UNFINISHED)


def refuse(facts: Mapping[str, str], shown: str) -> None:
    """Raise LedgerError MOVED if the single facts of a ledger have such a mark."""
    why = sentence(facts, shown)
    if why:
        raise LedgerError(Code.MOVED, why)


def sentence(facts: Mapping[str, str], shown: str) -> str:
    """Return why a ledger with these single facts may not be opened; empty without such a mark."""
    if MOVED_TO in facts:
        return (
            f"{shown} was moved to {facts[MOVED_TO]}: what was recorded since is there; write that place under "
            "[ledger], or move it back with `gpubid ledger move`"
        )
    if UNFINISHED in facts:
        return (
            f"a move from {facts[UNFINISHED]} to {shown} was broken off: end it with the same "
            "`gpubid ledger move`, run again there"
        )
    return ""
