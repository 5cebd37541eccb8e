"""The port to every market: its questions and orders, and what each answer promises.

Invariants every adapter keeps:
1. `instances` is complete or raises; a partial listing is never returned.
2. A writing method sends at most one request. It returns only on the market's positive word, raises `Rejected` (or
   `OutOfFunds`, `Unreachable`, `NotFound`, `Throttled`, `Unauthorized`) only on proof that nothing was done, and
   `Ambiguous` otherwise.
3. No vendor word and no vendor unit leaves an adapter; text is bounded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Protocol

from agent.domain.market.gpu import GpuModel
from agent.domain.market.instance import Instance
from agent.domain.market.interruption import MarketEvent
from agent.domain.market.market_rules import MarketRules
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import Usd, UsdPerHour
from agent.domain.work.workload import Requirements, Runtype


class Capability(Enum):
    """Abilities of a market that not every market has."""

    INTERRUPTIBLE = "interruptible"
    REBID = "rebid"
    EVENTS = "events"
    CREDIT = "credit"


@dataclass(frozen=True, slots=True)
class OfferQuery:
    """A question for offers; narrow by design, since rows are rationed."""

    requirements: Requirements
    disk_gb: float
    """It enters no price; it is checked against the host's space."""
    tenures: frozenset[Tenure] = frozenset({Tenure.INTERRUPTIBLE, Tenure.ON_DEMAND})
    max_price: UsdPerHour | None = None
    """It saves rows; a market where a bid may wait for its price ignores it."""
    gpu_models: tuple[GpuModel, ...] = ()
    host_ids: tuple[str, ...] = ()
    """If not empty, all other hosts are excluded."""
    offer_ids: tuple[str, ...] = ()
    """If not empty, all other offers are excluded."""
    max_rows: int = 32
    """The most rows of one search."""
    is_sample: bool = False
    """Whether one search answers for all tenures."""
    spared_rows: int = 0
    """The rows of the day's ration that must be left, at least."""


@dataclass(frozen=True, slots=True)
class Login:
    """The registry of a private image, and the login there."""

    registry: str
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a service, and how it is requested."""

    port: int
    path: str
    within: timedelta = timedelta(seconds=5)
    """The most time for an answer."""
    every: timedelta = timedelta()
    """The time between two requests of a service that was ready; zero: as the market likes."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a rent."""

    tenure: Tenure
    bid: UsdPerHour | None
    """The most paid per hour for all GPUs; None on demand."""
    disk_gb: float
    image: str
    command: str = ""
    """The container's command; empty: the image's own."""
    onstart: str = ""
    """A script for a shell at the container's start."""
    environment: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Names and values of variables. Values may be secret and are never logged."""
    ports: tuple[int, ...] = ()
    """TCP ports of the container to publish."""
    runtype: Runtype = Runtype.AUTO
    ssh_keys: tuple[str, ...] = ()
    """Public keys that may log in."""
    login: Login | None = field(default=None, repr=False)
    template: str = ""
    """The id of the market's template for a container; empty: none."""
    network_volume: str = ""
    """The id of the account's network volume to mount; empty: none."""
    page: Page | None = None
    """The page that shows whether the service is ready, for a market that requests pages."""


@dataclass(frozen=True, slots=True)
class Account:
    """The account of a key."""

    account_id: str
    """Empty if the market does not show it."""
    credit: Usd | None
    """None if the market does not show it."""
    market_time: datetime | None
    """The time of the market's own clock in the answer; None if the answer has none."""


@dataclass(frozen=True, slots=True)
class Charge:
    """A line of the market's own bill: the amount of one instance on one day."""

    instance_id: str
    amount: Usd
    day: datetime
    """An instant of the UTC day."""


class InstanceKeys(Protocol):
    """The public ssh keys that a market registers with each instance."""

    async def shown(self, instance_id: str) -> Sequence[str]:
        """Return the keys of an instance. Raises: as `Market.instance`."""
        ...

    async def add(self, instance_id: str, key: str) -> None:
        """Add a key to those of an instance. Raises: as `Market.rebid`."""
        ...


class Market(Protocol):
    """A vendor whose API rents GPUs."""

    name: str

    async def offers(self, query: OfferQuery) -> Sequence[Offer]:
        """Return offers that may fit; the answer is a sample, so absence proves nothing.

        Raises: Throttled, Unavailable, Malformed, Unauthorized.
        """
        ...

    def search_delay(self, questions: int) -> float:
        """Return the seconds until so many questions for offers, at most four, are asked without a wait; 0 for now."""
        ...

    async def instances(self) -> Sequence[Instance]:
        """Return every instance of the account.

        Raises: Throttled, Unavailable, Malformed, Unauthorized; never a part.
        """
        ...

    async def instance(self, instance_id: str) -> Instance:
        """Return one instance.

        Raises: NotFound on the market's own word that there is none; else as `instances`.
        """
        ...

    async def rent(self, offer: Offer, terms: Terms, label: str) -> str:
        """Rent and return the instance id.

        Raises: Rejected (with `leftover_id` where the market left a stopped instance), OutOfFunds, Throttled,
            Unauthorized, Ambiguous.
        """
        ...

    async def rebid(self, instance_id: str, bid: UsdPerHour) -> None:
        """Change the bid. Raises: Rejected, NotFound, Throttled, Unauthorized, Ambiguous."""
        ...

    async def resume(self, instance_id: str) -> bool:
        """Start again; True when accepted at once, False when the market queued the start.

        Raises: Rejected, OutOfFunds, NotFound, Throttled, Unauthorized, Ambiguous.
        """
        ...

    async def pause(self, instance_id: str) -> None:
        """Stop, keep the disk, cancel a queued start. Raises: as `rebid`."""
        ...

    async def release(self, instance_id: str, *, is_gone: bool = False, is_gentle: bool = False) -> None:
        """End for good; also returns if the market says that the instance is already gone.

        `is_gone` means that a person has looked at the console where the machine is billed, and it is not there. A
        market whose own answers prove an end ignores it.

        `is_gentle` means that the work may first get its signal to stop, where the market can give one and waits for
        the work for less than a minute. Without it the end must not wait.

        Raises: Throttled, Unauthorized, Ambiguous.
        """
        ...

    async def account(self) -> Account:
        """Return the account. Raises: Throttled, Unavailable, Malformed, Unauthorized."""
        ...

    async def charges(self, since: datetime, until: datetime) -> Sequence[Charge]:
        """Return the market's bill by instance and UTC day. Raises: as `account`."""
        ...

    async def events(self, since: datetime) -> Sequence[MarketEvent]:
        """Return the market's record of our instances; empty if it keeps no record. Raises: as `account`."""
        ...

    async def logs(self, instance_id: str, lines: int) -> Sequence[str]:
        """Return the last lines that the container printed, bounded and cleaned; empty if there are none yet.

        Raises: as `account`, and NotFound.
        """
        ...

    def instance_keys(self) -> "InstanceKeys | None":
        """Return the registration of ssh keys with instances; None if the market has none."""
        ...

    def capabilities(self) -> frozenset[Capability]:
        """Return the present abilities of this market."""
        ...

    def rules(self) -> MarketRules:
        """Return what is different here from other markets; the same answer for as long as the program runs."""
        ...

    def not_sold(self) -> Mapping[Tenure, str]:
        """Return the tenures that the market does not sell to the account now, each with the reason in a sentence."""
        ...

    def server_time(self) -> datetime | None:
        """Return the time of the market's own clock in its last answer, also a refusal; None if the answer had none."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...
