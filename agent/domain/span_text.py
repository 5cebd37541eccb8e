"""A length of time as people read it, in its two largest units: `2 h 10 min`."""

from datetime import timedelta

UNITS = (
    ("days", timedelta(days=1)),
    ("h", timedelta(hours=1)),
    ("min", timedelta(minutes=1)),
    ("s", timedelta(seconds=1)),
)
"""Each unit with its length, the largest first."""
_MINUTE = timedelta(minutes=1)


def minutes(span: timedelta) -> str:
    """Return a length of time, rounded down to whole minutes, for sentences that are said in each cycle: `0 min`."""
    whole = span // _MINUTE * _MINUTE
    return of(whole) if whole > timedelta() else "0 min"


def of(span: timedelta) -> str:
    """Return a length of time, in whole seconds, rounded down: `3 days 4 h`, `45 min`; a negative one is `0 s`."""
    counts: list[tuple[int, str]] = []
    for name, size in UNITS:
        count, span = divmod(max(span, timedelta()), size)
        counts.append((count, "day" if name == "days" and count == 1 else name))
    first = next((place for place, (count, _) in enumerate(counts) if count), len(counts) - 1)
    said = [f"{count} {name}" for count, name in counts[first : first + 2] if count]
    return " ".join(said) or "0 s"
