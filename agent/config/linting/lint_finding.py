"""A setting that is probably a mistake."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding."""

    key: str
    """The key, as in the file."""
    sentence: str
    """What is odd about it."""
    fix: str
    """What to write instead."""
