"""A call of this market's surface and the shapes of its answers."""

import dataclasses
import datetime as dt
from collections.abc import Sequence

import msgspec
from multidict import MultiMapping

from agent.simulator import api_calls
from agent.simulator.api_calls import Reply
from agent.simulator.field_lies import Vocabulary
from agent.simulator.mithril.model import Refused

VOCABULARY = Vocabulary(
    fields={
        "id": ("data.fid", "fid", "bid_fid", "instances.bid_fid"),
        "label": ("data.name", "name"),
        "price": (
            *("data.limit_price", "limit_price", "last_instance_price", "spot_price_cents", "reserved_price_cents"),
            *("minimum_price_cents", "lowest_allocated_bid_cents", "instances.events.price_cents"),
        ),
        "state": ("data.status", "status"),
        "host": ("data.region", "region"),
    },
    lists=("data", "instances"),
    cursor="next_cursor",
    marks=frozenset({"fid", "bid", "bid_fid", "instance_fid"}),
)
"""The paths of the fields that field lies change."""


@dataclasses.dataclass(slots=True)
class Call(api_calls.Call):
    """One request."""

    def number(self, name: str, least: int, most: int, otherwise: int) -> int:
        """Return a whole number of the query, or raise Refused."""
        text = self.query.get(name)
        if not text:
            return otherwise
        try:
            value = int(text)
        except ValueError as error:
            raise Refused(422, "Input should be a valid integer", ("query", name)) from error
        if value < least:
            raise Refused(422, f"Input should be greater than or equal to {least}", ("query", name))
        if value > most:
            raise Refused(422, f"Input should be less than or equal to {most}", ("query", name))
        return value

    def choice(self, name: str, known: Sequence[str]) -> str | None:
        """Return a word of the query that must be a known one, None without it, or raise Refused."""
        text = self.query.get(name) or None
        if text is not None and text not in known:
            raise Refused(422, f"Input should be {_listed(known)}", ("query", name))
        return text

    def words(self, name: str) -> tuple[str, ...]:
        """Return a list of the query, separated by commas or given again and again."""
        query = self.query
        texts = query.getall(name, []) if isinstance(query, MultiMapping) else [query.get(name, "")]
        return tuple(word.strip() for text in texts for word in text.split(",") if word.strip())

    def required(self, name: str) -> str:
        """Return a text that the query must have, or raise Refused."""
        if not self.query.get(name):
            raise Refused(422, "Field required", ("query", name))
        return self.query[name]

    def instant(self, name: str, otherwise: float) -> float:
        """Return an instant of the query in epoch seconds, or raise Refused."""
        text = self.query.get(name)
        if not text:
            return otherwise
        try:
            # A plus sign that is not escaped arrives as a space.
            at = dt.datetime.fromisoformat(text.replace(" ", "+") if "T" in text else text)
            return (at if at.tzinfo else at.replace(tzinfo=dt.UTC)).timestamp()
        except (ValueError, OverflowError) as error:
            raise Refused(422, "Input should be a valid datetime", ("query", name)) from error


def ok(document: object, status: int = 200) -> Reply:
    """Answer a document."""
    return Reply(msgspec.json.encode(document), status)


def refuse(refused: Refused) -> Reply:
    """Answer a refusal: for 422 the places in the request that are wrong, else a sentence."""
    if refused.status != 422:  # noqa: PLR2004 - the status of a validation
        return ok({"detail": refused.sentence}, refused.status)
    kind = "missing" if refused.sentence == "Field required" else "value_error"
    return ok({"detail": [{"loc": list(refused.where), "msg": refused.sentence, "type": kind}]}, 422)


def stamp(at: float) -> str:
    """Return an instant in the market's form."""
    return dt.datetime.fromtimestamp(at, dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def stamp_or_none(at: float | None) -> str | None:
    """Return an instant in the market's form, or None."""
    return None if at is None else stamp(at)


def dollars(cents: int) -> str:
    """Return a price as text, such as "$15.60"."""
    return f"${cents / 100:.2f}"


def _listed(known: Sequence[str]) -> str:
    quoted = [f"'{word}'" for word in known]
    return f"{', '.join(quoted[:-1])} or {quoted[-1]}"
