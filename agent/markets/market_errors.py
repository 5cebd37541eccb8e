"""Errors between us and a market; each error says what is known about the request.

Invariants:
1. `Rejected` and its kin mean proof: the market did not do it. Everything that is not proof is `Ambiguous` for a write.
2. A read that fails is ignorance: `Throttled`, `Unavailable` or `Malformed`, never an empty answer.
"""

from datetime import datetime


class MarketError(Exception):
    """A market call failed. `code` is for programs, the text says what the operator can do."""

    code = "market_error"


class Throttled(MarketError):
    """Refused because of too many calls; nothing was done. `until` is when to call again, if the market said it."""

    code = "throttled"

    def __init__(self, sentence: str, until: datetime | None = None) -> None:
        super().__init__(sentence)
        self.until = until


class Unavailable(MarketError):
    """A read got no usable answer: connection, deadline, 5xx or an HTML page."""

    code = "unavailable"


class Malformed(MarketError):
    """The answer of a read does not have the documented shape."""

    code = "malformed"


class Rejected(MarketError):
    """The market refused a write, and its code proves it. `leftover_id` is an instance that it left nevertheless."""

    code = "rejected"

    def __init__(self, reason: str, sentence: str, leftover_id: str = "") -> None:
        super().__init__(sentence)
        self.reason = reason
        self.leftover_id = leftover_id


class NotFound(MarketError):
    """The market says by its own code that there is no such instance."""

    code = "not_found"


class Unauthorized(MarketError):
    """The key is missing, unknown or may not do this. `is_proven` is false if a proxy may have written the answer."""

    code = "unauthorized"

    def __init__(self, sentence: str, *, is_proven: bool = True) -> None:
        super().__init__(sentence)
        self.is_proven = is_proven


class OutOfFunds(Rejected):
    """The market refused a write because the account lacks credit."""

    code = "out_of_funds"


class Unreachable(Rejected):
    """No connection could be made for a write, so nothing of it was sent."""

    code = "unreachable"

    def __init__(self, sentence: str) -> None:
        super().__init__("unreachable", sentence)


class Withheld(Rejected):
    """This daemon may not send any more, so nothing of a write left."""

    code = "withheld"

    def __init__(self, sentence: str) -> None:
        super().__init__("withheld", sentence)


class Ambiguous(MarketError):
    """A write was sent, and its outcome is not known."""

    code = "ambiguous"


class Unfinished(Ambiguous):
    """A write that the market took and carries out later; only its listing shows when it is done."""

    code = "unfinished"
