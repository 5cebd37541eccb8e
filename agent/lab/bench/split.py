"""The two halves of a problem's cases: one to fit and to look at, and one that is kept to judge what was chosen.

The cases are divided at the middle of their time. The half to fit has those that end by then, the half to judge those
that begin then or later. A case across the middle is in neither, so no instant is in both. Cases without a time, such
as seeds, are divided in their order.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from agent.lab.bench.comparison import Spanned

C = TypeVar("C")
S = TypeVar("S", bound="Spanned")


class Split(Enum):
    """The half of the cases that is run; by default all of them."""

    FIT = "fit"
    JUDGE = "judge"


def half(cases: Sequence[C], split: Split | None, of: Callable[[C], tuple[float, float]]) -> tuple[C, ...]:
    """Return the cases of a half. `of` is the beginning and end of a case, in any unit of time."""
    if split is None or not cases:
        return tuple(cases)
    times = [of(case) for case in cases]
    middle = (min(begin for begin, _ in times) + max(end for _, end in times)) / 2
    return tuple(
        case
        for case, (begin, end) in zip(cases, times, strict=True)
        if (end <= middle if split is Split.FIT else begin >= middle)
    )


def half_of_seeds(seeds: Iterable[int], split: Split | None) -> tuple[int, ...]:
    """Return the seeds of a half: of an odd number the one in the middle is in neither."""
    numbered = list(enumerate(seeds))
    return tuple(seed for _, seed in half(numbered, split, lambda each: (each[0], each[0] + 1)))


def half_of_windows(cases: Sequence[S], split: Split | None) -> tuple[S, ...]:
    """Return the half of cases that have a span of time."""
    return half(cases, split, lambda case: (case.span[0].timestamp(), case.span[1].timestamp()))


def about(split: Split | None) -> Mapping[str, object]:
    """Return what a table says of its half; nothing of all cases."""
    return {} if split is None else {"split": f"the half to {split.value}"}
