"""The distance of each strategy from the bound, by setting."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.ticker import NullLocator

from agent.lab.page import svg_sheet
from agent.lab.page.html import Plot

FINE = (0, 1, 2, 5, 10, 20, 50, 100)
COARSE = (-100, -10, -1, 0, 1, 10, 100, 1000)
BELOW = " A strategy that costs less than a bound did less work than the bound: look at its late runs or missing slots."
LONG = 26
MOST = 24
"""The most settings in a readable picture."""


def plot(groups: Sequence[str], costs: Mapping[str, Sequence[float]], against: str, name: str) -> Plot | None:
    """Return the picture of `costs` (strategies, runs) over `groups` (runs,), in per cent above those of `against`."""
    names = list(dict.fromkeys(groups))
    if not 1 < len(names) <= MOST or set(costs) == {against}:
        return None
    means = {strategy: _means(groups, names, each) for strategy, each in costs.items()}
    above = {name: 100 * (each / means[against] - 1) for name, each in means.items() if name != against}
    with svg_sheet.sheet(name, svg_sheet.NARROW, 1.3 + 0.45 * len(names) + 0.09 * len(above)) as sheet:
        axes = sheet.axes()
        for place, (strategy, values) in enumerate(above.items()):
            mark, colour = svg_sheet.MARKS[place % 8], svg_sheet.series(place)
            axes.plot(values, range(len(names)), mark, color=colour, label=strategy, markersize=6, alpha=0.9)
        # Most strategies are near the bound, and one or two are far from it.
        axes.set_xscale("symlog", linthresh=1.0, linscale=0.3)
        low, high = min(map(min, above.values())), max(map(max, above.values()))
        ticks = FINE if low >= 0 and high < FINE[-1] else [tick for tick in COARSE if tick >= min(low, 0.0)]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_xlim(1.3 * low if low < -1 else min(low, 0.0) - 0.2, 1.3 * high + 1)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_yticks(range(len(names)), [_short(each) for each in names])
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlabel(f"per cent above {against}")
        sheet.figure.legend(loc="outside lower center", ncols=3)
    return Plot(
        title="Where it is won and lost",
        says="; ".join(_words(strategy, names, values) for strategy, values in above.items()),
        note="Each row is one setting; per cent by their logarithm." + (BELOW if low < 0 else ""),
        svg=sheet.svg,
    )


def _short(group: str) -> str:
    """Return a setting's name, over two lines if it is long."""
    return group.replace(", ", "\n", 1) if len(group) > LONG else group


def _means(groups: Sequence[str], names: Sequence[str], costs: Sequence[float]) -> np.ndarray:
    places = np.array([names.index(group) for group in groups])
    return np.bincount(places, weights=np.asarray(costs)) / np.bincount(places)


def _words(strategy: str, names: Sequence[str], values: np.ndarray) -> str:
    return f"{strategy} above it: " + ", ".join(
        f"{value:.1f} % at {group}" for group, value in zip(names, values, strict=True)
    )
