"""The meaning of an answer of REST v2: done, refused, throttled, or no proof at all.

Invariants:
1. A refusal is proof only as a problem document whose own status is that of the answer and refuses. A 401 refuses the
   key in any shape, and a 403 only as such a document: proxies answer 403 as well.
2. Every other answer to a write is Ambiguous, also any 5xx and any page.
3. A 429 in any shape proves that nothing was done.

The status codes follow the v2 OpenAPI document. A create that is answered 400 broke a rule or found no capacity; 402 is
an empty account; 409 is an action that does not fit the pod's state.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

import msgspec

from agent.markets import hints, market_errors, text, transport

_CAPACITY = (
    "no longer any instances available",
    "no instances available",
    "no instances currently available",
    "does not have the resources",
    "could not find any pods",
)
_HOST_FULL = "not enough free gpus"
_NOT_SOLD = "no longer offered"
_RESET = re.compile(r"r=0;\s*t=(\d{1,6})")
_BAD, _UNAUTHORIZED, _PAY, _FORBIDDEN, _MISSING = 400, 401, 402, 403, 404
_CONFLICT, _GONE, _UNPROCESSABLE, _TOO_MANY = 409, 410, 422, 429
_ADVICE = {
    "no_capacity": "another offer is chosen",
    "host_full": "it cannot start on its host, and is moved",
    "not_sold": "it is not sold any more",
    "forbidden": "the key's account may not rent from this pool; another is chosen",
    "wrong_state": "its state does not allow that; the next listing shows its state",
    "invalid_args": "runpod does not take this request; report it with this sentence",
    "refused": "another offer is chosen; if all are refused, runpod does not take what the workload asks for",
    "not_found": "it names a template or registry that runpod does not know; fix the workload",
    "route_gone": "runpod removed this route; a newer gpubid is needed",
}


class Route(Enum):
    """The writes with different refusals."""

    CREATE = "create"
    ACTION = "action"


class _Problem(msgspec.Struct):
    title: str = ""
    status: int = 0
    detail: str = ""
    errors: list[str] = []


@dataclass(frozen=True, slots=True)
class Answer:
    """The market's word on a refusal, as far as it is readable."""

    status: int
    detail: str
    is_problem: bool

    def __str__(self) -> str:
        return f"HTTP {self.status}" + (f": {self.detail}" if self.detail else "")


def answer(reply: transport.Reply) -> Answer:
    """Return the meaning of an answer; a problem document counts only if its own status agrees."""
    try:
        problem = msgspec.json.decode(reply.body, type=_Problem, strict=False)
    except (msgspec.DecodeError, RecursionError):
        return Answer(reply.status, "", is_problem=False)
    said = "; ".join([problem.detail or problem.title, *problem.errors[:5]])
    return Answer(reply.status, text.clean(said), is_problem=bool(problem.title) and problem.status == reply.status)


def is_throttled(reply: transport.Reply) -> bool:
    """Return whether the market refused because of too many calls."""
    return reply.status == _TOO_MANY


def reopening(reply: transport.Reply, now: datetime) -> datetime | None:
    """Return when to call again: by `Retry-After`, or when the used windows begin again."""
    windows = [int(seconds) for seconds in _RESET.findall(reply.headers.get("RateLimit", ""))]
    hint = hints.after(reply.headers.get("Retry-After"), now)
    if hint is not None or not windows:
        return hint
    return now + timedelta(seconds=max(windows))


def check_read(reply: transport.Reply, *, is_of_pod: bool = False) -> bytes:
    """Return the body of a read that succeeded.

    Raises: Unauthorized, NotFound (in a problem document, about one pod only), Malformed (our question was refused),
        Unavailable.
    """
    if reply.is_ok:
        return reply.body
    said = answer(reply)
    if is_key_refused(said):
        raise unauthorized(said, is_proven=not reply.looks_like_page)
    if is_of_pod and said.is_problem and said.status == _MISSING:
        raise market_errors.NotFound(f"runpod has no such pod ({said}).")
    if said.status in {_BAD, _UNPROCESSABLE}:
        raise market_errors.Malformed(f"runpod did not take our question ({said}); report it with this sentence.")
    raise market_errors.Unavailable(f"runpod answered {said}; try again later.")


def check_write(route: Route, reply: transport.Reply) -> bytes:
    """Return the body of the answer to a write that the market confirms.

    Raises: Rejected, OutOfFunds, NotFound, Unauthorized on proof; Ambiguous on anything else.
    """
    if reply.is_ok:
        return reply.body
    said = answer(reply)
    if said.status == _UNAUTHORIZED or (said.status == _FORBIDDEN and said.is_problem and route is Route.ACTION):
        raise unauthorized(said, is_proven=not reply.looks_like_page)
    if not said.is_problem:
        raise market_errors.Ambiguous(f"runpod answered {said}; its listing shows whether it was done.")
    if said.status == _MISSING and route is Route.ACTION:
        raise market_errors.NotFound(f"runpod has no such pod ({said}).")
    if said.status == _PAY or "insufficient balance" in said.detail.casefold():
        raise market_errors.OutOfFunds("out_of_funds", f"The account lacks credit ({said}); add some.")
    reason = _reason(said)
    if not reason:
        raise market_errors.Ambiguous(f"runpod answered {said}; its listing shows whether it was done.")
    raise market_errors.Rejected(reason, f"runpod refused ({said}); {_ADVICE[reason]}.")


def is_key_refused(said: Answer) -> bool:
    """Return whether the status of an answer refuses the key."""
    return said.status == _UNAUTHORIZED or (said.status == _FORBIDDEN and said.is_problem)


def unauthorized(said: Answer, *, is_proven: bool = True) -> market_errors.Unauthorized:
    """Return the error for an answer that refuses the key."""
    sentence = f"runpod does not take the key ({said}); check the credential and its permissions."
    return market_errors.Unauthorized(sentence, is_proven=is_proven)


def of_words(detail: str) -> str:
    """Return the refusal that a sentence of the market proves, or nothing."""
    words = detail.casefold()
    if _NOT_SOLD in words:
        return "not_sold"
    if _HOST_FULL in words:
        return "host_full"
    return "no_capacity" if any(part in words for part in _CAPACITY) else ""


def _reason(said: Answer) -> str:
    if said.status == _BAD:
        return of_words(said.detail) or "refused"
    reasons = {
        _FORBIDDEN: "forbidden",
        _MISSING: "not_found",
        _CONFLICT: "wrong_state",
        _GONE: "route_gone",
        _UNPROCESSABLE: "invalid_args",
    }
    return reasons.get(said.status, "")
