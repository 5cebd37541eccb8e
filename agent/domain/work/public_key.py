"""Public ssh keys: a line of a .pub file, its identity without the comment, and its fingerprint."""

import base64
import binascii
import hashlib
from collections.abc import Iterable


def identity(line: str) -> str:
    """Return type and key of a line; two lines with another comment are the same key. Empty for no key."""
    words = line.split()
    return " ".join(words[:2]) if len(words) > 1 else ""


def missing(wanted: Iterable[str], shown: Iterable[str]) -> tuple[str, ...]:
    """Return the wanted keys that are not among the shown ones."""
    known = {identity(line) for line in shown}
    return tuple(line for line in wanted if identity(line) not in known)


def fingerprint(line: str) -> str:
    """Return the fingerprint as `ssh-keygen -l` prints it, or the type alone of what is no base64."""
    kind, _, rest = identity(line).partition(" ")
    try:
        raw = base64.b64decode(rest, validate=True)
    except (binascii.Error, ValueError):
        return kind
    return f"{kind} SHA256:{base64.b64encode(hashlib.sha256(raw).digest()).decode().rstrip('=')}"
