"""The meaning of an answer: done, refused, throttled, or no proof at all.

Invariants:
1. A refusal is proof only with a code from the closed list of its route, at a status that code is known with.
2. A 401, and a 404 that says the session is over, refuse the key with or without a code, unless they claim success.
3. Every other answer to a write is Ambiguous: an HTML page, a 403 without a code, any 5xx, or a body without a boolean
   `success`.
4. A 429 in any of its shapes proves that nothing was done.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

import msgspec

from agent.markets import hints, market_errors, text, transport

AUTH = "auth_error"
QUOTA = "search_quota_exceeded"
QUEUED = "resources_unavailable"
_TOO_MANY = 429
_UNAUTHORIZED = 401
_NOT_FOUND = 404


class Route(Enum):
    """The endpoints with different refusals."""

    CREATE = "create"
    REBID = "change_bid"
    STATE = "state"
    DESTROY = "destroy"
    KEYS = "keys"


_REFUSED = frozenset({200, 400, 403, 404, 410})
_MISSING = frozenset({200, 400, 404, 410})
_AUTH = frozenset({401, 403, 404})

_CODES: dict[Route, dict[str, frozenset[int]]] = {
    Route.CREATE: {
        "invalid_args": _REFUSED,
        "invalid_price": _REFUSED,
        "no_ssh_key_for_vm": frozenset({200, 400}),
        "no_such_ask": _MISSING,
        "insufficient_credit": frozenset({200, 400, 402}),
        "spend_rate_limit": frozenset({200, 400, 403}),
    },
    Route.REBID: {
        "invalid_args": _REFUSED,
        "invalid_price": _REFUSED,
        "insufficient_credit": frozenset({200, 400, 402}),
        "no_such_instance": _MISSING,
    },
    Route.STATE: {
        "invalid_args": _REFUSED,
        "missing_billing": frozenset({200, 400}),
        "label_too_long": frozenset({200, 400}),
        "insufficient_credit": frozenset({200, 400, 402}),
        "no_such_instance": _MISSING,
    },
    Route.DESTROY: {
        "no_such_instance": _MISSING,
        "not_found": _MISSING,
    },
    Route.KEYS: {
        "invalid_args": _REFUSED,
        "no_ssh_key": frozenset({200, 400}),
        "no_such_instance": _MISSING,
    },
}

_PLACE = re.compile(r"error \d{1,4}/\d{1,6}:\s*", re.IGNORECASE)
"""The words before many sentences of the market: the status, and a line of its own program."""
_OFFER_GONE = "no_such_ask"
_GONE = frozenset({"no_such_instance", "not_found"})
_ADVICE = {
    "invalid_args": "vast does not take this request; report it with this sentence",
    "invalid_price": "the price is out of vast's range of $0.001 to $128 per hour",
    "no_ssh_key_for_vm": "add an SSH key to the account",
    "no_ssh_key": "vast read no key in the request; report it with this sentence",
    "no_such_ask": "the offer is gone; another is chosen",
    "spend_rate_limit": "new accounts may spend little; verify the e-mail address or wait",
    "missing_billing": "add billing details to the account",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """A write's answer, as far as it is readable: the market's own word and its code."""

    status: int
    success: bool | None
    code: str
    message: str
    fields: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.status} {self.code or 'without a code'}{': ' if self.message else ''}{self.message}"


def answer(reply: transport.Reply) -> Answer:
    """Return the meaning of an answer; a body that is not a JSON object has none."""
    try:
        body = msgspec.json.decode(reply.body)
    except (msgspec.DecodeError, RecursionError):
        body = None
    fields = body if isinstance(body, dict) else {}
    success = fields.get("success")
    message = next((fields[key] for key in ("msg", "message", "detail") if isinstance(fields.get(key), str)), "")
    code = fields.get("error")
    return Answer(
        reply.status,
        success if isinstance(success, bool) else None,
        text.clean(code, 64) if isinstance(code, str) else "",
        text.clean(message),
        fields,
    )


def is_throttled(reply: transport.Reply) -> bool:
    """Return whether the market refused because of too many calls."""
    return reply.status == _TOO_MANY


def reopening(reply: transport.Reply, now: datetime) -> datetime | None:
    """Return when to call again, the latest of the market's hints, or None without a hint."""
    fields = answer(reply).fields
    instants = (
        hints.after(reply.headers.get("Retry-After"), now),
        hints.after(fields.get("retry_after"), now),
        hints.at(reply.headers.get("X-RateLimit-Reset"), now),
    )
    return max((hint for hint in instants if hint is not None), default=None)


def check_write(route: Route, reply: transport.Reply) -> Answer:
    """Return the answer of a write that the market confirms, or of a start that it queued.

    Raises: Rejected, OutOfFunds, NotFound, Unauthorized on proof; Ambiguous on anything else.
    """
    said = answer(reply)
    if _is_key_refused(said) and said.success is not True and not instance_id(said):
        raise unauthorized(said, is_proven=not reply.looks_like_page)
    if reply.is_ok and said.success is True:
        return said
    if reply.is_ok and said.success is None:
        raise market_errors.Ambiguous(
            f"vast answered {reply.status} without saying whether it was done; its listing shows what was done."
        )
    if route is Route.STATE and reply.is_ok and said.code == QUEUED:
        return said
    if reply.status in _CODES[route].get(said.code, ()):
        raise _proof(said)
    if route is Route.CREATE and reply.is_ok and instance_id(said):
        left = instance_id(said)
        raise market_errors.Rejected(
            said.code or "bid_too_low", f"vast left {left} stopped, billing its disk ({said}).", left
        )
    raise market_errors.Ambiguous(f"vast answered {said}; its listing shows whether it was done.")


def check_read(reply: transport.Reply, *, is_of_instance: bool = False) -> bytes:
    """Return the body of a read that succeeded.

    Raises: Unauthorized, NotFound (by the market's code, about one instance only), Malformed (our question was
        refused), Unavailable.
    """
    if reply.is_ok:
        return reply.body
    said = answer(reply)
    if _is_key_refused(said):
        raise unauthorized(said, is_proven=not reply.looks_like_page)
    if is_of_instance and said.code in _GONE and reply.status in _MISSING:
        raise market_errors.NotFound(f"vast has no such instance ({said}).")
    if reply.status == 400:  # noqa: PLR2004
        raise market_errors.Malformed(f"vast did not take our question ({said}); check the workload's query.")
    raise market_errors.Unavailable(f"vast answered {said}; try again later.")


def check_success(success: object, what: str) -> None:
    """Return unless the market refused the question with status 200.

    Raises:
        Malformed: `success` is false; the answer's list may be empty for that reason alone.
    """
    if success is False:
        raise market_errors.Malformed(f"vast answered {what} with success false; it is not taken for an empty one.")


def unauthorized(said: Answer, *, is_proven: bool = True) -> market_errors.Unauthorized:
    """Return the error for an answer that refuses the key."""
    sentence = f"vast does not take the key ({said}); check the credential and its permissions."
    return market_errors.Unauthorized(sentence, is_proven=is_proven)


def _proof(said: Answer) -> market_errors.MarketError:
    if said.code in _GONE:
        return market_errors.NotFound(f"vast has no such instance ({said}).")
    leftover = instance_id(said)
    if said.code == "insufficient_credit":
        return market_errors.OutOfFunds(said.code, f"The account lacks credit ({said}); add some.", leftover)
    # A stale offer is also refused as a bad argument; its sentence shows which of the two it is.
    reason = _OFFER_GONE if said.code == "invalid_args" and _OFFER_GONE in said.message else said.code
    return market_errors.Rejected(reason, f"vast refused ({said}); {_ADVICE[reason]}.", leftover)


def instance_id(said: Answer) -> str:
    """Return the instance id in an answer to a create, or an empty text."""
    number = said.fields.get("new_contract")
    if isinstance(number, str) and number.isascii() and number.isdigit() and len(number) < 20:  # noqa: PLR2004
        number = int(number)
    is_id = isinstance(number, int) and not isinstance(number, bool) and number > 0
    return str(number) if is_id else ""


def _is_key_refused(said: Answer) -> bool:
    if said.status == _UNAUTHORIZED or (said.code == AUTH and said.status in _AUTH):
        return True
    words = _PLACE.sub("", said.message, 1).casefold()
    return said.status == _NOT_FOUND and words.startswith(("invalid user key", "session expired"))
