"""The record of a market: all that the rest of the program knows about a vendor, in one value.

A package registers its record in the entry-point group `gpubid.markets`, under the name of the market's table in
agent.toml. A record is read by every verb, so it imports its adapter only in the functions that need it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from pydantic import BaseModel, ConfigDict

from agent.domain.market import gpu
from agent.domain.market.market_rules import MarketRules

if TYPE_CHECKING:
    from agent.clock import Clock
    from agent.domain.market.interruption import MarketEvent
    from agent.markets import port, transport
    from agent.markets.http_exchange import Exchange


class MarketOptions(BaseModel):
    """The keys of `[markets.NAME]` that only this market has. A docstring under a key describes it to operators."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    def on_simulated_market(self) -> Self:
        """Return the keys as they count on a simulated market, which does not know the real account."""
        return self


class Connect(Protocol):
    """Returns the market at a URL, given a source of its key, the time, and a random number from 0 to 1.

    `options` are the market's own keys; None if nobody gave any. Requests go `through` the network unless something
    else carries them.
    """

    def __call__(
        self,
        url: str,
        key: "transport.Key",
        clock: "Clock",
        jitter: Callable[[], float],
        /,
        *,
        options: MarketOptions | None = None,
        through: "Exchange | None" = None,
    ) -> "port.Market":
        """Connect; nothing is asked yet."""
        ...


class IsWide(Protocol):
    """Returns whether a key may do more than we need; None if the market does not show it."""

    async def __call__(
        self, url: str, key: "transport.Key", clock: "Clock", jitter: Callable[[], float], /
    ) -> bool | None:
        """Ask with requests that only read. Raises: Throttled, Unavailable."""
        ...


@dataclass(frozen=True, slots=True)
class KeyScope:
    """How `gpubid doctor` finds out whether a key may do too much."""

    is_wide: IsWide
    needed: tuple[str, ...]
    """The permissions that our calls need, in the vendor's words."""


class Finding(NamedTuple):
    """The result of a check of this market alone."""

    about: str
    """The name of the check."""
    sentence: str
    """What was found."""
    fix: str = ""
    """The advice; without one there is nothing to fix."""
    is_failure: bool = False
    """Whether a finding with a `fix` is a failure, and not only a warning."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question of `gpubid init` for one of the market's own keys."""

    key: str
    text: str
    default: str = ""
    is_number: bool = False
    """Whether the answer is a positive number such as an amount of dollars."""
    is_optional: bool = False
    """Whether it may stay without an answer."""
    is_list: bool = False
    """Whether the answer is a list of words, with commas between them."""


class FirstAnswers(NamedTuple):
    """Answers that `gpubid init` suggests."""

    max_price: str
    """Dollars an hour of one slot."""
    per_day: str
    """Dollars a day of everything."""
    strategy: str


AT_A_BID = FirstAnswers("0.45", "12", "patient")
"""The answers for a market that sells capacity at a bid."""


@dataclass(frozen=True, slots=True)
class StopRequest:
    """A request about an instance."""

    method: str
    path: str
    """The path below the market's address. `{instance}` in it stands for the instance's id."""
    body: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InstanceKey:
    """The key that a market gives an instance for requests about this instance alone."""

    id_variable: str
    """The variable of the container that contains the instance's id."""
    key_variable: str
    """The variable of the container that contains the key."""
    stop: StopRequest
    """Stops the instance; its disk stays."""
    end: StopRequest
    """Ends it with its disk."""


class Figure(NamedTuple):
    """A raw figure of a saved answer, and the name of its key there."""

    key: str
    value: object


class SavedOffer(NamedTuple):
    """An offer in a saved answer; a figure that the answer lacks has the value None."""

    where: str
    """Its place in the answer, such as `offers[0]`."""
    gpu: str
    """The vendor's name of its GPU model."""
    gpus: int
    lowest_bid: Figure
    """Dollars an hour for all its GPUs."""
    ask: Figure
    """Dollars an hour for all its GPUs."""
    is_rentable: bool = True


class UnreadableAnswer(Exception):
    """A saved file is no answer of the market's search; the text names the key and what is wrong with it."""

    def __init__(self, key: str, sentence: str) -> None:
        """Take the wrong key, and a sentence that follows the key's name."""
        super().__init__(sentence)
        self.key = key


@dataclass(frozen=True, slots=True)
class SavedSearches:
    """How `gpubid lab import NAME` reads saved answers of a search for offers."""

    command: str
    """The vendor's own command that prints such an answer."""
    offers: Callable[[object], Sequence[SavedOffer]]
    """Returns the offers in the JSON of an answer. Raises: UnreadableAnswer."""


class Delivery(NamedTuple):
    """A signed request to our receiver."""

    body: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Webhooks:
    """How a market reports an event at once: a signed request to `/webhooks/NAME` of the daemon starts a cycle."""

    register: Callable[[str, str, "transport.Key", "Clock"], Awaitable[str]]
    """Registers our address at the market's, and returns the secret of its signatures. Raises: MarketError."""
    event: Callable[[Delivery, bytes, datetime], "MarketEvent | None"]
    """Returns the event of a delivery, or None unless it is signed with our secret and fresh."""
    trial: Callable[[str, datetime], Delivery]
    """Returns a delivery signed with a secret at an instant, of an event that means nothing."""


async def no_findings(_market: "port.Market", _options: MarketOptions | None, _slots: int, /) -> Sequence[Finding]:
    """Find nothing."""
    return ()


Findings = Callable[["port.Market", MarketOptions | None, int], Awaitable[Sequence[Finding]]]
"""Returns what it found; the number is that of the slots that may run at the market."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketRecord:
    """All that the rest of the program knows about a market."""

    name: str
    """The name of its table in agent.toml, in labels, metrics and the ledger: a letter, then letters, digits or _."""
    title: str
    """The vendor's name as the vendor writes it."""
    url: str
    """The address of its API."""
    url_means: str = "Address of the market's API."
    """The description of the key `url`, for operators."""
    documentation: str
    """The address of the vendor's documentation."""
    rules: MarketRules
    """What is different there from other markets, as the adapter also says it."""
    connect: Connect
    """Returns the adapter."""
    options: type[MarketOptions] | None = None
    """The keys of its table that only it has."""
    needed_live: tuple[str, ...] = ()
    """The keys among `options` that a live market must have."""
    needed_to_list: tuple[str, ...] = ()
    """The keys among `options` on which it depends which instances a listing has. `gpubid kill` does not guess them."""
    questions: tuple[Question, ...] = ()
    """Questions of `gpubid init` for this market, besides those for every market."""
    first_answers: FirstAnswers = AT_A_BID
    """What `gpubid init` suggests there."""
    fallback_page: str = ""
    """The title of the handbook's page on it as a fallback of other markets. `gpubid init` names the page, if any."""
    key_scope: KeyScope | None = None
    """How `gpubid doctor` finds out how much a key may do."""
    findings: Findings = field(default=no_findings)
    """Further checks of `gpubid doctor`, with requests that only read. Raises: MarketError."""
    check_query: Callable[[str], object] | None = None
    """Raises ValueError for a workload's `query` that its search grammar does not know; None if it has no grammar."""
    most_script: int | None = None
    """The most characters that it takes as the start script of a container."""
    restarts_ended: bool = False
    """Whether its instance goes on after the end of its container, so that only a log or a guard shows the end."""
    shows_gpu_use: bool = True
    """Whether it shows how much the GPUs of an instance are used; else only a guard does."""
    shows_datacenter: bool = False
    """Whether its offers say whether a host is in a data centre."""
    mounts_volumes: bool = False
    """Whether its instances can mount a network volume of the account."""
    opens_ports: bool = True
    """Whether the ports of its containers can be reached from outside."""
    asks_pages: bool = False
    """Whether it requests a page of a service itself, and reports whether the page answers."""
    own_cards: frozenset[str] = frozenset()
    """Names of cards that no other market uses, such as one without a bus."""
    keeps_logs: bool = True
    """Whether it keeps what containers print; without that, a `done_line` is never seen there."""
    instance_key: InstanceKey | None = None
    """The key that it gives an instance, if any: the dead man's switch of a guard stops the instance with it."""
    keys_at_start: str = "given to the container at its start"
    """How the ssh keys of a workload come to a starting instance: the rest of a sentence after "the keys are"."""
    shell_by: str = ""
    """How to open a shell where its instances have no address for ssh, with `{rent}` for the id of the lease's rent."""
    gpu_model: Callable[[str], gpu.GpuModel] = gpu.model
    """Returns our name of a GPU model from the vendor's name, for comparing a rehearsal with a recording."""
    saved_searches: SavedSearches | None = None
    """How `gpubid lab import` reads saved answers of its search, if it does."""
    webhooks: Webhooks | None = None
    """How it reports an event at once, if it does."""
    registers_keys: bool = False
    """Whether it registers ssh keys with running instances."""

    @property
    def credential(self) -> str:
        """The name of the credential that `gpubid init` writes."""
        return f"{self.name}_api_key"
