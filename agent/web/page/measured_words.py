"""The measurements of a lease's guard, in words. They have our own figures only, never a text from the host."""

from datetime import datetime, timedelta

from agent.domain.record.guard_figures import GuardFigures

_GIGABYTE = 1e9


def words(told: GuardFigures | None, now: datetime) -> str:
    """Return the figures in one line, or an empty text without a guard that reports to a bucket."""
    if told is None:
        return ""
    progress = None if told.progress is None else f"progress {told.progress:g}"
    size = None if told.checkpoint_bytes is None else f"of {told.checkpoint_bytes / _GIGABYTE:.3g} GB"
    spans = (("made", told.took_seconds), ("uploaded", told.upload_seconds), ("restored", told.restore_seconds))
    took = [f"{what} in {seconds:.3g} s" for what, seconds in spans if seconds is not None]
    return "; ".join(part for part in (progress, _kept(told, now), size and f"checkpoint {size}", *took) if part)


def _kept(told: GuardFigures, now: datetime) -> str:
    if not told.manifest:
        return "no checkpoint in the bucket yet"
    if told.kept_at is None:
        return "last checkpoint in the bucket of unknown age"
    return f"last checkpoint in the bucket {max(now - told.kept_at, timedelta()) / timedelta(minutes=1):.0f} min old"
