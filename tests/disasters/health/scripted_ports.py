"""The ports of simulated containers without a socket: a connection is refused unless the program is truly ready."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from agent.clock import SteppedClock
from agent.simulator.instances import program
from agent.simulator.instances.rented import Rented
from tests.disasters.exchange import Process
from tests.support.steered import Simulator

FIRST_NUMBER = 20_000


class ScriptedPorts:
    """The doors of Vast's market, and the daemon's way to them."""

    def __init__(self, simulator: Simulator, clock: SteppedClock) -> None:
        self._simulator = simulator
        self._clock = clock
        self._numbers: dict[tuple[int, int], int] = {}
        self._acting: Callable[[], Process | None] = lambda: None
        self.refused: dict[str, list[float]] = {}
        """The times of connections that an instance refused, by its id, since it last took one."""
        simulator.surface.records.doors = self  # type: ignore[assignment]

    # --- as the market's listing has them ---------------------------------------------------------------------------
    def ports(self, contract: Rented) -> dict[int, int]:
        """Return {port of the container: port outside}."""
        names = ((contract.contract_id, number) for number in contract.ports)
        return {key[1]: self._numbers.setdefault(key, FIRST_NUMBER + len(self._numbers)) for key in names}

    def attend(self, contracts: Iterable[Rented], now: float) -> None:
        """Do nothing: each connection asks for itself."""

    def close(self) -> None:
        """Do nothing: there is no socket to close."""

    # --- as the daemon connects to them -----------------------------------------------------------------------------
    @contextmanager
    def opened(self, acting: Callable[[], Process | None]) -> Iterator[None]:
        """Let connections of the acting process reach these ports, and nothing else, while the block runs."""
        self._acting = acting
        with mock.patch.object(asyncio, "open_connection", self._connected):
            yield

    async def _connected(self, _host: str, number: int, **_: Any) -> tuple[Any, Any]:
        process, now = self._acting(), self._clock.time()
        if process is not None:
            process.check()
        self._simulator.advance_to(now)
        of = next((key[0] for key, outside in self._numbers.items() if outside == number), 0)
        contract = self._simulator.world.contracts.get(of)
        if contract is None or contract.ended is not None or not program.is_ready(contract, now):
            self.refused.setdefault(str(of), []).append(now)
            raise ConnectionRefusedError
        self.refused.pop(str(of), None)
        return mock.Mock(), mock.Mock()
