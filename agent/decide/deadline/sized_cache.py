"""A cache of tables that are expensive to build: the least recently used one is removed first.

The limit is in bytes. With a limit on their number, one table too many would make every cycle build all of them again,
however small they are.
"""

from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar


class Sized(Protocol):
    """A value that the cache can keep."""

    @property
    def size(self) -> int:
        """How many bytes it takes."""
        ...


Key = TypeVar("Key", bound=Hashable)
Kept = TypeVar("Kept", bound=Sized)


class SizedCache(Generic[Key, Kept]):
    """Keeps up to `most_bytes` of values that `build` makes of keys; the value used last is kept, however large."""

    def __init__(self, build: Callable[[Key], Kept], most_bytes: int) -> None:
        """Begin empty."""
        self.most_bytes = most_bytes
        self._build = build
        self._kept: dict[Key, Kept] = {}

    @property
    def size(self) -> int:
        """The bytes of all kept values."""
        return sum(each.size for each in self._kept.values())

    def get(self, key: Key) -> Kept:
        """Return the kept value of a key, or build it; equal keys share one."""
        value = self._kept.pop(key) if key in self._kept else self._build(key)
        self._kept[key] = value
        self.trim()
        return value

    def trim(self) -> None:
        """Remove values until the rest takes at most `most_bytes`: a kept value may have grown."""
        while len(self._kept) > 1 and self.size > self.most_bytes:
            del self._kept[next(iter(self._kept))]

    def clear(self) -> None:
        """Remove all values."""
        self._kept.clear()
