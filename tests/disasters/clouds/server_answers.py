"""Answers of dstack's server that refuse an order, deny a run, or name another one."""

import msgspec
from multidict import CIMultiDict

from agent.markets.http_exchange import Reply

CHANGED = "Failed to apply plan. Resource has been changed. Try again or use force apply."
"""As the server answers an order whose name is in use."""


def refusal(sentence: str, code: str = "error") -> Reply:
    """Return a refusal in the server's form."""
    return Reply(400, CIMultiDict(), msgspec.json.encode({"detail": [{"msg": sentence, "code": code}]}))


def unknown() -> Reply:
    """Return the denial of a run."""
    return refusal("Run not found", "resource_not_exists")


def named(wrong: str, reply: Reply) -> Reply:
    """Return the answer to an order with the id of another run."""
    return Reply(reply.status, reply.headers, msgspec.json.encode({**msgspec.json.decode(reply.body), "id": wrong}))
