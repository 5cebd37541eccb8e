"""A market that refuses our key: nothing can be ordered there, not even an end."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Refusal:
    """A market's last answers to our listings were that the key is unknown, or may not do this.

    A listing without an answer, or with any other one, ends it: an unknown key is not a refused one.
    """

    lasts: timedelta
    """Since the first of these answers."""
    is_since_start: bool = False
    """Whether it has given this daemon no good answer since it was started."""
