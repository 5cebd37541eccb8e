"""GraphQL, which RunPod ends in early 2027: one request, and what its answer proves.

Invariants:
1. A schema that lost a field or a mutation, and a route that is gone, are `Retired`: no fault, and reported once.
2. An answer with data and an error lacks a part. Whether that part is needed is for the question to say; a missing
   part is unknown, never none.
3. An error in the body is a refusal only by a code or a sentence from the closed lists; anything else of a write is
   Ambiguous. A bare 403 refuses no key: proxies answer so as well.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from agent.markets import market_errors, text, tolerant_rows, transport
from agent.markets.runpod import refusals

_VALIDATION = "GRAPHQL_VALIDATION_FAILED"
_NO_CAPACITY = "SUPPLY_CONSTRAINT"
_BAD, _MISSING, _GONE = 400, 404, 410
_MOST_ERRORS = 3
"""Errors of one answer that are reported."""


class Retired(Exception):
    """The market removed this question; the text says what is missing."""


class NotThere(Retired):
    """There is no such route. This is not the announced end (410), and a proxy may answer the same."""


class Answered(NamedTuple):
    """The data of a question, its answer, and the market's errors about parts of the data; empty without any."""

    data: dict[str, Any]
    reply: transport.Reply
    errors: str

    def lacking(self, part: str) -> market_errors.Unavailable:
        """Return the error for a part that is needed and missing."""
        why = f" ({self.errors})" if self.errors else ""
        return market_errors.Unavailable(f"runpod's GraphQL answered without {part}{why}; try again later.")


class _Extensions(msgspec.Struct):
    code: str = ""


class _Error(msgspec.Struct):
    message: str = ""
    path: list[str | int] | None = None
    extensions: _Extensions | None = None


class _Body(msgspec.Struct):
    data: dict[str, Any] | None = None
    errors: list[_Error] | None = None


def body(query: str, variables: Mapping[str, Any]) -> bytes:
    """Return the body of a request; values are variables, never part of the text."""
    return msgspec.json.encode({"query": query, "variables": dict(variables)})


def answer(reply: transport.Reply) -> Answered:
    """Return the data of a question, with the errors about parts of it.

    Raises: Retired, Unauthorized, Unavailable (also if there is no data at all), Malformed.
    """
    body = _decoded(reply)
    _refuse_retired(reply, body)
    _refuse_key(reply, body)
    if not reply.is_ok:
        raise market_errors.Unavailable(f"runpod answered HTTP {reply.status} on GraphQL; try again later.")
    if body is None:
        raise market_errors.Malformed("runpod's GraphQL answer cannot be read; try again later.")
    errors = "; ".join(_placed(error) for error in (body.errors or [])[:_MOST_ERRORS])
    if body.data is None or (body.errors and all(part is None for part in body.data.values())):
        raise market_errors.Unavailable(f"runpod answered a question with an error ({_said(body)}); try again later.")
    return Answered(body.data, reply, text.clean(errors))


def _placed(error: _Error) -> str:
    """Return the message of an error with the part of the data that it is about."""
    where = ".".join(str(part) for part in error.path or ())
    return f"{where}: {error.message}" if where else error.message


def done(reply: transport.Reply) -> dict[str, Any]:
    """Return the data of a write that the market confirms.

    Raises: Retired (nothing was done), Rejected, OutOfFunds, NotFound, Unauthorized on proof; Ambiguous otherwise.
    """
    body = _decoded(reply)
    _refuse_retired(reply, body)
    if body is not None and body.errors and any(part is not None for part in (body.data or {}).values()):
        raise market_errors.Ambiguous(
            f"runpod answered a write with data and an error ({_said(body)}); its listing shows what was done."
        )
    _refuse_key(reply, body)
    if not reply.is_ok or body is None:
        raise market_errors.Ambiguous(
            f"runpod answered HTTP {reply.status} on GraphQL; its listing shows what was done."
        )
    if body.errors:
        raise _refusal(body)
    if body.data is None:
        raise market_errors.Ambiguous("runpod answered a write with no data; its listing shows whether it was done.")
    return body.data


def _refusal(body: _Body) -> market_errors.MarketError:
    said = _said(body)
    words = said.casefold()
    if "insufficient balance" in words:
        return market_errors.OutOfFunds("out_of_funds", f"The account lacks credit ({said}); add some.")
    if "pod not found" in words:
        return market_errors.NotFound(f"runpod has no such pod ({said}).")
    if "outbid" in words:
        return market_errors.Rejected(
            "bid_too_low", f"runpod refused the bid ({said}); a higher one or another offer is due."
        )
    if "cannot resume" in words:
        return market_errors.Rejected("wrong_state", f"runpod refused ({said}); the next listing shows its state.")
    reason = refusals.of_words(said)
    if not reason and _NO_CAPACITY in _codes(body):
        reason = "no_capacity"
    if reason:
        return market_errors.Rejected(reason, f"runpod refused ({said}).")
    return market_errors.Ambiguous(f"runpod answered with an error ({said}); its listing shows whether it was done.")


def _decoded(reply: transport.Reply) -> _Body | None:
    try:
        return msgspec.json.decode(reply.body, type=_Body)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        # NaN is not JSON; the rest of the answer is usable.
        return msgspec.convert(tolerant_rows.document(reply.body, "GraphQL's answer"), _Body)
    except (market_errors.Malformed, msgspec.ValidationError, RecursionError):
        return None


def _refuse_retired(reply: transport.Reply, body: _Body | None) -> None:
    if reply.status == _GONE:
        raise Retired(f"GraphQL answers HTTP {reply.status}")
    if reply.status == _MISSING:
        raise NotThere(f"GraphQL answers HTTP {reply.status}")
    is_schema = body is not None and (_VALIDATION in _codes(body) or "cannot query field" in _said(body).casefold())
    if reply.status == _BAD and is_schema and body is not None:
        raise Retired(_said(body))


def _refuse_key(reply: transport.Reply, body: _Body | None) -> None:
    said = refusals.answer(reply)
    if refusals.is_key_refused(said) or _says_unauthorized(body):
        raise refusals.unauthorized(said, is_proven=not reply.looks_like_page)


def _says_unauthorized(body: _Body | None) -> bool:
    return body is not None and _said(body).casefold().startswith("unauthorized")


def _said(body: _Body) -> str:
    return text.clean("; ".join(error.message for error in (body.errors or [])[:_MOST_ERRORS]))


def _codes(body: _Body) -> set[str]:
    return {error.extensions.code for error in body.errors or () if error.extensions is not None}
