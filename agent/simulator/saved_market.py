"""An embedded market that outlives its process: its changing calls are recorded and repeated at the next start.

1. The same climate, seed, start and calls make the same world (`world.py`), so only its changing calls are kept. The
   clock moves the world on also while no process runs it.
2. A call is written down before its answer leaves. So a call that a kill loses was never answered.
3. A file is replaced if it cannot be read, belongs to another climate, or its calls get other answers now. The market
   then begins anew, with ids that no earlier one had.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from multidict import CIMultiDict

from agent.simulator.climate import Climate
from agent.simulator.http_wire import Answer, Asked
from agent.simulator.market_server import Simulator
from agent.simulator.simulated_clock import Clock
from agent.simulator.simulated_market import Answering, SimulatedMarket

MOST_BYTES = 16 * 1024 * 1024
"""A larger file is not read again: at two kilobytes a rent, this is eight thousand rents."""
HERE = "127.0.0.1"
_HEADERS = ("authorization", "content-type")
_READS = ("bundles", "search")


class _Pinned:
    """A clock that is pinned to one instant while the past calls are repeated."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.at: float | None = None

    def time(self) -> float:
        return self._clock.time() if self.at is None else self.at

    async def sleep(self, seconds: float) -> None:
        if self.at is None:
            await self._clock.sleep(seconds)

    def advance(self, seconds: float) -> None:
        self._clock.advance(seconds)


class _Differs(Exception):
    """The past calls cannot be repeated."""


class Saved:
    """A simulator and the file of its calls; `is_anew` says whether its past was lost or there was none."""

    def __init__(
        self,
        file: Path,
        climate: Climate,
        seed: int,
        clock: Clock,
        conceal: Callable[[str], str],
        *,
        keeps: bool,
        prepare: Callable[[Simulator], None] = lambda _: None,
    ) -> None:
        """Take the file's path; `keeps` is false in a process that only reads. Call `open` next.

        `prepare` changes a simulator before its first call.
        """
        self._prepare = prepare
        self._file, self._climate, self._seed, self._keeps = file, climate, seed, keeps
        self._conceal = conceal
        self._clock = _Pinned(clock)
        self.is_anew = True
        self._start = clock.time()
        self.simulator = self._made(self._start)

    async def open(self) -> None:
        """Repeat the past calls, or begin again; from now on write down the changing calls."""
        try:
            lines = self._lines()
            self._start = float(lines[0]["start"])
            self.simulator = self._made(self._start)
            await self._replay(lines[1:])
            self.is_anew = False
        except (_Differs, OSError, ValueError, KeyError, TypeError, IndexError):
            self._clock.at = None
            self._start = self._clock.time()
            self.simulator = self._made(self._start)
            if self._keeps:
                self._begin()
        if self._keeps:
            self._listen()

    def _made(self, start: float) -> Simulator:
        # No later market of this file gives ids that an earlier one gave.
        simulator = Simulator.begun(
            self._climate, self._clock, seed=self._seed, start=start, ids=f"{self._seed}/{start}"
        )
        self._prepare(simulator)
        return simulator

    def _head(self) -> str:
        return hashlib.sha256(f"{self._climate!r} {self._seed}".encode()).hexdigest()

    def _lines(self) -> list[dict[str, Any]]:
        if self._file.stat().st_size > MOST_BYTES:
            raise _Differs
        lines = [json.loads(line) for line in self._file.read_text(encoding="utf-8").splitlines()]
        if lines[0]["climate"] != self._head():
            raise _Differs
        return lines

    def _begin(self) -> None:
        head = {"climate": self._head(), "start": self._start}
        self._file.unlink(missing_ok=True)
        self._file.touch(mode=0o600)
        self._write(head)

    def _write(self, line: dict[str, Any]) -> None:
        with self._file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")

    async def _replay(self, lines: list[dict[str, Any]]) -> None:
        for line in lines:
            self._clock.at = float(line["at"])
            body = str(line["body"]).encode()
            asked = Asked(
                line["method"], line["path"], line["query"], CIMultiDict(line["headers"]), body, HERE, f"http://{HERE}"
            )
            answer = await self.simulator.sides[line["market"]].answer(asked)
            if answer.status != line["status"]:
                raise _Differs
        self._clock.at = None

    def _listen(self) -> None:
        for market, side in self.simulator.sides.items():
            side.answer = self._noted(market, side)

    def _noted(self, market: str, side: SimulatedMarket) -> Answering:
        answering = side.answer

        async def answer(asked: Asked) -> Answer:
            """Answer as usual, and write down a changing call before the answer leaves."""
            reply = await answering(asked)
            if _is_write(asked) and not side.only_reads(asked):
                self._write(
                    {
                        "at": side.now,
                        "market": market,
                        "method": asked.method,
                        "path": asked.path,
                        "query": dict(asked.query),
                        "headers": {name: text for name, text in asked.headers.items() if name.lower() in _HEADERS},
                        "body": self._conceal(asked.body.decode("utf-8", "replace")),
                        "status": reply.status,
                    }
                )
            return reply

        return answer


def _is_write(asked: Asked) -> bool:
    if asked.method == "GET" or any(word in asked.path for word in _READS):
        return False
    return not asked.path.rstrip("/").endswith("graphql") or b"mutation" in asked.body
