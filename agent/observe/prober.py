"""Probes running instances from outside: whether a port or a page answers, and the lines of the log.

Invariants:
1. A cycle waits for probes at most `PATIENCE_SECONDS`; a slower probe is collected in a later one.
2. At most one probe an instance and `MOST_AT_ONCE` together run; each ends by its own deadline.
3. The result of a probe is a value for the next decision; a failure is such a value too.
4. Of the due probes, that of a container that has just ended goes first, and then the one whose last is longest
   ago: a hundred instances are all probed, each more seldom.
"""

import asyncio
import dataclasses
import ipaddress
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
import structlog

from agent import background_tasks
from agent.clock import Clock
from agent.decide.reconcile.probes import log_failures, probing
from agent.decide.reconcile.probes.probe_pace import MOST_AT_ONCE
from agent.decide.reconcile.probes.probing import Target
from agent.domain.work import deadline
from agent.domain.work.ready_sign import ReadySign, Sighting
from agent.markets import market_errors, port
from agent.observe.progress_signs import LOG_LINES, ProgressSigns

PATIENCE_SECONDS = 0.5
DEADLINE_SECONDS = 5.0
"""A service that needs longer for one answer is not ready."""
LOG_EVERY_SECONDS = 60.0
"""Each request for a log makes the market write a file."""
MOST_TAILS = 64
"""Logs that are kept to separate lines before a resume from lines after it."""
MOST_ANSWER = 4096
_OK = range(200, 300)

log = structlog.get_logger("gpubid.prober")

Spawn = Callable[[Coroutine[Any, Any, Sighting]], asyncio.Task[Sighting]]


class Prober:
    """Probes the instances of one market."""

    def __init__(self, market: port.Market, clock: Clock, spawn: Spawn, *, may_be_local: bool) -> None:
        """Read logs through `market`, start tasks with `spawn`; only a market on this machine has instances there."""
        self._market = market
        self._clock = clock
        self._spawn = spawn
        self._may_be_local = may_be_local
        self._known: dict[str, Sighting] = {}
        self._running: dict[str, asyncio.Task[Sighting]] = {}
        self._begun: dict[str, float] = {}
        self._log_read: dict[str, float] = {}
        self._page_read: dict[str, float] = {}
        self._live_read: dict[str, float] = {}
        self._tails: dict[str, tuple[datetime, tuple[str, ...], tuple[str, ...]]] = {}
        self._signs = ProgressSigns()

    async def look(self, targets: Iterable[Target]) -> Mapping[str, Sighting]:
        """Start the due probes, wait a moment, and return the last results for these targets."""
        wanted = {target.instance_id: target for target in targets}
        for target in sorted(wanted.values(), key=self._last_turn):
            if self._is_due(target) and len(self._running) < MOST_AT_ONCE:
                self._begun[target.instance_id] = self._clock.monotonic()
                self._running[target.instance_id] = self._spawn(self._probe(target))
        if self._running:
            await asyncio.wait(self._running.values(), timeout=PATIENCE_SECONDS)
        self._collect()
        self._known = {key: seen for key, seen in self._known.items() if key in wanted}
        self._begun = {key: at for key, at in self._begun.items() if key in wanted or key in self._running}
        self._log_read = {key: at for key, at in self._log_read.items() if key in wanted or key in self._running}
        self._page_read = {key: at for key, at in self._page_read.items() if key in wanted or key in self._running}
        self._live_read = {key: at for key, at in self._live_read.items() if key in wanted or key in self._running}
        return dict(self._known)

    async def close(self) -> None:
        """End every probe."""
        await background_tasks.end(self._running)

    def _is_due(self, target: Target) -> bool:
        if target.instance_id in self._running:
            return False
        return (
            (self._can_ask(target) and self._is_live_due(target))
            or self._is_log_due(target)
            or self._is_page_due(target)
        )

    def _is_log_due(self, target: Target) -> bool:
        if not target.needs_log:
            return False
        last = self._log_read.get(target.instance_id)
        if self._has_just_ended(target):
            return True
        return last is None or self._clock.monotonic() - last >= LOG_EVERY_SECONDS

    def _has_just_ended(self, target: Target) -> bool:
        """Return whether its container has ended, and its log was not read since."""
        known = self._known.get(target.instance_id)
        return target.is_over and (known is None or known.at < target.since)

    def _last_turn(self, target: Target) -> float:
        first = float("-inf")
        return first if self._has_just_ended(target) else self._begun.get(target.instance_id, first)

    def _is_page_due(self, target: Target) -> bool:
        last = self._page_read.get(target.instance_id)
        return target.has_page and (last is None or self._clock.monotonic() - last >= LOG_EVERY_SECONDS)

    def _can_ask(self, target: Target) -> bool:
        """Return whether its port can be asked. Of a service that was ready, nothing is known without an address."""
        if target.ready.sign not in {ReadySign.PORT, ReadySign.HTTP}:
            return False
        host = target.place.rpartition(":")[0]
        return target.page_answers is not None or not target.is_live or bool(host and self._may_ask(host))

    def _is_live_due(self, target: Target) -> bool:
        """Return whether a service is asked now: at each look until it is ready, then at the workload's own pace."""
        last = self._live_read.get(target.instance_id)
        pace = max(target.ready.live.every, target.page_stands)
        every = pace.total_seconds() if target.is_live else 0.0
        return last is None or self._clock.monotonic() - last >= every

    def _collect(self) -> None:
        for key, task in list(self._running.items()):
            if task.done():
                del self._running[key]
                if not task.cancelled():
                    self._known[key] = task.result() if task.exception() is None else self._defect(key, task)

    def _defect(self, instance_id: str, task: asyncio.Task[Sighting]) -> Sighting:
        """Return the sighting of a probe that ended by an error that it does not know: nothing was seen."""
        name = type(task.exception()).__name__
        log.error("probe.failed", market=self._market.name, instance=instance_id, error=name, exc_info=task.exception())
        return Sighting(instance_id, self._clock.now(), said=f"its probe failed ({name})", was_asked=False)

    async def _probe(self, target: Target) -> Sighting:
        began = self._clock.now()
        lines: tuple[str, ...] = ()
        said = ""
        if self._is_log_due(target):
            self._log_read[target.instance_id] = self._clock.monotonic()
            lines, said = await self._log(target)
            self._signs.see_log(target.instance_id, began, lines if target.is_watched else ())
        is_log_read = not said
        is_done = bool(target.done_line) and any(target.done_line in line for line in lines)
        is_ready = False
        if target.ready.sign is ReadySign.LOG and lines:
            is_ready = any(target.ready.line in line for line in self._of_this_run(target, lines))
        was_asked = self._can_ask(target)
        if was_asked:
            self._live_read[target.instance_id] = self._clock.monotonic()
            is_ready, said = await self._answers(target)
        elif target.ready.sign is ReadySign.LOG and not is_ready:
            said = said or "no line of its log says so"
        hours = _logged_hours(target, lines)
        if self._is_page_due(target):
            self._page_read[target.instance_id] = self._clock.monotonic()
            hours = await self._page(target)
            self._signs.see_page(target.instance_id, began, hours if target.is_watched else None)
        failure = log_failures.line(lines) if target.is_over else ""
        refusal = log_failures.refusal(lines) if target.is_silent else ""
        is_bare = target.is_silent and self._is_bare(target, lines)
        seen = Sighting(target.instance_id, began, is_ready, is_done, said, hours, failure, refusal, is_bare)
        shown = {"has_page": target.has_page, "has_log": target.has_log}
        progress = self._signs.of(target.instance_id, **shown) if target.is_watched else None
        was_asked = was_asked or (target.ready.sign is ReadySign.LOG and is_log_read)
        return dataclasses.replace(seen, was_asked=was_asked, progress=progress, stands=target.page_stands)

    def _is_bare(self, target: Target, lines: tuple[str, ...]) -> bool:
        """Return whether a log was read and it, or the one before, says that no guard runs."""
        known = self._known.get(target.instance_id)
        return bool(lines) and (log_failures.runs_without_guard(lines) or (known is not None and known.is_bare))

    async def _page(self, target: Target) -> float | None:
        host, _, number = target.progress_place.rpartition(":")
        if not host or target.deadline is None or not self._may_ask(host):
            return None
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                return hours_of(await _fetched(host.strip("[]"), int(number), target.deadline.path))
        except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return None

    def _may_ask(self, host: str) -> bool:
        return self._may_be_local or _is_public(host.strip("[]"))

    def _of_this_run(self, target: Target, lines: tuple[str, ...]) -> Sequence[str]:
        """Return the lines of this stretch of running, as far as the log before it is known.

        A container made anew may print the same lines again: past half of the time that it has, all lines count.
        """
        since, last, before = self._tails.pop(target.instance_id, (target.since, (), ()))
        if since != target.since:
            before = last
        self._tails[target.instance_id] = (target.since, lines, before)
        while len(self._tails) > MOST_TAILS:
            del self._tails[next(iter(self._tails))]
        is_late = self._clock.now() - target.since >= target.ready.within / 2
        return lines if is_late else probing.news(before, lines)

    async def _log(self, target: Target) -> tuple[tuple[str, ...], str]:
        try:
            return tuple(await self._market.logs(target.instance_id, LOG_LINES)), ""
        except market_errors.MarketError as error:
            return (), f"its log could not be read ({error.code})"

    async def _answers(self, target: Target) -> tuple[bool, str]:
        if target.page_answers is not None:
            return target.page_answers, "" if target.page_answers else f"{target.ready.path} does not answer its market"
        host, _, number = target.place.rpartition(":")
        if not host:
            return False, f"port {target.ready.port} is not open to the outside"
        if not self._may_ask(host):
            return False, f"{target.place} is no public address"
        try:
            within = target.ready.live.within.total_seconds() if target.is_live else DEADLINE_SECONDS
            async with asyncio.timeout(within):
                return await _asked(host.strip("[]"), int(number), target)
        except (OSError, TimeoutError, ValueError) as error:
            return False, f"port {target.ready.port} does not answer ({type(error).__name__})"


async def _asked(host: str, number: int, target: Target) -> tuple[bool, str]:
    reader, writer = await asyncio.open_connection(host, number, limit=MOST_ANSWER)
    try:
        if target.ready.sign is ReadySign.PORT:
            return True, ""
        question = f"GET {target.ready.path} HTTP/1.1\r\nHost: {host}:{number}\r\nConnection: close\r\n\r\n"
        writer.write(question.encode("ascii"))
        await writer.drain()
        first = await reader.readline()
        parts = first.decode("latin-1").split(maxsplit=2)
        is_ok = len(parts) > 1 and parts[0].startswith("HTTP/") and parts[1].isdecimal() and int(parts[1]) in _OK
        return is_ok, "" if is_ok else f"{target.ready.path} answers {parts[1][:3] if len(parts) > 1 else 'no HTTP'}"
    finally:
        writer.close()


async def _fetched(host: str, number: int, path: str) -> bytes:
    """Return the body of a page that answers 2xx, at most `MOST_ANSWER` bytes of it; else empty."""
    reader, writer = await asyncio.open_connection(host, number, limit=MOST_ANSWER)
    try:
        question = f"GET {path} HTTP/1.0\r\nHost: {host}:{number}\r\nConnection: close\r\n\r\n"
        writer.write(question.encode("ascii"))
        await writer.drain()
        head = await reader.readuntil(b"\r\n\r\n")
        parts = head.decode("latin-1").split(maxsplit=2)
        is_ok = len(parts) > 1 and parts[0].startswith("HTTP/") and parts[1].isdecimal() and int(parts[1]) in _OK
        body = b""
        while is_ok and len(body) < MOST_ANSWER and (piece := await reader.read(MOST_ANSWER)):
            body += piece
        return body[:MOST_ANSWER]
    finally:
        writer.close()


def hours_of(body: bytes) -> float | None:
    """Return the hours on a page, as a bare number or as {"hours": 1.5}; None if it has none."""
    try:
        said = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return None
    hours = said.get("hours") if isinstance(said, dict) else said
    if isinstance(hours, bool) or not isinstance(hours, int | float):
        return None
    return float(hours) if deadline.is_hours(hours) else None


def _logged_hours(target: Target, lines: tuple[str, ...]) -> float | None:
    """Return the hours in the last line with a number."""
    wanted = target.deadline
    if wanted is None or wanted.sign is not deadline.ProgressSign.LOG:
        return None
    return next((hours for line in reversed(lines) if (hours := wanted.hours_in(line)) is not None), None)


def _is_public(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        return False
