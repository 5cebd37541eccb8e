"""The server's rewriting of variables and registry logins: `$$` is a dollar, and `${{ secrets.NAME }}` is a secret.

It rewrites up to the first dollar that is not doubled, and a secret anywhere after that. This server has no secrets.
"""

import re
from collections.abc import Mapping
from typing import Any

_DOUBLED = re.compile(r"(?:[^$]|\$\$)*")
_OPENING = "${{"


def interpolated(text: str) -> str:
    """Return what the container gets."""
    head = _DOUBLED.match(text)
    kept = head[0] if head is not None else ""
    return kept.replace("$$", "$") + text[len(kept) :]


def variables(order: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables that the container of an order gets."""
    return {str(name): interpolated(str(text)) for name, text in (order.get("env") or {}).items()}


def is_refused(order: Mapping[str, Any]) -> bool:
    """Return whether a variable or the login of an order names a secret, which this server has not."""
    texts = [*(order.get("env") or {}).values(), *(order.get("registry_auth") or {}).values()]
    return any(_OPENING in _DOUBLED.sub("", str(text), count=1) for text in texts)
