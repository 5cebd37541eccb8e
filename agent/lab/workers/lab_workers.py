"""Workers that compute the parts of a work: this process, or a pool of processes on this machine.

Invariants:
1. A work is a pure function of a problem and a part. The worker that computes a part changes no result.
2. Results come in the order of the parts.
"""

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

P = TypeVar("P", contravariant=True)
A = TypeVar("A", contravariant=True)
R = TypeVar("R")


class Work(Protocol[P, A, R]):
    """A pure function of a problem and a part. It is a plain value, because it is sent to other processes."""

    def done(self, problem: P, part: A, /) -> R:
        """Return the result of a part."""
        ...

    def is_true(self, problem: P, part: A, result: R, /) -> bool:
        """Compute a small share of a part again, and return whether the result of another machine agrees with it."""
        ...


class Workers(Protocol):
    """Something that computes parts of a work at the same time."""

    def map(self, work: Work[P, A, R], problem: P, parts: Sequence[A]) -> Iterator[R]:
        """Yield the result of each part, in order."""
        ...


@dataclass(frozen=True, slots=True)
class LocalWorkers:
    """Processes of this machine. One process means this one."""

    count: int

    def map(self, work: Work[P, A, R], problem: P, parts: Sequence[A]) -> Iterator[R]:
        """Yield the result of each part, in order."""
        if self.count <= 1:
            yield from (work.done(problem, part) for part in parts)
            return
        # A fresh process holds no locks or threads of this one.
        fresh = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(self.count, mp_context=fresh, initializer=_take, initargs=(work, problem)) as pool:
            yield from pool.map(_done, parts)


_taken: list[tuple[Work[Any, Any, Any], Any]] = []
"""The work and the problem of this process. They are sent once, not with every part."""


def _take(work: Work[Any, Any, Any], problem: object) -> None:
    _taken[:] = [(work, problem)]


def _done(part: Any) -> Any:  # noqa: ANN401 - the types of the work in this process
    work, problem = _taken[0]
    return work.done(problem, part)
