"""A cooldown: a time in which a refused offer or host is not tried again."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from agent.domain.market.host import HostKey
from agent.domain.record.expiry import Expiring


class CooldownKind(StrEnum):
    """The kinds of cooldowns, by their object or their cause."""

    OFFER = "offer"
    """An offer that was refused or taken, by its key."""
    HOST = "host"
    """A host that failed, was lost or was left: MARKET/ID."""
    OWNER = "owner"
    """The hosts of one owner, several of which were lost: MARKET/ID."""
    MARKET = "market"
    """A market that an operator's hold closes, or that rented what was not ordered."""
    SLOT = "slot"
    """A slot that has just rented."""
    COOL_OFF = "cool_off"
    """A slot of a service that was moved once without an explanation, and stopped again."""
    FULL = "full"
    """A lease, by its id, that cannot start on its host, which has no free GPU."""
    STORM = "storm"
    """A model of a market, MARKET/MODEL, that was interrupted too often; no interruptible offer of it is rented."""
    STARTS = "starts"
    """A model of a market, MARKET/MODEL, that did not start on several hosts."""
    REJECTED = "rejected"
    """A market that refused too many orders."""


Cooling = Mapping[CooldownKind, Mapping[str, str]]
"""The grounds of the cooldowns in force, by kind and key."""


@dataclass(frozen=True, slots=True)
class Cooldown(Expiring):
    """A cooldown of `key` until `until`."""

    kind: CooldownKind
    key: str
    """The object in cooldown. A host or an owner has its market in front: "vast/777"."""
    until: datetime  # pyright: ignore[reportIncompatibleVariableOverride]
    ground: str
    """The cause of the cooldown."""

    @property
    def place(self) -> tuple[str, str]:
        """The scope and the key."""
        return self.kind.value, self.key


def of_host(host: HostKey, until: datetime, ground: str) -> Cooldown:
    """Return the cooldown of a host."""
    return Cooldown(CooldownKind.HOST, str(host), until, ground)
