"""Recordings, read and planned again: the same fleet must give the same plan, byte for byte."""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from agent.decide import plan, plan_recording
from agent.decide.plan_recording import LENGTH_BYTES, MAGIC, SUFFIX, Frame
from agent.decide.strategy import Params, Strategy, Tuned

Registry = Mapping[str, Strategy[Any]]
"""Strategies by the import path of their class."""


class RecordingError(ValueError):
    """The file is no recording of this release, or names a strategy that is not installed."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first plan that differs: its number, its time, and both plans as plain values."""

    number: int
    at: datetime
    recorded: list[tuple[str, dict[str, Any]]]
    made: list[tuple[str, dict[str, Any]]]


def files(place: Path) -> list[Path]:
    """Return the recordings of a folder, the oldest first, or the one file.

    Raises:
        RecordingError: the folder has no recording.
    """
    paths = sorted(place.glob(f"*{SUFFIX}")) if place.is_dir() else [place]
    if not paths or not paths[0].is_file():
        raise RecordingError(f"{place}: contains no recording; write record = true under [lab] and let the daemon run")
    return paths


def frames(file: Path) -> Iterator[Frame]:
    """Yield the frames of a recording, up to a frame that a crash cut short.

    Raises:
        RecordingError: the file is no recording, or of another release.
    """
    pieces: plan_recording.Parts = {}
    with file.open("rb") as source:
        if source.read(len(MAGIC)) != MAGIC:
            raise RecordingError(f"{file}: is no recording of this release; name a file that the daemon wrote")
        while packed := _next(source.read(LENGTH_BYTES), source.read):
            try:
                pieces = plan_recording.followed(pieces, zlib.decompress(packed))
                yield plan_recording.whole(pieces)
            except (plan_recording.Unread, zlib.error) as error:
                raise RecordingError(f"{file}: {str(error)[:200]}; it was written by another release") from error


def _next(head: bytes, read: Any) -> bytes:  # noqa: ANN401 - the method of a file
    length = int.from_bytes(head, "big")
    packed: bytes = read(length) if len(head) == LENGTH_BYTES else b""
    return packed if len(packed) == length else b""


def again(one: Frame, registry: Registry) -> bytes:
    """Return the plan that plan() now makes from recorded inputs.

    Raises:
        RecordingError: a strategy is not installed, or its numbers are of another release.
    """
    planned = plan.plan(one.fleet, tuned(one, registry), one.caps, one.faulty)
    return plan_recording.answer(planned.decisions, planned.standing)


def tuned(one: Frame, registry: Registry) -> dict[str, Tuned]:
    """Return the strategies of a frame with their recorded numbers.

    Raises:
        RecordingError: a strategy is not installed, or its numbers are of another release.
    """
    found: dict[str, Tuned] = {}
    for name, numbers in one.numbers.items():
        strategy: Strategy[Params] | None = registry.get(numbers.code)
        if strategy is None:
            raise RecordingError(f"{numbers.code} is not installed here; install the package that brings it")
        try:
            found[name] = plan_recording.tuned(numbers, strategy)
        except plan_recording.Unread as error:
            raise RecordingError(str(error)[:200]) from error
    return found


def verify(recorded: Iterable[Frame], registry: Registry) -> tuple[int, Difference | None]:
    """Return how many plans were computed again, and the first that differs.

    Raises:
        RecordingError: a frame cannot be read or a strategy is not installed.
    """
    count = 0
    for one in recorded:
        count += 1
        recomputed = again(one, registry)
        if recomputed != one.answer:
            return count, Difference(
                count, one.fleet.now, plan_recording.decisions_of(one.answer), plan_recording.decisions_of(recomputed)
            )
    return count, None


def by_code(installed: Mapping[str, Strategy[Any]]) -> Registry:
    """Return strategies by the import path of their class."""
    return {plan_recording.code_of(strategy): strategy for strategy in installed.values()}
