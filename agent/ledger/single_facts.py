"""The keys of the ledger's single facts, which are texts in one table."""

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


def notified_text(event_id: int) -> str:
    """Return the value of `NOTIFIED` for an event; 0 stands before the first."""
    return f"{_EVENT}{event_id}"


def notified_of(text: str) -> int:
    """Return the event of a value of `NOTIFIED`."""
    return int(text.removeprefix(_EVENT))
