"""Frames: calls of plan() as bytes, with all inputs and the answer, to be computed again elsewhere.

Invariants:
1. A frame that is read equals the written one, to the microsecond and the micro-dollar.
2. Data that no plan depends on (commands, environments, keys, logins) is left out. Ids and addresses are kept, so a
   frame is private.
3. Of two consecutive frames only the parts that differ are written.
"""

import typing
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

import msgspec

from agent.decide.limits.limits import CommittedSpend, Limits
from agent.decide.plan import Plan
from agent.decide.strategy import Params, Strategy, Tuned
from agent.domain.fleet import Fleet, MarketView
from agent.domain.work.decision import Decision
from agent.domain.work.workload import Workload

MAGIC = b"gpubid recording 1\n"
"""The first bytes of a file of frames. Each frame follows after its length."""
LENGTH_BYTES = 4
SUFFIX = ".frames"

Parts = dict[str, bytes]
"""A frame in pieces, by name; a piece that two frames share has the same bytes."""

_MARKETS = "markets"
_FLEET = {name: hint for name, hint in typing.get_type_hints(Fleet).items() if name in Fleet.__struct_fields__}
_VIEW = {name: hint for name, hint in typing.get_type_hints(MarketView).items() if not name.startswith("_")}


@dataclass(frozen=True, slots=True)
class RecordedStrategy:
    """A named strategy and its numbers; `code` is the place of its class, as module:Class."""

    name: str
    code: str
    digest: str
    source: str
    params: bytes


@dataclass(frozen=True, slots=True)
class Frame:
    """The inputs of one plan and, in `answer`, its result."""

    fleet: Fleet
    caps: Limits
    faulty: frozenset[str]
    numbers: Mapping[str, RecordedStrategy]
    answer: bytes


class Unread(ValueError):
    """Bytes that are not a frame of this release."""


def framed(fleet: Fleet, tuned: Mapping[str, Tuned], caps: Limits, faulty: frozenset[str], planned: Plan) -> Frame:
    """Return the frame of a plan; only strategies that a workload names are kept."""
    used = sorted({work.strategy for work in fleet.workloads})
    numbers = {name: _numbers(tuned[name]) for name in used}
    bare = msgspec.structs.replace(fleet, workloads=tuple(_bare(work) for work in fleet.workloads))
    return Frame(bare, caps, faulty, numbers, answer(planned.decisions, planned.standing))


def code_of(strategy: object) -> str:
    """Return the place of a strategy's class, as module:Class."""
    return f"{type(strategy).__module__}:{type(strategy).__qualname__}"


def answer(decisions: tuple[Decision, ...], standing: CommittedSpend) -> bytes:
    """Return the answer of a plan as bytes that are equal if and only if the answers are."""
    encode, decode = msgspec.msgpack.encode, msgspec.msgpack.decode
    # Encoded and decoded once, because an equal whole number in place of a float has other bytes.
    named = sorted(standing.parts.items(), key=lambda item: (item[0].kind.value, item[0].name))
    exact = [(type(each).__name__, decode(encode(each), type=type(each))) for each in decisions]
    return encode((exact, encode(msgspec.structs.replace(standing, parts=dict(named)))))


def decisions_of(recorded: bytes) -> list[tuple[str, dict[str, typing.Any]]]:
    """Return the decisions of an answer as plain values, each with the name of its kind."""
    decisions, _ = msgspec.msgpack.decode(recorded)
    return [(kind, dict(values)) for kind, values in decisions]


def parts(frame: Frame) -> Parts:
    """Return a frame in pieces."""
    encode = msgspec.msgpack.Encoder().encode
    pieces = {f"fleet.{name}": encode(getattr(frame.fleet, name)) for name in _FLEET if name != _MARKETS}
    for market, view in frame.fleet.markets.items():
        pieces |= {f"view.{market}.{name}": encode(getattr(view, name)) for name in _VIEW}
    pieces |= {name: encode(getattr(frame, name)) for name in ("caps", "numbers")}
    # A set has no order, and equal sets must have equal bytes.
    return pieces | {"faulty": encode(sorted(frame.faulty)), "answer": frame.answer}


def changed(before: Parts, after: Parts) -> bytes:
    """Return the change from one frame to the next."""
    gone = sorted(before.keys() - after.keys())
    return msgspec.msgpack.encode((gone, {name: part for name, part in after.items() if before.get(name) != part}))


def followed(before: Parts, change: bytes) -> Parts:
    """Return the pieces after a change.

    Raises:
        Unread: the bytes are not a change.
    """
    try:
        gone, more = msgspec.msgpack.decode(change, type=tuple[list[str], dict[str, bytes]])
    except msgspec.MsgspecError as error:
        raise Unread(str(error)) from error
    return {name: part for name, part in (before | more).items() if name not in gone}


def whole(pieces: Parts) -> Frame:
    """Return the frame of these pieces.

    Raises:
        Unread: a piece is missing or of another release.
    """
    try:
        views: dict[str, dict[str, typing.Any]] = {}
        for key in pieces:
            if key.startswith("view."):
                market, name = key.removeprefix("view.").split(".")
                views.setdefault(market, {})[name] = _decoded(pieces[key], _VIEW[name])
        fleet = {name: _decoded(pieces[f"fleet.{name}"], hint) for name, hint in _FLEET.items() if name != _MARKETS}
        return Frame(
            fleet=Fleet(markets={name: MarketView(**view) for name, view in views.items()}, **fleet),
            caps=_decoded(pieces["caps"], Limits),
            faulty=frozenset(_decoded(pieces["faulty"], list[str])),
            numbers=_decoded(pieces["numbers"], dict[str, RecordedStrategy]),
            answer=pieces["answer"],
        )
    except (KeyError, ValueError, TypeError, msgspec.MsgspecError) as error:
        raise Unread(f"{type(error).__name__}: {error}") from error


def _decoded(part: bytes, hint: typing.Any) -> typing.Any:  # noqa: ANN401 - any type of a field
    return msgspec.msgpack.decode(part, type=hint)


def _numbers(chosen: Tuned) -> RecordedStrategy:
    plain = {key: _plain(value) for key, value in chosen.params.model_dump().items()}
    return RecordedStrategy(
        chosen.name, code_of(chosen.strategy), chosen.digest, chosen.source, msgspec.msgpack.encode(plain)
    )


def tuned(numbers: RecordedStrategy, strategy: Strategy[Params]) -> Tuned:
    """Return a strategy with its numbers.

    Raises:
        Unread: its numbers are of another release.
    """
    try:
        plain = msgspec.msgpack.decode(numbers.params, type=dict[str, typing.Any])
        params = strategy.params.model_validate({key: _value(each) for key, each in plain.items()})
    except (ValueError, TypeError) as error:
        raise Unread(f"{numbers.name}: {error}") from error
    return Tuned(numbers.name, strategy, params, numbers.digest, numbers.source)


def _plain(value: object) -> object:
    """Return a value that can be encoded: a duration becomes its days, seconds and microseconds."""
    return {"days": value.days, "s": value.seconds, "us": value.microseconds} if isinstance(value, timedelta) else value


def _value(plain: object) -> object:
    if isinstance(plain, dict) and plain.keys() == {"days", "s", "us"}:
        return timedelta(plain["days"], plain["s"], plain["us"])
    return plain


def _bare(work: Workload) -> Workload:
    """Return a workload without private data on which no plan depends."""
    return replace(
        work, command="", onstart="", environment=(), values=(), env_from=(), image_login=None, ssh_keys=(), template=""
    )
