"""The interface of a simulated world for its own parts; the world itself imports its parts."""

from typing import Any, Protocol

from agent.simulator.climate import Climate
from agent.simulator.vast.host_auction import Yard
from agent.simulator.vast.model import Contract, Host


class HostOwner(Protocol):
    """Raises prices and announces maintenance for the hosts."""

    def raise_price(self, machine_id: int, factor: float) -> Any:  # noqa: ANN401 - nobody here reads it
        """Ask more for a host."""
        ...

    def plan_maintenance(self, machine_id: int, notice_seconds: float, seconds: float) -> Any:  # noqa: ANN401
        """Announce a downtime of a host."""
        ...


class Stage(Protocol):
    """A simulated world, as its parts see it."""

    climate: Climate
    hosts: dict[int, Host]

    @property
    def landlord(self) -> HostOwner:
        """The actor for the hosts."""
        ...

    @property
    def now(self) -> float:
        """The market's time, epoch seconds."""
        ...

    @property
    def credit(self) -> float:
        """The credit of the account, dollars."""
        ...

    @property
    def contracts(self) -> dict[int, Contract]:
        """Every contract there ever was, by number."""
        ...

    def live_contracts(self) -> list[Contract]:
        """Return the contracts that have not ended."""
        ...

    def attended(self) -> list[Yard]:
        """Return the host auctions in which something of ours may happen."""
        ...

    def set_credit(self, dollars: float) -> None:
        """Set the credit of the account."""
        ...

    def set_host_offline(self, machine_id: int, until: float | None) -> None:
        """Let a host fall silent until a time."""
        ...

    def set_host_gone(self, machine_id: int) -> None:
        """Let a host leave for good."""
        ...

    def charged_total(self) -> float:
        """Return the charges so far, in dollars."""
        ...

    def billing_now(self) -> list[int]:
        """Return the contracts that cost something now."""
        ...
