"""Pictures by matplotlib as SVG inside a page. Text stays text, and one picture serves light and dark.

Every colour is drawn as a placeholder and replaced by a variable of the page's style sheet, which has both schemes.
Series differ by line and mark too, so that nobody needs the colours.
"""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

INK, QUIET, LINE, CARD = "#000001", "#000002", "#000003", "#000004"
SERIES = tuple(f"#00001{place}" for place in range(8))
STYLES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
NARROW, WIDE = 4.4, 10.0
"""Inches across. A narrow picture is readable on a phone; a wide one is scrolled there."""
_VARIABLES = {INK: "ink", QUIET: "quiet", LINE: "line", CARD: "card"} | {
    stand_in: f"series-{place}" for place, stand_in in enumerate(SERIES)
}
_LOOKS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "gpubid",
    "font.size": 8.5,
    "text.color": INK,
    "axes.edgecolor": LINE,
    "axes.facecolor": "none",
    "axes.labelcolor": QUIET,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 8,
    # A name from a file is plain text: a dollar sign in it begins no formula.
    "text.parse_math": False,
}


@dataclass(slots=True)
class Sheet:
    """A figure to draw on. `svg` is set when the drawing is done."""

    figure: Figure
    svg: Markup = field(default_factory=Markup)

    def axes(self) -> Axes:
        """Return the only axes."""
        return self.figure.subplots()


@contextmanager
def sheet(name: str, width: float, height: float) -> Iterator[Sheet]:
    """Yield an empty figure of this size in inches. `name` is unique on its page, for references inside the SVG."""
    with mpl.rc_context(_LOOKS):
        new_sheet = Sheet(Figure(figsize=(width, height), layout="constrained"))
        yield new_sheet
        FigureCanvasSVG(new_sheet.figure)
        text = io.StringIO()
        new_sheet.figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        new_sheet.svg = Markup(_inlined(text.getvalue(), name))  # noqa: S704 - matplotlib escapes what it is given


def series(place: int) -> str:
    """Return the colour of the n-th series. There is one fewer than marks and lines, so that no two look alike."""
    return SERIES[place % (len(MARKS) - 1)]


def _inlined(text: str, name: str) -> str:
    """Return an SVG file as an element, without prologue. Its ids differ from those of other pictures."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(<svg [^>]*?)width="[^"]*" height="[^"]*" ?', r"\1", text, count=1)
    text = re.sub(r'\b(id=")', rf"\1{name}-", text)
    text = re.sub(r'(url\(#|href="#)', rf"\1{name}-", text)
    text = re.sub(r"(font: [\d.]+px) [^;\"]*", r"\1 system-ui, sans-serif", text)
    for stand_in, variable in _VARIABLES.items():
        text = text.replace(stand_in, f"var(--{variable})")
    return re.sub(r' xmlns(:xlink)?="[^"]*"', "", text).replace("xlink:href", "href")
