"""The measurements of a lease's guard, in words. They have our own figures only, never a text from the host."""

from datetime import datetime

from agent.domain import span_text
from agent.domain.record.guard_figures import GuardFigures

_GIGABYTE = 1e9


def words(figures: GuardFigures | None, now: datetime) -> str:
    """Return the figures in one line, or an empty text without a guard that reports to a bucket."""
    if figures is None:
        return ""
    progress = None if figures.progress is None else f"progress {figures.progress:g}"
    size = None if figures.checkpoint_bytes is None else f"of {figures.checkpoint_bytes / _GIGABYTE:.3g} GB"
    spans = (
        ("made", figures.took_seconds),
        ("uploaded", figures.upload_seconds),
        ("restored", figures.restore_seconds),
    )
    took = [f"{what} in {seconds:.3g} s" for what, seconds in spans if seconds is not None]
    return "; ".join(part for part in (progress, _kept(figures, now), size and f"checkpoint {size}", *took) if part)


def _kept(figures: GuardFigures, now: datetime) -> str:
    if not figures.manifest:
        return "no checkpoint in the bucket yet"
    if figures.kept_at is None:
        return "last checkpoint in the bucket of unknown age"
    return f"last checkpoint in the bucket {span_text.minutes(now - figures.kept_at)} old"
