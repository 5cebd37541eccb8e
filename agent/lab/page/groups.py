"""How far each strategy is from the best that was possible, setting by setting: where it wins and where it loses."""

from collections.abc import Mapping, Sequence

import numpy as np

from agent.lab.page import ink
from agent.lab.page.html import Plot

MOST = 24
"""More settings than these cannot be read."""


def plot(groups: Sequence[str], costs: Mapping[str, Sequence[float]], against: str, name: str) -> Plot | None:
    """Return the picture of `costs` (strategies, runs) over `groups` (runs,), as ratios to the mean of `against`."""
    names = list(dict.fromkeys(groups))
    if not 1 < len(names) <= MOST:
        return None
    means = {strategy: _means(groups, names, each) for strategy, each in costs.items()}
    ratios = {strategy: each / means[against] for strategy, each in means.items() if strategy != against}
    with ink.sheet(name, ink.NARROW, 1.3 + 0.42 * len(names) + 0.09 * len(ratios)) as sheet:
        axes = sheet.axes()
        for place, (strategy, values) in enumerate(ratios.items()):
            mark, colour = ink.MARKS[place % 8], ink.series(place)
            axes.plot(values, range(len(names)), mark, color=colour, label=strategy, markersize=6, alpha=0.9)
        axes.axvline(1.0, color=ink.QUIET, linewidth=1)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlabel(f"mean cost over that of {against}")
        sheet.figure.legend(loc="outside lower center", ncols=3)
    return Plot(
        title="Where it is won and lost",
        says="; ".join(_words(strategy, names, values) for strategy, values in ratios.items()),
        note=f"Each row is one setting; the line is {against}.",
        svg=sheet.svg,
    )


def _means(groups: Sequence[str], names: Sequence[str], costs: Sequence[float]) -> np.ndarray:
    places = np.array([names.index(group) for group in groups])
    return np.bincount(places, weights=np.asarray(costs)) / np.bincount(places)


def _words(strategy: str, names: Sequence[str], values: np.ndarray) -> str:
    return f"{strategy}: " + ", ".join(f"{value:.3f} at {group}" for group, value in zip(names, values, strict=True))
