"""A cooldown: time in which a refused offer or host is not tried again."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from agent.domain.market.host import HostKey
from agent.domain.record.expiry import Expiring


class CooldownKind(StrEnum):
    """What rests, or after what."""

    OFFER = "offer"
    """An offer that was refused or taken, by its key."""
    HOST = "host"
    """A host that failed, was lost or was left: MARKET/ID."""
    OWNER = "owner"
    """The hosts of one owner, several of which were lost: MARKET/ID."""
    MARKET = "market"
    """A market that an operator's hold closes."""
    SLOT = "slot"
    """A slot that rented a moment ago."""
    COOL_OFF = "cool_off"
    """A slot of a service that was moved once without an explanation, and stopped again."""
    FULL = "full"
    """A lease, by its id, that cannot start where it is: its host has no free GPU."""
    STORM = "storm"
    """A model of a market, MARKET/MODEL, that was interrupted too often: nothing interruptible is rented of it."""
    STARTS = "starts"
    """A model of a market, MARKET/MODEL, that did not start on several hosts."""
    REJECTED = "rejected"
    """A market that refused too many orders."""


Cooling = Mapping[CooldownKind, Mapping[str, str]]
"""What rests now, by kind and key, and after what."""


@dataclass(frozen=True, slots=True)
class Cooldown(Expiring):
    """`key` of a kind rests until `until`."""

    kind: CooldownKind
    key: str
    """Which one; that of a host or an owner has its market: "vast/777"."""
    until: datetime
    ground: str
    """After what it rests."""

    @property
    def place(self) -> tuple[str, str]:
        """Scope and key."""
        return self.kind.value, self.key


def of_host(host: HostKey, until: datetime, ground: str) -> Cooldown:
    """Return the cooldown of a host."""
    return Cooldown(CooldownKind.HOST, str(host), until, ground)
