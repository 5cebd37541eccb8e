"""The three cockpits that are read while a daemon runs: the feed's stream, `gpubid top` at a terminal, and the page."""

import asyncio
import contextlib
import fcntl
import os
import pty
import re
import struct
import termios
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from playwright.async_api import Page, async_playwright

from agent.cli.watch.feed_client import FeedClient, Message
from tests.cockpit import comparison
from tests.cockpit.expected import Expected
from tests.cockpit.recent import Recent
from tests.cockpit.verdicts import Verdicts
from tests.support import launch, programs
from tests.support.terminal_screen import TerminalScreen

COLUMNS, LINES = 120, 40
LOOK_SECONDS = 0.2
STILL_SECONDS = 2.0
"""A screen that did not change for so long is complete."""
SECOND = timedelta(seconds=1)
Seen = tuple[Sequence[str], float, float]
"""A screen, and the first and the last time at which it was seen."""
PAGE = """() => {
  const text = e => e ? e.textContent.replace(/\\s+/g, " ").trim() : "";
  const parts = e => e.innerHTML.split("<br>").map(part => {
    const place = document.createElement("p");
    place.innerHTML = part;
    return text(place);
  }).filter(part => part);
  const named = e => [text(e.querySelector("h2")), e];
  const cards = Object.fromEntries([...document.querySelectorAll(".cards .card")].map(named));
  const rows = name => [...document.querySelectorAll(`[aria-label="${name}"] > table > tbody > tr`)];
  const cell = (row, name) => row.querySelector(`[data-label="${name}"]`);
  const last = values => values[values.length - 1];
  const trail = e => {
    const found = JSON.parse(e.dataset.trail);
    return [last(found.bid), last(found.floor), last(found.ask)];
  };
  return {
    at: document.querySelector("#main h1 time").getAttribute("datetime"),
    running: text(cards["Running"].querySelector(".big")),
    today: text(cards["Today"].querySelector(".big")),
    month: text(cards["This month"].querySelector(".big")),
    hour: text(cards["Per hour"].querySelector(".big")),
    runway: text(cards["Per hour"].querySelector(".quiet")),
    saved: [...cards["Saved this month"].querySelectorAll("p")].map(text),
    savedAt: [...cards["Saved this month"].querySelectorAll("time")].map(e => e.getAttribute("datetime")),
    sentences: ["Alerts", "To know", "Slots", "The last plan"].flatMap(name =>
      [...document.querySelectorAll(`[aria-label="${name}"] :is(li, .why)`)].map(text)),
    workloads: rows("Money by workload").map(row => [...row.children].map(text)),
    slots: rows("Slots").map(row => ({
      slot: text(row.querySelector("th")), state: text(cell(row, "State")), where: parts(cell(row, "Where")),
      gpu: parts(cell(row, "GPU")).map(part => part.replace("\\u00d7", "x")), pays: parts(cell(row, "Pays per hour")),
      prices: [...row.querySelectorAll(".chart")].map(trail), why: text(cell(row, "Why")),
    })),
  };
}"""
"""Reads all figures of the page at once: a redraw replaces them at once, too."""


async def watch_feed(socket: Path, verdicts: Verdicts) -> None:
    """Judge every document and every beat that the feed pushes, without end; it outlives the daemon."""
    async with contextlib.aclosing(FeedClient(socket).messages()) as messages, asyncio.TaskGroup() as judging:
        async for message in messages:
            if message.event != "gone":
                at = datetime.fromisoformat(message.body["as_of"])
                judging.create_task(verdicts.judge("feed", at, at, [partial(_of_message, message)]))
                judging.create_task(verdicts.judge_savings(message.body["money"]["savings"], datetime.now(UTC)))


def _of_message(message: Message, ledger: Expected, _: Expected, recent: Recent) -> list[str]:
    if message.event == "fleet":
        return comparison.of_document(message.body, ledger, recent)
    return comparison.of_money(message.body["money"], ledger)


class TopWatch:
    """`gpubid top` in a terminal of its own."""

    def __init__(self) -> None:
        self.screen = TerminalScreen(COLUMNS, LINES)
        self._shown: list[Seen] = []
        self._date = ""

    @contextlib.asynccontextmanager
    async def running(self, place: Path) -> AsyncIterator[launch.Process]:
        """Start it in `place`, and draw its output."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        environment = programs.environment(place, TERM="xterm-256color", LINES=str(LINES), COLUMNS=str(COLUMNS))
        streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
        process = await launch.start("agent", "top", folder=place, environment=environment, **streams)
        os.close(theirs)
        os.set_blocking(ours, False)
        loop = asyncio.get_running_loop()
        loop.add_reader(ours, self._draw, ours)
        try:
            yield process
        finally:
            loop.remove_reader(ours)
            if process.returncode is None:
                process.kill()
            await process.wait()
            os.close(ours)

    def _draw(self, terminal: int) -> None:
        try:
            self.screen.feed(os.read(terminal, 65_536))
        except BlockingIOError:
            return
        except OSError:
            asyncio.get_running_loop().remove_reader(terminal)

    async def watch(self, verdicts: Verdicts) -> None:
        """Judge the screens of each date once the next one has come, without end."""
        async with asyncio.TaskGroup() as judging:
            while True:
                await asyncio.sleep(LOOK_SECONDS)
                lines, now = self.screen.lines, time.monotonic()
                found = re.search(r"figures of (\S+)Z", lines[0])
                if found is None:
                    continue
                if found[1] != self._date:
                    if self._shown:
                        judging.create_task(_of_screens(self._date, self._shown, verdicts))
                    self._date, self._shown = found[1], []
                if self._shown and self._shown[-1][0] == lines:
                    self._shown[-1] = (lines, self._shown[-1][1], now)
                else:
                    self._shown.append((lines, now, now))


async def _of_screens(date: str, shown: Sequence[Seen], verdicts: Verdicts) -> None:
    first = datetime.fromisoformat(date).replace(tzinfo=UTC)
    comparisons = [partial(comparison.of_top, lines) for lines, _, _ in shown]
    is_still = any(last - begun >= STILL_SECONDS for _, begun, last in shown)
    await verdicts.judge("top", first, first + SECOND, comparisons, is_whole=is_still)


@contextlib.asynccontextmanager
async def opened(chromium: str) -> AsyncIterator[Page]:
    """Open a window of a headless Chromium."""
    milliseconds = 1000.0 * programs.PATIENCE_SECONDS
    async with async_playwright() as tools:
        browser = await tools.chromium.launch(executable_path=chromium, args=["--no-sandbox"], timeout=milliseconds)
        try:
            yield await browser.new_page()
        finally:
            await browser.close()


async def watch_page(tab: Page, verdicts: Verdicts) -> None:
    """Judge the page after each time that it has drawn itself anew, without end."""
    last = ""
    async with asyncio.TaskGroup() as judging:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            shown: Mapping[str, Any] = await tab.evaluate(PAGE)
            if shown["at"] != last:
                last = shown["at"]
                at = datetime.fromisoformat(last)
                judging.create_task(verdicts.judge("page", at, at, [partial(_of_page, shown)]))
                judging.create_task(verdicts.judge_card(shown["saved"], shown["savedAt"]))


def _of_page(shown: Mapping[str, Any], ledger: Expected, _: Expected, recent: Recent) -> list[str]:
    return comparison.of_page(shown, ledger, recent)
