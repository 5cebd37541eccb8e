"""The history of a slot over the last day, with its lost work, as a band of SVG and in words."""

from datetime import datetime, timedelta

from markupsafe import Markup, escape

from agent.domain import span_text
from agent.web.feed.slot_history import Doing, History, Stretch

WIDTH, HEIGHT = 600, 22
LOST = (13, 9)
"""Top and height of the mark of lost work. It covers the lower half, so that the stretch is visible too."""
MARKS = 6
"""Hours between two marks on the axis."""


def drawn(history: History, since: datetime, now: datetime) -> Markup:
    """Return the band, with a tooltip for each stretch."""
    if now <= since:
        return Markup("")
    seconds = (now - since).total_seconds()

    def across(at: datetime) -> float:
        return min(max((at - since).total_seconds() / seconds, 0.0), 1.0) * WIDTH

    def field(each: Stretch, name: str, top: int, height: int, said: str) -> str:
        left = across(each.begins)
        width = max(across(each.ends) - left, 1.0)
        place = f'x="{left:.1f}" y="{top}" width="{width:.1f}" height="{height}"'
        year = "" if each.begins.year == now.year else f"{each.begins:%Y}-"
        span = f"{year}{each.begins:%m-%d %H:%M} to {each.ends:%H:%M} UTC, {span_text.of(each.span)}"
        return f'<rect class="{name}" {place}><title>{escape(said)}, {span}</title></rect>'

    parts = [field(each, each.doing, 0, HEIGHT, each.doing) for each in history.stretches]
    parts += [field(each, "lost", *LOST, f"work lost: {each.cause}") for each in history.lost]
    at = now - timedelta(hours=MARKS)
    while at > since:
        parts.append(f'<path d="M{across(at):.1f} 0V{HEIGHT}"/>')
        at -= timedelta(hours=MARKS)
    frame = f'class="band" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img"'
    return Markup(f'<svg {frame} aria-label="{escape(words(history))}">{"".join(parts)}</svg>')  # noqa: S704 - escaped


def words(history: History) -> str:
    """Return the history in words: the time in each state."""
    spans = [(doing.value, history.total(doing)) for doing in Doing]
    times = "1 interruption" if len(history.lost) == 1 else f"{len(history.lost)} interruptions"
    spans.append((f"work lost in {times}", history.total_lost))
    return ", ".join(f"{name} {span_text.of(span)}" for name, span in spans if span) or "nothing is known"
