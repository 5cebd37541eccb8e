"""Calibration: the predicted and the seen time for which capacity stays, and stays away."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from agent.lab.page import svg_sheet
from agent.lab.page.html import Plot
from agent.lab.traces import survival

HOURS = 24.0
"""The last age of the drawing, in hours."""
FIRST, TICKS = 0.15, (0.25, 0.5, 1, 2, 4, 8, 24)
"""The first age of the drawing, and its marks. Most spells end within the first hour."""
SAID = (1.0, 4.0, 12.0)
"""Ages in hours that the description names."""


@dataclass(frozen=True, slots=True)
class Lasting:
    """Spells of capacity, or of its absence: the seen ones, and the shares predicted at `ages` in hours, if any."""

    what: str
    seen: survival.Survival
    ages: Sequence[float] = ()
    predicted: Sequence[float] = ()


def plot(lasting_pools: Sequence[Lasting], how: str, name: str) -> Plot | None:
    """Return the picture. `how` describes the data of the prediction."""
    if not lasting_pools:
        return None
    with svg_sheet.sheet(name, svg_sheet.WIDE, 3.4) as sheet:
        for axes, each in zip(
            sheet.figure.subplots(1, len(lasting_pools), sharey=True, squeeze=False)[0], lasting_pools, strict=True
        ):
            _draw(axes, each)
        sheet.figure.axes[0].set_ylabel("share that lasts longer")
    return Plot(
        title="How long capacity lasts: predicted and seen",
        says="; ".join(_words(each) for each in lasting_pools),
        note=f"Solid, with its 95 % band: seen (Kaplan-Meier). Dashed: predicted {how}.",
        svg=sheet.svg,
        is_wide=True,
    )


def _draw(axes: Axes, each: Lasting) -> None:
    seen = each.seen
    axes.fill_between(seen.ages, seen.low, seen.high, step="post", color=svg_sheet.SERIES[0], alpha=0.2, linewidth=0)
    axes.step(seen.ages, seen.shares, where="post", color=svg_sheet.SERIES[0], label=f"seen, {seen.spells:,} spells")
    if len(each.ages):
        axes.plot(each.ages, each.predicted, "--", color=svg_sheet.SERIES[1], label="predicted")
    axes.set_xscale("log")
    axes.set_xlim(FIRST, HOURS)
    axes.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("hours")
    axes.set_title(each.what, fontsize=9, color=svg_sheet.INK)
    axes.legend(loc="upper right")


def _words(each: Lasting) -> str:
    seen = survival.at(each.seen, SAID)
    shares = [f"{share:.0%} longer than {age:g} h" for age, share in zip(SAID, seen, strict=True)]
    if len(each.ages):
        predicted = np.interp(SAID, each.ages, each.predicted)
        shares = [f"{said} ({share:.0%} predicted)" for said, share in zip(shares, predicted, strict=True)]
    return f"{each.what}: {', '.join(shares)}"
