"""The chart of a lease's prices: axes with units, steps, losses, words, and figures for the pointer."""

import dataclasses
import itertools
import json
import re
from datetime import timedelta
from html import unescape
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.domain.market.interruption import Cause
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.web.feed.slot_model import Price
from agent.web.page import chart
from tests.support.builders import NOW, ago

LOSS = Event(at=ago(hours=2), kind=EventKind.LEASE_INTERRUPTED, cause=Cause.OUTBID)
POINTS = [
    Price(ago(hours=5), 0.20, None, 0.40),
    Price(ago(hours=4), 0.20, 0.19, 0.40),
    Price(ago(hours=1), 0.25, 0.24, 0.40),
]
COURSE = chart.Course(POINTS, [LOSS], ago(hours=4, minutes=30), NOW, NOW.year)


def svg(text: str) -> ET.Element:
    """Return the drawing, which must be well-formed."""
    return ET.fromstring(text[text.index("<svg") : text.index("</svg>") + 6])  # noqa: S314 - our own


def trail(text: str) -> dict[str, list[float | str | None]]:
    found = re.search(r'data-trail="([^"]+)"', text)
    assert found is not None
    return dict(json.loads(unescape(found[1])))


@pytest.mark.parametrize("size", [chart.SMALL, chart.LARGE], ids=["small", "large"])
def test_it_has_axes_with_units_a_line_a_price_and_each_loss(size: chart.Size) -> None:
    drawing = svg(chart.drawn(COURSE, size))
    written = [each.text for each in drawing.iter("text")]
    assert "$/h" in written
    assert {"0.20", "0.40"} <= set(written)
    assert any(text is not None and text.endswith("UTC") for text in written)
    assert [each.get("class") for each in drawing.iter("path") if each.get("class") in chart.LINES] == list(chart.LINES)
    titles = [each.text or "" for each in drawing.iter("title")]
    assert f"interrupted {LOSS.at:%m-%d %H:%M:%S}: outbid" in titles
    assert any("bid $0.2500, floor $0.2400, ask $0.4000" in title for title in titles) is size.has_tooltips


def test_its_words_say_what_it_shows() -> None:
    words = svg(chart.drawn(COURSE, chart.SMALL)).get("aria-label") or ""
    assert "bid 0.200 to 0.250 $/h" in words
    assert "floor 0.190 to 0.240 $/h" in words
    assert f"interrupted {LOSS.at:%m-%d %H:%M}: outbid" in words


def test_the_pointer_gets_the_price_of_each_instant_and_the_loss() -> None:
    told = trail(chart.drawn(COURSE, chart.SMALL))
    assert told["at"] == sorted(told["at"], key=lambda at: float(at or 0))
    assert told["bid"] == [0.20, 0.20, 0.20, 0.25, 0.25]
    assert told["floor"] == [None, 0.19, 0.19, 0.24, 0.24]
    assert told["loss"] == [None, None, "outbid", None, None]
    assert told["at"][-1] == NOW.timestamp()


def test_the_pointer_gets_nothing_from_after_the_end() -> None:
    loss = dataclasses.replace(LOSS, at=ago(minutes=30))
    told = trail(chart.drawn(dataclasses.replace(COURSE, losses=[LOSS, loss], end=ago(hours=2)), chart.SMALL))
    assert told["at"] == [each.timestamp() for each in (COURSE.start, ago(hours=4), LOSS.at, ago(hours=2))]
    assert told["bid"] == [0.20, 0.20, 0.20, 0.20]
    assert told["loss"] == [None, None, "outbid", None]


def test_a_chart_of_another_year_shows_it() -> None:
    text = chart.drawn(dataclasses.replace(COURSE, year=NOW.year + 1), chart.LARGE)
    written = [each.text or "" for each in (*svg(text).iter("text"), *svg(text).iter("title"))]
    assert all(
        one.split()[-3 if "UTC" in one else -2].startswith(str(NOW.year)) for one in written if one[-3:-2] == ":"
    )
    assert f"interrupted {NOW.year}-" in (svg(text).get("aria-label") or "")


def test_without_a_price_there_is_no_chart() -> None:
    assert chart.drawn(chart.Course([], [], ago(hours=1), NOW, NOW.year), chart.SMALL) == ""
    assert chart.drawn(chart.Course(POINTS, [], NOW, NOW, NOW.year), chart.SMALL) == ""


@given(st.floats(0.001, 500), st.floats(0, 100))
def test_ticks_are_round_and_enclose_every_price(least: float, more: float) -> None:
    found = chart.ticks(least, least + more)
    assert found[0] <= least * 1.000001
    assert found[-1] >= (least + more) * 0.999999
    assert 2 <= len(found) <= chart.MOST_TICKS + 2
    gaps = {round(after - before, 9) for before, after in itertools.pairwise(found)}
    assert len(gaps) <= 2


@given(st.lists(st.floats(0, 50), min_size=1, max_size=60))
def test_any_prices_are_drawn_inside_the_box(bids: list[float]) -> None:
    points = [Price(ago(minutes=len(bids) - number), bid, None, None) for number, bid in enumerate(bids)]
    text = chart.drawn(chart.Course(points, [], points[0].at, NOW + timedelta(minutes=1), NOW.year), chart.SMALL)
    for path in svg(text).iter("path"):
        across = [float(value) for value in re.findall(r"[MH]([\d.-]+)", path.get("d") or "")]
        up = [float(value) for value in re.findall(r"(?:[V]|M[\d.-]+ )([\d.-]+)", path.get("d") or "")]
        assert all(0 <= value <= chart.SMALL.width for value in across)
        assert all(0 <= value <= chart.SMALL.height for value in up)
