"""Answers of the market of auctions that refuse an order, or name another bid."""

import msgspec
from multidict import CIMultiDict

from agent.markets.http_exchange import Reply


def refusal(status: int, sentence: str) -> Reply:
    """Return a refusal with a sentence."""
    return Reply(status, CIMultiDict(), msgspec.json.encode({"detail": sentence}))


def invalid(where: tuple[str, ...], sentence: str) -> Reply:
    """Return a refusal with the place in the request that the market does not take."""
    row = {"loc": where, "msg": sentence, "type": "value_error"}
    return Reply(422, CIMultiDict(), msgspec.json.encode({"detail": [row]}))


def named(wrong: str, reply: Reply) -> Reply:
    """Return the answer to an order with the id of another bid."""
    return Reply(reply.status, reply.headers, msgspec.json.encode({**msgspec.json.decode(reply.body), "fid": wrong}))
