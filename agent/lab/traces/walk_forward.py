"""Walk-forward splits: the fit uses earlier cases, the score later ones.

Invariants:
1. Every case of the fit ends before the first held-out case begins, so that they share no tick.
2. Cases without a time (seeds) are split by their order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from agent.lab.bench.comparison import Case, Spanned

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Fold:
    """Indices of the cases of the fit and of held-out cases, and the beginning of the held-out part (None: no time)."""

    name: str
    fit: tuple[int, ...]
    held: tuple[int, ...]
    since: datetime | None


def forward(cases: Sequence[Case], count: int) -> tuple[Fold, ...]:
    """Return `count` folds. Each held-out part begins where the one before ends.

    Raises:
        ValueError: there is too little time for so many.
    """
    spans = [_span(case, place) for place, case in enumerate(cases)]
    first_end, last_start = min(span[1] for span in spans), max(span[0] for span in spans)
    if last_start <= first_end:
        raise ValueError("no case begins after another has ended: nothing can be held out; name longer traces")
    step = (last_start - first_end) / (count + 1)
    has_time = all(isinstance(case, Spanned) for case in cases)
    found = []
    for number in range(count):
        since = first_end + step * (number + 1)
        until = last_start + timedelta(microseconds=1) if number == count - 1 else since + step
        fit = tuple(place for place, span in enumerate(spans) if span[1] <= since)
        held = tuple(place for place, span in enumerate(spans) if since <= span[0] < until)
        if not held:
            raise ValueError(f"there is too little time for {count} folds; name fewer with --folds")
        found.append(Fold(f"fold-{number + 1}", fit, held, since if has_time else None))
    return tuple(found)


def _span(case: Case, place: int) -> tuple[datetime, datetime]:
    if isinstance(case, Spanned):
        return case.span
    return _EPOCH + timedelta(seconds=place), _EPOCH + timedelta(seconds=place + 1)
