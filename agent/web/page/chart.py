"""A step chart as SVG: a lease's bid against the floor of its host, without script.

The chart says in words what it shows (its first and last figures), so that nobody has to see it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup, escape

WIDTH = 320
HEIGHT = 64
PAD = 4

Point = tuple[datetime, float]


@dataclass(frozen=True, slots=True)
class Line:
    """Dollars per hour from each instant on, oldest first; `name` is its class in the style sheet too."""

    name: str
    points: Sequence[Point]


def steps(lines: Sequence[Line], start: datetime, end: datetime) -> Markup:
    """Return the chart of `lines` from `start` to `end`, or nothing if no line has a point."""
    shown = [line for line in lines if line.points]
    if not shown or end <= start:
        return Markup("")
    top = max(value for line in shown for _, value in line.points) * 1.1 or 1.0
    words = "; ".join(f"{line.name} {line.points[0][1]:.3f} to {line.points[-1][1]:.3f} $/h" for line in shown)
    drawn = "".join(f'<path class="{escape(line.name)}" d="{_path(line, start, end, top)}"/>' for line in shown)
    frame = f'class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none"'
    return Markup(f'<svg {frame} role="img" aria-label="{escape(words)}">{drawn}</svg>')  # noqa: S704 - numbers, and names escaped


def _path(line: Line, start: datetime, end: datetime, top: float) -> str:
    """Return a path of horizontal steps: a price holds until the next."""
    span = (end - start).total_seconds()

    def across(at: datetime) -> float:
        share = min(max((at - start).total_seconds() / span, 0.0), 1.0)
        return PAD + share * (WIDTH - 2 * PAD)

    def up(value: float) -> float:
        return HEIGHT - PAD - value / top * (HEIGHT - 2 * PAD)

    first = line.points[0]
    parts = [f"M{across(first[0]):.1f} {up(first[1]):.1f}"]
    parts += [f"H{across(at):.1f}V{up(value):.1f}" for at, value in line.points[1:]]
    return "".join([*parts, f"H{across(end):.1f}"])
