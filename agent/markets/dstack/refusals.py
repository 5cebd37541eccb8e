"""The meaning of an answer: done, refused, or no proof at all.

Invariants:
1. A refusal is proof only as a JSON object whose `detail` has the server's own `msg`: alone, in a list, or with the
   place in the request. A status alone proves nothing, nor does the "Not Found" of a path without a route.
2. Every other answer to a write is Ambiguous, also any 5xx and any page.
3. An order whose name is in use is Ambiguous: each name is sent once, so the run of that name may be ours.

Seen on a server of version 0.22.5: 403 for an unknown token, 404 for an unknown project, 400 with the code
`resource_not_exists` for an unknown run or fleet, 400 for a name in use, 422 for a body of a wrong shape.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent.markets import hints, market_errors, text, tolerant_rows, transport

_BAD, _UNAUTHORIZED, _FORBIDDEN, _MISSING, _CONFLICT = 400, 401, 403, 404, 409
_UNPROCESSABLE, _TOO_MANY = 422, 429
NO_SUCH = "resource_not_exists"
_NAME_IN_USE = ("resource has been changed", "failed to apply plan", "cannot override active run")
_NO_COMMAND, _NO_IMAGE = "could not determine what command", "error pulling configuration for image"
"""The server asks the image's registry at an order without a command."""
_OF_THE_IMAGE = ("manifest unknown", "not found", "404", "unauthorized", "401", "denied")
"""Words of a registry that knows no such image, or does not give it. It may also have been away."""
_MOST_REASONS = 3


@dataclass(frozen=True, slots=True)
class Answer:
    """The server's word on a refusal, as far as it is readable; `code` is its own, empty if it gave none."""

    status: int
    sentence: str
    code: str

    @property
    def is_proof(self) -> bool:
        """Whether the server itself wrote the answer."""
        return bool(self.sentence)

    @property
    def is_unknown(self) -> bool:
        """Whether it says that there is no such run, fleet or instance."""
        return self.code == NO_SUCH

    def __str__(self) -> str:
        return f"HTTP {self.status}" + (f": {self.sentence}" if self.sentence else "")


def answer(reply: transport.Reply) -> Answer:
    """Return the meaning of a refusal. Reasons are quoted by their place and message: the input may hold secrets."""
    try:
        detail = tolerant_rows.document(reply.body, "The refusal").get("detail")
    except market_errors.Malformed:
        return Answer(reply.status, "", "")
    reasons = [one for one in (detail if isinstance(detail, list) else [detail]) if isinstance(one, dict)]
    said = "; ".join(_sentences(reasons))
    code = next((str(one["code"]) for one in reasons if one.get("code")), "")
    return Answer(reply.status, text.clean(said), text.clean(code, 64))


def _sentences(reasons: list[dict[str, Any]]) -> Iterator[str]:
    for one in reasons[:_MOST_REASONS]:
        place, said = one.get("loc"), one.get("msg")
        if isinstance(said, str) and said:
            path = ".".join(str(part)[:40] for part in place[:6]) if isinstance(place, list) else ""
            yield f"{path}: {said[:160]}" if path else said[:160]


def is_throttled(reply: transport.Reply) -> bool:
    """Return whether a proxy before the server refused because of too many calls."""
    return reply.status == _TOO_MANY


def reopening(reply: transport.Reply, now: datetime) -> datetime | None:
    """Return when to call again, by `Retry-After`; None if the answer does not say."""
    return hints.after(reply.headers.get("Retry-After"), now)


def check_read(reply: transport.Reply) -> bytes:
    """Return the body of a read that succeeded.

    Raises: Unauthorized, NotFound (the server's own word about one run or fleet), Malformed (our question was
        refused), Unavailable.
    """
    if reply.is_ok:
        return reply.body
    said = answer(reply)
    if _is_token_refused(said):
        raise _unauthorized(said, reply)
    if said.is_proof and said.is_unknown:
        raise market_errors.NotFound(f"dstack has no such thing ({said}).")
    if said.is_proof and said.status == _MISSING:
        sentence = f"dstack does not know the project ({said}): set [markets.dstack] project to one of its projects."
        raise market_errors.Unavailable(sentence)
    if said.is_proof and said.status in {_BAD, _UNPROCESSABLE}:
        raise market_errors.Malformed(f"dstack did not take our question ({said}); report it with this sentence.")
    raise market_errors.Unavailable(f"dstack answered {said}; look at the log of its server.")


def check_write(reply: transport.Reply) -> bytes:
    """Return the body of the answer to a write that the server confirms.

    Raises: Rejected, NotFound, Unauthorized on proof; Ambiguous on anything else.
    """
    if reply.is_ok:
        return reply.body
    said = answer(reply)
    if _is_token_refused(said):
        raise _unauthorized(said, reply)
    is_known = said.is_proof and said.status in {_BAD, _MISSING, _CONFLICT, _UNPROCESSABLE}
    if not is_known or any(words in said.sentence.casefold() for words in _NAME_IN_USE):
        raise market_errors.Ambiguous(f"dstack answered {said}; its listing shows whether it was done.")
    if said.is_unknown:
        raise market_errors.NotFound(f"dstack has no such thing ({said}).")
    raise market_errors.Rejected(_reason(said), f"dstack refused ({said}).")


def _reason(said: Answer) -> str:
    words = said.sentence.casefold()
    if _NO_COMMAND in words or (_NO_IMAGE in words and any(each in words for each in _OF_THE_IMAGE)):
        return "bad_image"
    return "invalid_args" if said.status == _UNPROCESSABLE else "refused"


def _is_token_refused(said: Answer) -> bool:
    return said.status == _UNAUTHORIZED or (said.status == _FORBIDDEN and said.is_proof)


def _unauthorized(said: Answer, reply: transport.Reply) -> market_errors.Unauthorized:
    sentence = f"dstack does not take the token ({said}); check the credential and the user's role in the project."
    return market_errors.Unauthorized(sentence, is_proven=not reply.looks_like_page)
