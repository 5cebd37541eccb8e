"""The chart of a lease's bid, floor and ask over time as SVG: axes with units, marked losses, readable without script.

1. The chart has a description in words, for readers who cannot see it.
2. `data-trail` has the same figures for agent/web/static/charts.js, which draws them with uPlot and shows the figures
   under the pointer. Without script the large chart shows them as tooltips.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import msgspec
from markupsafe import Markup, escape

from agent.domain.record.event import Event
from agent.web.feed.slot_model import Price

LINES = ("ask", "floor", "bid")
"""The lines in the order of drawing. The last one, the bid, is on top."""
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
MOST_TICKS = 4
MOST_DIGITS = 5


class Size(NamedTuple):
    """The size of a chart, in units of its view box, and whether each point has a tooltip."""

    width: int
    height: int
    has_tooltips: bool


SMALL = Size(320, 136, has_tooltips=False)
LARGE = Size(900, 300, has_tooltips=True)
LEFT, RIGHT, TOP, BOTTOM = 46, 8, 22, 18


@dataclass(frozen=True, slots=True)
class Course:
    """The prices of a lease from `start` to `end`, oldest first, and its losses."""

    points: Sequence[Price]
    losses: Sequence[Event]
    start: datetime
    end: datetime
    year: int
    """The present year. Instants of other years are shown with their year."""

    def moment(self, at: datetime, *, seconds: bool = False) -> str:
        """Return the text of an instant on the chart."""
        year = "" if at.year == self.year else f"{at:%Y}-"
        return f"{year}{at:%m-%d %H:%M:%S}" if seconds else f"{year}{at:%m-%d %H:%M}"

    def line(self, name: str) -> list[tuple[datetime, float]]:
        """Return the instants at which a price changed, with its new values."""
        found: list[tuple[datetime, float]] = []
        for point in self.points:
            value = getattr(point, name)
            if value is not None and (not found or found[-1][1] != value):
                found.append((max(point.at, self.start), value))
        return found


def drawn(course: Course, size: Size) -> Markup:
    """Return the chart, or an empty text if no price is known."""
    lines = {name: line for name in LINES if (line := course.line(name))}
    if not lines or course.end <= course.start:
        return Markup("")
    scale = _Scale(course, size, [value for line in lines.values() for _, value in line])
    parts = [
        *scale.axes(),
        *(f'<path class="{name}" d="{scale.path(line)}"/>' for name, line in lines.items()),
        *(scale.loss(each) for each in course.losses if course.start <= each.at <= course.end),
        *(scale.tooltips() if size.has_tooltips else ()),
    ]
    words = escape(_words(lines, course))
    frame = f'viewBox="0 0 {size.width} {size.height}" role="img" aria-label="{words}"'
    kind = "large" if size.has_tooltips else "small"
    trail = escape(msgspec.json.encode(_trail(course)).decode())
    keys = "".join(f'<span class="key {name}">{name}</span> ' for name in reversed(LINES) if name in lines)
    svg = f"<svg {frame}>{''.join(parts)}</svg>"
    return Markup(  # noqa: S704 - numbers, and everything else escaped
        f'<div class="chart {kind}" data-trail="{trail}">{svg}<p class="keys" aria-hidden="true">{keys}in $/h</p></div>'
    )


class _Scale:
    """Places instants and dollars in the view box."""

    def __init__(self, course: Course, size: Size, values: Sequence[float]) -> None:
        self._course, self._start, self._size = course, course.start, size
        self._seconds = (course.end - course.start).total_seconds()
        self._ticks = ticks(min(values), max(values))
        low, high = self._ticks[0], self._ticks[-1]
        self._low, self._span = low, high - low

    def across(self, at: datetime) -> float:
        share = min(max((at - self._start).total_seconds() / self._seconds, 0.0), 1.0)
        return LEFT + share * (self._size.width - LEFT - RIGHT)

    def up(self, value: float) -> float:
        height = self._size.height - TOP - BOTTOM
        return TOP + height - (value - self._low) / self._span * height

    def path(self, line: Sequence[tuple[datetime, float]]) -> str:
        """Return a path of horizontal steps: a price is in force until the next."""
        (first, value), *others = line
        parts = [f"M{self.across(first):.1f} {self.up(value):.1f}"]
        parts += [f"H{self.across(at):.1f}V{self.up(each):.1f}" for at, each in others]
        return "".join([*parts, f"H{self._size.width - RIGHT}"])

    def axes(self) -> Iterator[str]:
        """Yield lines and labels of both axes."""
        right, bottom = self._size.width - RIGHT, self._size.height - BOTTOM
        yield '<text class="unit" x="2" y="10">$/h</text>'
        for value in self._ticks:
            y = self.up(value)
            yield f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>'
            yield f'<text x="{LEFT - 4}" y="{y + 3:.1f}" text-anchor="end">{_label(value, self._ticks)}</text>'
        moments = ((0.0, "start", LEFT), (0.5, "middle", (LEFT + right) / 2), (1.0, "end", right))
        for share, anchor, x in moments:
            at = datetime.fromtimestamp(self._start.timestamp() + share * self._seconds, self._start.tzinfo)
            written = self._course.moment(at) + (" UTC" if share == 1 else "")
            yield f'<text x="{x:.1f}" y="{bottom + 13}" text-anchor="{anchor}">{written}</text>'

    def loss(self, event: Event) -> str:
        """Return the mark of a loss: a line from top to bottom with its cause."""
        x = f"{self.across(event.at):.1f}"
        said = escape(f"interrupted {self._course.moment(event.at, seconds=True)}: {_cause(event)}")
        line = f'<path class="loss" d="M{x} {TOP}V{self._size.height - BOTTOM}"/>'
        return (
            f'<g><title>{said}</title>{line}<text class="loss" x="{x}" y="{TOP - 4}" text-anchor="middle">x</text></g>'
        )

    def tooltips(self) -> Iterator[str]:
        """Yield a transparent field with figures for each change, as wide as the time that it was in force."""
        course = self._course
        ends = [max(each.at, course.start) for each in course.points[1:]] + [course.end]
        for point, end in zip(course.points, ends, strict=True):
            left = self.across(point.at)
            width = max(self.across(end) - left, 1.0)
            known = ((name, getattr(point, name)) for name in reversed(LINES))
            figures = ", ".join(f"{name} ${value:.4f}" for name, value in known if value is not None)
            at = course.moment(point.at, seconds=True)
            field = f'x="{left:.1f}" y="{TOP}" width="{width:.1f}" height="{self._size.height - TOP - BOTTOM}"'
            yield f'<rect class="field" {field}><title>{at} UTC: {figures} an hour</title></rect>'


def ticks(least: float, most: float) -> list[float]:
    """Return round values from below the least price to above the greatest, with at most `MOST_TICKS` spans."""
    span = max(most - least, most * 0.1, 0.001)
    power = 10.0 ** math.floor(math.log10(span / MOST_TICKS))
    step = next(power * each for each in STEPS if power * each * MOST_TICKS >= span * 0.999)
    first = math.floor(least / step + 1e-9)
    last = max(math.ceil(most / step - 1e-9), first + 1)
    return [number * step for number in range(first, last + 1)]


def _label(value: float, every: Sequence[float]) -> str:
    step = every[1] - every[0]
    exact = (digits for digits in range(2, MOST_DIGITS) if math.isclose(round(step, digits), step))
    digits = next(exact, MOST_DIGITS)
    return f"{value:.{digits}f}"


def _words(lines: dict[str, list[tuple[datetime, float]]], course: Course) -> str:
    said = [f"{name} {line[0][1]:.3f} to {line[-1][1]:.3f} $/h" for name, line in lines.items()]
    said += [f"interrupted {course.moment(each.at)}: {_cause(each)}" for each in course.losses]
    return "; ".join(said)


def _cause(event: Event) -> str:
    return event.cause.value if event.cause is not None else "unknown"


def _trail(course: Course) -> dict[str, list[object]]:
    """Return the columns of the chart: seconds, the prices from each second on, and the cause of a loss at it."""
    rows: list[tuple[float, Price | None, str | None]] = [
        (max(each.at, course.start).timestamp(), each, None) for each in course.points
    ]
    rows += [(each.at.timestamp(), None, _cause(each)) for each in course.losses if course.start <= each.at]
    columns: dict[str, list[object]] = {"at": [], "bid": [], "floor": [], "ask": [], "loss": []}
    last, end = course.points[0], course.end.timestamp()
    shown = sorted((row for row in rows if row[0] <= end), key=lambda row: row[0])
    for at, point, cause in [*shown, (end, None, None)]:
        last = point or last
        for name, value in (("at", at), ("bid", last.bid), ("floor", last.floor), ("ask", last.ask), ("loss", cause)):
            columns[name].append(value)
    return columns
