"""The course of a search for a strategy's numbers: each trial's score, and the best so far."""

from collections.abc import Sequence
from itertools import accumulate

from agent.lab.page import svg_sheet
from agent.lab.page.html import Plot
from agent.lab.tuning.study import Trial


def plot(study: str, trials: Sequence[Trial], name: str) -> Plot | None:
    """Return the picture, or None if no trial has a score."""
    complete = [trial for trial in trials if trial.state == "complete"]
    scored = [(trial.number, trial.score) for trial in complete if trial.score is not None]
    if not scored:
        return None
    numbers, scores = zip(*scored, strict=True)
    best = list(accumulate(scores, min))
    given_up = [trial.number for trial in trials if trial.state == "pruned"]
    with svg_sheet.sheet(name, svg_sheet.NARROW, 3.2) as sheet:
        axes = sheet.axes()
        axes.plot(numbers, scores, "o", color=svg_sheet.SERIES[0], markersize=4, label="trial")
        axes.step(numbers, best, where="post", color=svg_sheet.SERIES[1], label="best so far")
        if given_up:
            at = [max(scores)] * len(given_up)
            axes.plot(given_up, at, "x", color=svg_sheet.QUIET, markersize=5, label="given up early")
        axes.set_xlabel("trial")
        axes.set_ylabel("score, less is better")
        sheet.figure.legend(loc="outside lower center", ncols=3)
    return Plot(
        title="How the numbers were searched",
        says=f"{len(scored)} trials with a score, {len(given_up)} given up; the first {scores[0]:.4g}, the best "
        f"{best[-1]:.4g} at trial {numbers[scores.index(best[-1])]}",
        note=f"Study {study}. Scores are of the cases of the fit; on other cases they are usually worse.",
        svg=sheet.svg,
    )
