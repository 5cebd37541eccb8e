"""The market's free text, made safe to store and show: bounded, on one line, without control characters."""

from functools import lru_cache

MAX_TEXT = 200


def clean(text: str, limit: int = MAX_TEXT) -> str:
    """Return the text without control, bidirectional and other unprintable characters, at most `limit` long."""
    # The slice before the filter limits the work for a hostile megabyte.
    kept = text[: 4 * limit]
    if not kept.isprintable():
        kept = "".join(character if character.isprintable() else " " for character in kept)
    return " ".join(kept.split())[:limit]


@lru_cache(maxsize=16_384)
def interned(text: str) -> str:
    """Return the clean text, the same object for the same text: thousands of rows share a few places and models."""
    return clean(text)
