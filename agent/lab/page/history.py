"""How a search for a strategy's numbers went: each trial's score, and the best so far."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from agent.lab.page import ink
from agent.lab.page.html import Plot


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial of a study: its number, and its score where it was not given up."""

    number: int
    score: float | None


def plot(study: str, trials: Sequence[Trial], name: str) -> Plot | None:
    """Return the picture, or nothing where no trial has a score."""
    scored = [(trial.number, trial.score) for trial in trials if trial.score is not None]
    if not scored:
        return None
    numbers, scores = zip(*scored, strict=True)
    best = list(accumulate(scores, min))
    given_up = [trial.number for trial in trials if trial.score is None]
    with ink.sheet(name, ink.NARROW, 3.2) as sheet:
        axes = sheet.axes()
        axes.plot(numbers, scores, "o", color=ink.SERIES[0], markersize=4, label="trial")
        axes.step(numbers, best, where="post", color=ink.SERIES[1], label="best so far")
        if given_up:
            at = [max(scores)] * len(given_up)
            axes.plot(given_up, at, "x", color=ink.QUIET, markersize=5, label="given up early")
        axes.set_xlabel("trial")
        axes.set_ylabel("score, less is better")
        sheet.figure.legend(loc="outside lower center", ncols=3)
    return Plot(
        title="How the numbers were searched",
        says=f"{len(scored)} trials with a score, {len(given_up)} given up; the first {scores[0]:.4g}, the best "
        f"{best[-1]:.4g} at trial {numbers[scores.index(best[-1])]}",
        note=f"Study {study}. The score is that of the cases it was fitted on: on others it is worse.",
        svg=sheet.svg,
    )
