"""Reads S3's answers in XML by patterns within bounds, because a hostile text could keep a parser busy for ever."""

from __future__ import annotations

import calendar
import re
import time
from dataclasses import dataclass
from email.utils import mktime_tz, parsedate_tz
from typing import Callable, Iterator
from urllib.parse import unquote_plus
from xml.sax.saxutils import unescape

LARGEST_BYTES = 8 * 1024 * 1024
_LONGEST_SAID = 200
_QUOTES = {"&quot;": '"', "&apos;": "'", "&#34;": '"', "&#39;": "'"}


@dataclass(frozen=True)
class FoundObject:
    """A key of a listing, its size, and when it was written, in seconds since 1970 by the store's clock."""

    key: str
    size_bytes: int
    written: float


@dataclass(frozen=True)
class FoundUpload:
    """An unfinished upload: its key, its id, and when it was begun, in seconds since 1970 by the store's clock."""

    key: str
    id: str
    begun: float


@dataclass(frozen=True)
class FoundPart:
    """A part that the store has of an unfinished upload."""

    number: int
    size_bytes: int
    tag: str


def value(text: str, name: str) -> str:
    """Return the text of the first element with a name, or an empty text without one."""
    found = re.search(rf"<{name}>([^<]*)</{name}>", text)
    return unescape(found[1], _QUOTES).strip() if found else ""


def refusal(body: bytes) -> tuple[str, str]:
    """Return the code and the message of an error, each short and on one line. Without an error both are empty."""
    text = body.decode("utf-8", "replace")
    return _plain(value(text, "Code")), _plain(value(text, "Message"))


def _decoder(text: str) -> Callable[[str], str]:
    """Return the function that decodes the keys of a listing. Not every store encodes them when asked to."""
    return unquote_plus if value(text, "EncodingType") == "url" else str


def objects(text: str) -> Iterator[FoundObject]:
    """Yield the objects of a listing."""
    key = _decoder(text)
    for element in _elements(text, "Contents"):
        yield FoundObject(
            key(value(element, "Key")), _int(value(element, "Size")), _time(value(element, "LastModified"))
        )


def uploads(text: str) -> Iterator[FoundUpload]:
    """Yield the unfinished uploads of a listing."""
    key = _decoder(text)
    for element in _elements(text, "Upload"):
        yield FoundUpload(key(value(element, "Key")), value(element, "UploadId"), _time(value(element, "Initiated")))


def parts(text: str) -> Iterator[FoundPart]:
    """Yield the parts of a listing."""
    for element in _elements(text, "Part"):
        yield FoundPart(
            _int(value(element, "PartNumber")), _int(value(element, "Size")), value(element, "ETag").strip('"')
        )


def date(text: str | None) -> float | None:
    """Return the seconds since 1970 of an HTTP date."""
    parsed = parsedate_tz(text) if text else None
    try:
        return float(mktime_tz(parsed)) if parsed is not None else None
    except (ValueError, OverflowError):
        return None


def _elements(text: str, name: str) -> Iterator[str]:
    begin, end = f"<{name}>", f"</{name}>"
    place = text.find(begin)
    while place >= 0:
        close = text.find(end, place)
        if close < 0:
            return
        yield text[place + len(begin) : close]
        place = text.find(begin, close)


def _int(text: str) -> int:
    return int(text) if text.isdigit() and len(text) < 20 else 0  # noqa: PLR2004 - what 64 bits hold


def _time(text: str) -> float:
    try:
        return float(calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")))
    except ValueError:
        return 0.0


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)[:_LONGEST_SAID]
