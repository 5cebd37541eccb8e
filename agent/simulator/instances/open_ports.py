"""The open ports of simulated containers: a real listener on loopback for each, open only while its program is ready.

A container with real processes has ports of its own, which are open while a process listens.
Ports are reserved when a contract first runs. They open and close at each call to the market, so they also follow a
clock that only moves by hand. Every request gets the same answer of three bytes,
some programs take their time for it.
"""

import asyncio
import socket
from collections.abc import Callable, Iterable

from agent.simulator.instances import program
from agent.simulator.instances.rented import Rented

ADDRESS = "127.0.0.1"
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n"
_MOST_WAITING = 16


class Doors:
    """Keeps the listeners of one market."""

    def __init__(self, place: Callable[[int, int], tuple[str, int]] = lambda *_: (ADDRESS, 0)) -> None:
        """Have none. `place` gives the address and the port of a contract's door by both numbers; port 0 is any.

        A door whose place is taken, or that this user may not open, stays shut.
        """
        self._place = place
        self._reserved: dict[tuple[int, int], socket.socket] = {}
        self._open: set[tuple[int, int]] = set()
        self._delays: dict[tuple[int, int], float] = {}
        self._guests: set[socket.socket] = set()

    def ports(self, contract: Rented) -> dict[int, int]:
        """Return {port of the container: port on loopback} of a running contract."""
        if contract.process is not None:
            return dict(contract.process.ports)
        return {number: self._door((contract.contract_id, number)).getsockname()[1] for number in contract.ports}

    def attend(self, contracts: Iterable[Rented], now: float) -> None:
        """Open the ports of contracts that are ready, and close all others."""
        ready = {
            (contract.contract_id, number): program.answers_after(contract, now)
            for contract in contracts
            if contract.process is None and contract.ports and program.is_ready(contract, now)
            for number in contract.ports
        }
        self._delays = ready
        for key in self._open - ready.keys():
            self._shut(key)
        for key in ready.keys() - self._open:
            self._unlock(key)

    def close(self) -> None:
        """Close all."""
        for key in list(self._reserved):
            self._shut(key)
        for guest in self._guests:
            asyncio.get_running_loop().remove_reader(guest)
            guest.close()
        self._guests.clear()

    def _door(self, key: tuple[int, int]) -> socket.socket:
        if key not in self._reserved:
            door = self._reserved[key] = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            door.setblocking(False)
            place = self._place(*key)
            # With port 0 it would let the kernel give one port to two doors that are not open yet.
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(place[1] > 0))
            door.bind(place)
        return self._reserved[key]

    def _unlock(self, key: tuple[int, int]) -> None:
        try:
            door = self._door(key)
            door.listen(_MOST_WAITING)
        except OSError:
            if key in self._reserved:
                self._reserved.pop(key).close()
            return
        asyncio.get_running_loop().add_reader(door, self._welcome, key, door)
        self._open.add(key)

    def _shut(self, key: tuple[int, int]) -> None:
        door = self._reserved.pop(key)
        if key in self._open:
            self._open.discard(key)
            asyncio.get_running_loop().remove_reader(door)
        door.close()

    def _welcome(self, key: tuple[int, int], door: socket.socket) -> None:
        try:
            guest, _ = door.accept()
        except OSError:
            return
        guest.setblocking(False)
        self._guests.add(guest)
        asyncio.get_running_loop().add_reader(guest, self._heard, key, guest)

    def _heard(self, key: tuple[int, int], guest: socket.socket) -> None:
        loop, delay = asyncio.get_running_loop(), self._delays.get(key, 0.0)
        loop.remove_reader(guest)
        if delay > 0.0:
            loop.call_later(delay, self._answer, guest)
        else:
            self._answer(guest)

    def _answer(self, guest: socket.socket) -> None:
        self._guests.discard(guest)
        try:
            if guest.recv(4096):
                guest.send(_ANSWER)
        except OSError:
            pass
        finally:
            guest.close()
