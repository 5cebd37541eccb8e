"""Removes keys from everything that is logged, and bounds the rest."""

import re
import threading
from collections.abc import Mapping, MutableMapping
from typing import Any
from urllib.parse import quote

REDACTED = "[redacted]"
LONGEST = 500
LONGEST_TRACEBACK = 16_000
MOST_ITEMS = 50
DEEPEST = 4
_SHORTEST_SECRET = 6

_SECRET_NAME = re.compile(r"(?i)(api_?key|authorization|password|passwd|secret|token|credential|environment|\benv\b)")
_LOOKS_SECRET = re.compile(
    r"(?i)(?P<lead>bearer\s+|api_?key[\"']?\s*[=:]\s*[\"']?)[^\s\"'&,;]+"
    r"|(?P<whole>\b[0-9a-f]{64}\b|\brpa_[A-Za-z0-9]{20,}|\bhf_[A-Za-z0-9]{20,})"
)


class Redactor:
    """A structlog processor that knows the program's secrets and recognises others by their shape."""

    def __init__(self) -> None:
        self._secrets: tuple[str, ...] = ()
        self._lock = threading.Lock()

    def register(self, secret: str) -> None:
        """Remove `secret` from everything from now on; a text too short for a secret would remove plain words."""
        if len(secret) < _SHORTEST_SECRET:
            return
        with self._lock:
            forms = {secret, quote(secret, safe="")}
            # Longest first: a secret inside another must not leave a part of it.
            self._secrets = tuple(sorted({*self._secrets, *forms}, key=len, reverse=True))

    def concealed(self, text: str) -> str:
        """Return `text` without the secrets that are registered, whole."""
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        return text

    def text(self, text: str, longest: int = LONGEST) -> str:
        """Return `text` without secrets, bounded."""
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        text = _LOOKS_SECRET.sub(lambda found: f"{found['lead'] or ''}{REDACTED}", text)
        return text if len(text) <= longest else f"{text[:longest]}... ({len(text)} characters)"

    def __call__(self, _logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """Return the event with every value redacted and bounded."""
        return {
            self.text(str(key)): self._named(str(key), value, LONGEST_TRACEBACK if key == "exception" else LONGEST)
            for key, value in event.items()
        }

    def _named(self, name: str, value: object, longest: int, depth: int = 0) -> object:
        if _SECRET_NAME.search(name) and not isinstance(value, bool | int | float | None):
            return REDACTED
        return self._value(value, longest, depth)

    def _value(self, value: object, longest: int, depth: int) -> object:
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, str):
            return self.text(value, longest)
        if isinstance(value, bytes | bytearray):
            return f"{len(value)} bytes"
        if depth >= DEEPEST:
            return self.text(str(value), longest)
        if isinstance(value, Mapping):
            items = list(value.items())[:MOST_ITEMS]
            return {self.text(str(key)): self._named(str(key), item, longest, depth + 1) for key, item in items}
        if isinstance(value, list | tuple | set | frozenset):
            return [self._value(item, longest, depth + 1) for item in list(value)[:MOST_ITEMS]]
        return self.text(str(value), longest)
