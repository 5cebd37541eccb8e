"""The steps of `gpubid tune`, in order. Each reads the records of the steps before it. No step is done twice."""

from collections.abc import Callable
from typing import Any

from agent import strategy_files
from agent.cli.tune_loop import candidate, loop_data, promotion, shadow_trial
from agent.cli.tune_loop.loop import Loop, now

NAMED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
WORK: tuple[tuple[str, Callable[..., dict[str, Any]]], ...] = (
    ("search", candidate.search), ("chart", candidate.chart), ("file", candidate.write), ("shadow", shadow_trial.begin),
)  # fmt: skip
"""The steps after the data, up to the shadow."""


def run(loop: Loop, *, promotes: bool, begins_anew: bool) -> None:
    """Do every step that is possible and not done yet.

    Raises:
        ValueError: the request cannot be carried out; the message says what to do.
        Refusal: a step is refused until it is overruled.
        OSError: a file cannot be written.
    """
    if not loop.name or not set(loop.name) <= NAMED:
        raise ValueError(f"{loop.name!r} is no name for a strategy; write letters, digits, dots, dashes, underscores")
    if loop.name in strategy_files.installed():
        raise ValueError(
            f"{loop.name} is a shipped strategy; name your own, and begin from it with --strategy {loop.name}"
        )
    if begins_anew and (aside := loop.records.put_aside(now())) is not None:
        loop.say("data", f"begins again; the records so far are in {aside}")
    done: dict[str, dict[str, Any]] = {}
    _step(loop, done, "data", loop_data.data)
    loop_data.asked_of(loop, done)
    for step, work in WORK:
        _step(loop, done, step, work)
    day = shadow_trial.day(loop, done)
    if day is not None:
        done["day"] = day
    if promotes:
        promotion.promote(loop, done)


def _step(loop: Loop, done: dict[str, dict[str, Any]], step: str, work: Callable[..., dict[str, Any]]) -> None:
    before = loop.records.read(step)
    done[step] = before or work(loop, done)
    if before is not None:
        loop.say(step, f"done {before['at'][:16]} ({loop.records.file(step)}, digest {before['digest']})")
