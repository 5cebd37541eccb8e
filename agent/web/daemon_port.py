"""The web's view of the daemon: the App carries out orders, and the process around it has deadlines and files."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol

from agent.clock import SteadyClock
from agent.config.settings import Config
from agent.cycle import Pass, Rules
from agent.decide.operators.notices import Notice
from agent.domain.record.intent import Intent
from agent.domain.work.order import Order
from agent.ledger.store import Ledger
from agent.markets.port import Market
from agent.web.reading.reload_json import Reloaded


class Orders(Protocol):
    """Carries out orders between two cycles, and has the state to show: the App."""

    ledger: Ledger
    clock: SteadyClock
    rules: Rules
    config: Config
    credential: Callable[[str], str]
    """Returns a credential by its name."""
    seen: Pass | None

    @property
    def markets(self) -> Mapping[str, Market]:
        """The markets, to read from."""
        ...

    async def say(self, order: Order, who: str) -> tuple[str, list[Intent]]:
        """Take an order of a person. Return its result and the intents that were sent at once."""
        ...

    def notices(self) -> tuple[Notice, ...]:
        """Return the notices about the whole fleet."""
        ...

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a task beside the cycles until the program closes."""
        ...

    def doubts(self) -> list[Intent]:
        """Return the intents in doubt that may bill."""
        ...


class Process(Protocol):
    """The daemon around the App: its deadlines and its files."""

    @property
    def refused(self) -> Sequence[str]:
        """The mistakes for which the last reload was refused; empty if it was applied."""
        ...

    def late(self) -> Sequence[str]:
        """Return the jobs that are past their deadline, as sentences."""
        ...

    def reload(self) -> Reloaded:
        """Read the files again, and return the result."""
        ...
