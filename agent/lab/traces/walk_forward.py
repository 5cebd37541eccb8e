"""Walk-forward splits: fitted on earlier cases, scored on later ones.

Invariants:
1. No case that is fitted on ends after a case that is held out begins: they share no tick.
2. Cases that do not lie in time (seeds) are split by their order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from agent.lab.bench.comparison import Case, Spanned

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Fold:
    """Places of the cases to fit on and of those held out, and when the part held out begins (None: no time)."""

    name: str
    fit: tuple[int, ...]
    held: tuple[int, ...]
    since: datetime | None


def forward(cases: Sequence[Case], count: int) -> tuple[Fold, ...]:
    """Return `count` folds, each held out part beginning where the one before ends.

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
