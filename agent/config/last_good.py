"""A value read from files that is replaced whole or not at all."""

from collections.abc import Callable
from typing import Generic, TypeVar

from agent.config.problems import ConfigError, Problem

T = TypeVar("T")


class LastGood(Generic[T]):
    """The last value that `read` gave without an error.

    Invariants:
    1. `current` is always one whole value that was valid when read.
    2. `reload` never raises for a bad file: it tells the problems and leaves `current` as it was.
    """

    def __init__(self, read: Callable[[], T]) -> None:
        """Read for the first time.

        Raises:
            ConfigError: there is no good value to begin with.
        """
        self._read = read
        self.current = read()
        self.problems: tuple[Problem, ...] = ()

    @property
    def is_up_to_date(self) -> bool:
        """Whether the last reload succeeded."""
        return not self.problems

    def reload(self) -> tuple[Problem, ...]:
        """Read again and return what stood in the way; nothing means that `current` is new."""
        try:
            self.current = self._read()
        except ConfigError as error:
            self.problems = error.problems
        else:
            self.problems = ()
        return self.problems
