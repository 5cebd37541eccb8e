"""The keys of the ledger's single facts, which are texts in one table."""

import datetime as dt
from collections.abc import Iterator

from agent.ledger.tables.spend_rows import MONTH_SEED

ACCOUNT = "account/"
NO_ACCOUNT_ID = "untold"
"""The account of a market that does not name it. The first named account replaces it."""
WAS_LOST = "was_lost"
"""The key of a lost ledger's mark. While it exists, the markets' earlier charges are unknown, except where counted
again."""
COUNTED_AGAIN = "counted_again/"
LOST_RUNS = "lost_runs"
"""The key of a mark that is never removed: earlier tables of this fleet were lost, so buckets may have runs that these
tables do not have."""
ABSENT_UNTIL = "absent_until"
REHEARSED_UNTIL = "rehearsed_until"
"""The key of the end of the rehearsal that wrote this ledger. Nothing bills after it."""
HAND_DEMAND = "hand_demand:"
"""The prefix of a key that ends with a workload's name: the slots that a person wants, and until when."""
REFERENCE_DLPERF = "reference_dlperf/"
"""The prefix of a key that ends with a number of GPUs, a slash and their model: the last DLPerf of such a slice that
was seen, if a deadline counts its hours on it."""
FIRST_SEEN = "first_seen/"
"""The prefix of a key that ends with a workload's name: when a configuration first had it."""
SHORT_STARTS, ALERTED = "short_starts", "!"
NOTIFIED = "notified"
"""The key of the last event whose notifications were sent. A daemon that takes over continues after it."""
_EVENT = "event "
_MARK = "INSERT INTO meta (key, value) VALUES (:mark, '1') ON CONFLICT (key) DO UPDATE SET value = '1'"
_FORGET = "DELETE FROM meta WHERE key LIKE :markets"
# This is counted again with the rest of the bill.
_RECOUNT = "DELETE FROM spend WHERE lease_id = :lease AND day >= :first"


def notified_text(event_id: int) -> str:
    """Return the value of `NOTIFIED` for an event; 0 stands before the first."""
    return f"{_EVENT}{event_id}"


def notified_of(text: str) -> int:
    """Return the event of a value of `NOTIFIED`."""
    return int(text.removeprefix(_EVENT))


def marks_of_loss(at: dt.datetime) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the statements that mark a ledger as one whose spend and runs of late are unknown, each with its values.

    Both engines understand them. Until each market's bill of this month was read, nothing is paid there; what the
    ledger lacks is counted from the bill.
    """
    yield from ((_MARK, {"mark": mark}) for mark in (WAS_LOST, LOST_RUNS))
    yield _FORGET, {"markets": COUNTED_AGAIN + "%"}
    yield _RECOUNT, {"lease": MONTH_SEED, "first": at.astimezone(dt.UTC).date().replace(day=1).isoformat()}
