"""A cooldown: time in which a refused offer or host is not tried again."""

from dataclasses import dataclass
from datetime import datetime

HELD = "held"
"""The scope of a hold for a person, under "slot:NAME/NUMBER" or "workload:NAME"."""


@dataclass(frozen=True, slots=True)
class Cooldown:
    """`key` of `scope` ("offer", "host", "slot" or "market") rests until `until`; `code` is the reason.

    The key of a host or an owner has its market: "vast/777".
    """

    scope: str
    key: str
    until: datetime
    code: str
