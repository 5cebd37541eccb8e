"""The configuration as the program uses it: frozen, in the words and units of the domain."""

from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from agent.config.front_settings import Front
from agent.config.notify_settings import Notify
from agent.decide.limits.limits import Limits
from agent.domain.work.workload import Workload
from agent.ledger.server_address import ServerAddress
from agent.markets.market_record import MarketOptions


@dataclass(frozen=True, slots=True)
class MarketSettings:
    """One market."""

    name: str
    url: str
    """The address of its API."""
    simulated: str
    """The climate of the embedded simulator; empty for a live market."""
    credential: str
    """The name of the credential with the key; empty if a file has it."""
    credential_file: Path | None
    spend: bool
    """Whether the file lets gpubid spend money there."""
    options: MarketOptions | None = None
    """The keys that only this market has; None if it has none."""
    is_withdrawn: bool = False
    """Whether the last reload took back the permission to spend that the program started with."""

    @property
    def is_simulated(self) -> bool:
        """Whether nothing here can cost real money."""
        return bool(self.simulated)

    @property
    def why_unpaid(self) -> str:
        """Why nothing is paid for there by the file, or an empty text."""
        if self.may_spend:
            return ""
        if self.is_withdrawn:
            return f"spend = false in [markets.{self.name}] since a reload: set spend = true and reload to let it pay"
        return f"spend = false in [markets.{self.name}]: set spend = true to let it pay"

    @property
    def connect_options(self) -> MarketOptions | None:
        """The keys to connect with; None if there are none."""
        return self.options.on_simulated_market() if self.options is not None and self.is_simulated else self.options

    @property
    def is_on_this_machine(self) -> bool:
        """Whether its API is on this machine, as that of `gpubid simulate`; then its instances may be here too."""
        host = urlsplit(self.url).hostname or ""
        try:
            return self.is_simulated or host == "localhost" or ip_address(host).is_loopback
        except ValueError:
            return False

    @property
    def may_spend(self) -> bool:
        """Whether paying writes may be sent; a simulated market costs no money."""
        return self.is_simulated or (self.spend and not self.is_withdrawn)


@dataclass(frozen=True, slots=True)
class Listen:
    """The address to serve."""

    host: str
    port: int
    """0 takes any free port."""
    credential: str = ""
    """The name of the token for the page's orders; empty: the page takes no orders."""
    webhook_credential: str = ""
    """The name of the secret with which a market signs webhooks; empty: every webhook is refused."""
    names: tuple[str, ...] = ()
    """The host names that a request may use, besides addresses and `localhost`."""


@dataclass(frozen=True, slots=True)
class Operators:
    """Users of the daemon's socket: `group` may read (empty: the daemon's own), `uids` may give orders."""

    group: str = ""
    uids: tuple[int, ...] = ()
    may_group_order: bool = False


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of a whole agent.toml."""

    file: Path
    digest: str
    """The digest of the bytes of the file, and of all files that it includes or reads values from."""
    markets: tuple[MarketSettings, ...]
    limits: Limits
    workloads: tuple[Workload, ...] = field(repr=False)
    poll: timedelta
    """The time between two listings of a market."""
    ledger: Path
    listen: Listen
    strategies: Path | None
    """The folder of the operator's own strategy files; None without one."""
    operators: Operators = Operators()
    runtime: Path | None = None
    """The service manager's directory for files that end with the daemon; None without one."""
    notify: Notify = field(default_factory=Notify)
    recording_bytes: int = 0
    """The most bytes of recordings of plans; 0 if no plan is recorded."""
    log_bytes: int = 0
    """The most bytes of kept logs of containers."""
    fronts: tuple[Front, ...] = ()
    ledger_server: ServerAddress | None = None
    """The place of the ledger's tables on a server; then `ledger` names only the small files beside them."""

    def market(self, name: str) -> MarketSettings | None:
        """Return the settings of a market, or None for an unknown name."""
        return next((market for market in self.markets if market.name == name), None)
