"""The data for judging a new configuration as JSON. The daemon gives them to a person who may not read its ledger."""

from collections.abc import Mapping
from typing import Any

import msgspec

from agent.observe.reload_review import Holdings


def encoded(present: Holdings) -> bytes:
    """Return the holdings as JSON."""
    return msgspec.json.encode(present)


def decoded(said: Mapping[str, Any]) -> Holdings:
    """Return the holdings in JSON."""
    return msgspec.convert(said, Holdings)
