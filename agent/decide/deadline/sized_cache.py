"""Tables that are dear to build, kept while there is room: what was asked for longest ago goes first.

Room is counted in bytes. Counted in tables, one more than there is room for would have every one of them built anew in
every cycle, however small they are.
"""

from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar


class Sized(Protocol):
    """What can be kept."""

    @property
    def size(self) -> int:
        """How many bytes it takes."""
        ...


Key = TypeVar("Key", bound=Hashable)
Kept = TypeVar("Kept", bound=Sized)


class Shelf(Generic[Key, Kept]):
    """Keeps up to `most_bytes` of what `build` makes of keys; what was asked for last stays, however large."""

    def __init__(self, build: Callable[[Key], Kept], most_bytes: int) -> None:
        """Begin empty."""
        self.most_bytes = most_bytes
        self._build = build
        self._kept: dict[Key, Kept] = {}

    @property
    def size(self) -> int:
        """How many bytes all that is kept takes."""
        return sum(each.size for each in self._kept.values())

    def get(self, key: Key) -> Kept:
        """Return what is kept of a key, or build it; equal keys share one."""
        made = self._kept.pop(key) if key in self._kept else self._build(key)
        self._kept[key] = made
        while len(self._kept) > 1 and self.size > self.most_bytes:
            del self._kept[next(iter(self._kept))]
        return made

    def clear(self) -> None:
        """Keep nothing."""
        self._kept.clear()
