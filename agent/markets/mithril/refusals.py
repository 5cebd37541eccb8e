"""The meaning of an answer: done, refused, throttled, or no proof at all.

Invariants:
1. A refusal is proof only as a JSON object with a `detail`, as the vendor's document describes its errors. A status
   alone proves nothing, since proxies answer with the same; nor does the "Not Found" of a path without a route.
2. Every other answer to a write is Ambiguous, also any 5xx and any page.
3. A 429 in any shape proves that nothing was done.

The document describes 422 alone. The meanings of 400, 401, 402, 403, 404 and 409 are assumed from its framework; the
vendor's own client also knows a 400 for a limit below the minimum and for a name that is used.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from agent.markets import hints, market_errors, text, tolerant_rows, transport

_BAD, _UNAUTHORIZED, _PAY, _FORBIDDEN, _MISSING = 400, 401, 402, 403, 404
_CONFLICT, _UNPROCESSABLE, _TOO_MANY = 409, 422, 429
_NO_ROUTE = "not found"
"""The framework's own sentence for a path that nothing serves."""
_PRICE = "limit_price"
_LIMIT = re.compile(r"\blimit[ _]price\b.*\b(below|low|minimum)", re.IGNORECASE)
_NAME = re.compile(r"\bname\b.*\b(used|taken|exists?|unique)\b", re.IGNORECASE)
_PROJECT = re.compile(r"\bproject\b", re.IGNORECASE)
_MOST_REASONS = 5
_ADVICE = {
    "bid_too_low": "the next bid is made at the price to win",
    "forbidden": "the key or its quota does not allow it; another offer is chosen",
    "wrong_state": "its state does not allow that; the next listing shows its state",
    "invalid_args": "mithril does not take this request; report it with this sentence",
    "not_found": "it names a project, region or instance type that mithril does not know",
    "refused": "another offer is chosen",
}


class Route(Enum):
    """The writes with different refusals."""

    PLACE = "place"
    CHANGE = "change"


@dataclass(frozen=True, slots=True)
class Answer:
    """The market's word on a refusal, as far as it is readable; `fields` are the names that a 422 complains about."""

    status: int
    detail: str
    fields: frozenset[str]

    @property
    def is_proof(self) -> bool:
        """Whether the market itself wrote the answer."""
        return bool(self.detail) and not (self.status == _MISSING and self.detail.casefold() == _NO_ROUTE)

    def __str__(self) -> str:
        return f"HTTP {self.status}" + (f": {self.detail}" if self.detail else "")


def answer(reply: transport.Reply) -> Answer:
    """Return the meaning of an answer.

    A reason is quoted by its field and message alone: the framework repeats the rejected input, which may hold secrets.
    """
    try:
        detail = tolerant_rows.document(reply.body, "The refusal").get("detail")
    except market_errors.Malformed:
        return Answer(reply.status, "", frozenset())
    if isinstance(detail, str):
        return Answer(reply.status, text.clean(detail), frozenset())
    reasons = [one for one in detail if isinstance(one, dict)] if isinstance(detail, list) else []
    said = "; ".join(_reason(one) for one in reasons[:_MOST_REASONS])
    places = [one.get("loc") for one in reasons]
    fields = frozenset(str(part) for place in places if isinstance(place, list) for part in place)
    return Answer(reply.status, text.clean(said), fields)


def is_throttled(reply: transport.Reply) -> bool:
    """Return whether the market refused because of too many calls."""
    return reply.status == _TOO_MANY


def reopening(reply: transport.Reply, now: datetime) -> datetime | None:
    """Return when to call again, by `Retry-After`; None if the market does not say."""
    return hints.after(reply.headers.get("Retry-After"), now)


def check_read(reply: transport.Reply, *, is_of_one: bool = False) -> bytes:
    """Return the body of a read that succeeded.

    Raises: Unauthorized, NotFound (the market's own word about one bid or one price), Malformed (our question was
        refused), Unavailable.
    """
    if reply.is_ok:
        return reply.body
    said = answer(reply)
    if _is_key_refused(said):
        raise _unauthorized(said, reply)
    if is_of_one and said.is_proof and said.status == _MISSING:
        raise market_errors.NotFound(f"mithril has no such thing ({said}).")
    if said.is_proof and said.status in {_BAD, _UNPROCESSABLE}:
        raise market_errors.Malformed(f"mithril did not take our question ({said}); report it with this sentence.")
    if said.is_proof and said.status == _MISSING and _PROJECT.search(said.detail):
        sentence = f"mithril does not know the project ({said}): set [markets.mithril] project to an id of its console."
        raise market_errors.Unavailable(sentence)
    raise market_errors.Unavailable(f"mithril answered {said}; try again later.")


def check_write(route: Route, reply: transport.Reply) -> bytes:
    """Return the body of the answer to a write that the market confirms.

    Raises: Rejected, OutOfFunds, NotFound, Unauthorized on proof; Ambiguous on anything else.
    """
    if reply.is_ok:
        return reply.body
    said = answer(reply)
    if said.status == _UNAUTHORIZED or (said.status == _FORBIDDEN and said.is_proof and route is Route.CHANGE):
        raise _unauthorized(said, reply)
    if said.is_proof and said.status == _MISSING and route is Route.CHANGE:
        raise market_errors.NotFound(f"mithril has no such bid ({said}).")
    if said.is_proof and said.status == _PAY:
        raise market_errors.OutOfFunds("out_of_funds", f"The account cannot pay ({said}); settle its bill.")
    reason = _code(said) if said.is_proof and not _is_name_taken(route, said) else ""
    if not reason:
        raise market_errors.Ambiguous(f"mithril answered {said}; its listing shows whether it was done.")
    raise market_errors.Rejected(reason, f"mithril refused ({said}); {_ADVICE[reason]}.")


def _is_name_taken(route: Route, said: Answer) -> bool:
    """Return whether the refusal may name our own bid: each name is sent once, so its first copy was carried out."""
    return route is Route.PLACE and said.status in {_BAD, _CONFLICT} and _NAME.search(said.detail) is not None


def _code(said: Answer) -> str:
    if said.status in {_BAD, _UNPROCESSABLE} and (_PRICE in said.fields or _LIMIT.search(said.detail)):
        return "bid_too_low"
    if said.status == _UNPROCESSABLE:
        return "invalid_args"
    reasons = {_BAD: "refused", _FORBIDDEN: "forbidden", _MISSING: "not_found", _CONFLICT: "wrong_state"}
    return reasons.get(said.status, "")


def _reason(one: dict[str, Any]) -> str:
    place = one.get("loc")
    path = ".".join(str(part)[:40] for part in place[:4]) if isinstance(place, list) else ""
    return f"{path}: {str(one.get('msg') or 'refused')[:120]}" if path else str(one.get("msg") or "refused")[:120]


def _is_key_refused(said: Answer) -> bool:
    return said.status == _UNAUTHORIZED or (said.status == _FORBIDDEN and said.is_proof)


def _unauthorized(said: Answer, reply: transport.Reply) -> market_errors.Unauthorized:
    sentence = f"mithril does not take the key ({said}); check the credential and its project."
    return market_errors.Unauthorized(sentence, is_proven=not reply.looks_like_page)
