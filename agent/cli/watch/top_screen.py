"""The screen of `gpubid top`: alerts and age first, then money, slots, the selected slot, events, keys.

1. Text from a market is shown as plain text: no markup, no control characters.
2. An order is given only after its leases and dollars were shown and `y` was pressed.
"""

import asyncio
import contextlib
import signal
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Static

from agent.act.orders import order_preview
from agent.cli.shared import order_text
from agent.cli.shared.daemon_socket import Refused
from agent.cli.watch import top_rows, top_text
from agent.cli.watch.feed_client import GONE, SILENCE_SECONDS, FeedClient
from agent.domain.record.hold import EVERYTHING
from agent.domain.work.order import Order
from agent.telemetry.plain_text import plain

STOPS = (signal.SIGTERM, signal.SIGHUP)
WAITING = "waiting for the daemon"


class Confirm(ModalScreen[bool]):
    """Asks about one order. `y` gives it; any other key does not."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "yes", "yes"),
        Binding("n,escape,q", "no", "no"),
    ]

    def __init__(self, question: str) -> None:
        """Ask `question`."""
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """Show the question."""
        with Vertical():
            with VerticalScroll():
                yield Static(Text(self._question), id="question")
            yield Static(Text("Give this order? y: yes, n: no"))

    def action_yes(self) -> None:
        """Give the order."""
        self.dismiss(True)

    def action_no(self) -> None:
        """Give nothing."""
        self.dismiss(False)


class Top(App[None]):
    """The cockpit of one daemon."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #head { text-style: bold; }
    #alerts { text-style: bold; max-height: 5; }
    #slots { height: 1fr; min-height: 4; border-top: solid $foreground; }
    #detail { max-height: 7; border-top: solid $foreground; }
    #events { height: 5; border-top: solid $foreground; text-wrap: nowrap; text-overflow: ellipsis; }
    #said { max-height: 3; text-style: bold; }
    Confirm { align: center middle; }
    Confirm > Vertical { width: 90%; height: auto; max-height: 80%; border: heavy $foreground; padding: 0 1; }
    Confirm VerticalScroll { height: auto; max-height: 14; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "order('drain')", "drain"),
        Binding("p", "order('pause')", "pause"),
        Binding("r", "order('resume')", "resume"),
        Binding("x", "order('release')", "release"),
        Binding("K", "kill", "kill all"),
        Binding("L", "lift", "lift"),
        Binding("q", "quit", "quit"),
        Binding("ctrl+c", "quit", "quit", priority=True, show=False),
    ]

    def __init__(self, feed: FeedClient) -> None:
        """Show the messages of `feed`."""
        super().__init__()
        self.trouble = ""
        self._feed = feed
        self._fleet: Mapping[str, Any] = {}
        self._heard_at = 0.0
        self._why_gone = ""
        self._lines: deque[str] = deque(maxlen=2)

    def compose(self) -> ComposeResult:
        """Lay out the screen."""
        yield Static(Text(WAITING), id="head")
        yield Static("", id="alerts")
        yield Static("", id="money")
        yield DataTable(id="slots", cursor_type="row", cell_padding=0)
        yield Static("", id="detail")
        yield Static("", id="events")
        yield Static("", id="said")
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Begin to listen. A closed terminal and SIGTERM end the program like `q`."""
        loop = asyncio.get_running_loop()
        for number in STOPS:
            with contextlib.suppress(RuntimeError, ValueError):
                loop.add_signal_handler(number, self.exit)
        self._heard_at = loop.time()
        self.run_worker(self._listen(), exit_on_error=False)
        self.set_interval(1.0, self._show_head)

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            async for message in self._feed.messages():
                self._why_gone = message.body["sentence"] if message.event == "gone" else ""
                if not self._why_gone:
                    self._heard_at = loop.time()
                if message.event == "fleet":
                    self._fleet = message.body
                    self._show()
                elif message.event == "beat" and self._fleet:
                    self._fleet = {**self._fleet, **message.body}
                    self._put("money", top_text.money(self._fleet))
                self._show_head()
        except Refused as error:
            self.trouble = str(error)
            self.exit()

    def _put(self, name: str, text: str) -> None:
        # At the end the widgets are removed before the timer.
        for screen in self.screen_stack[:1]:
            for place in screen.query(f"#{name}").results(Static):
                place.update(Text(text))

    def _show_head(self) -> None:
        silent = asyncio.get_running_loop().time() - self._heard_at
        if self._fleet:
            stands_by = self._why_gone if self._why_gone != GONE else ""
            is_gone = bool(self._why_gone) or silent > SILENCE_SECONDS
            self._put("head", top_text.head(self._fleet, silent, is_gone=is_gone, stands_by=stands_by))
        elif self._why_gone:
            self._put("head", self._why_gone)

    def _show(self) -> None:
        fleet = self._fleet
        self._put("alerts", top_text.alerts(fleet))
        self._put("money", top_text.money(fleet))
        self._put("events", "\n".join(top_text.event(row) for row in fleet["events"]))
        self._show_slots()
        self._show_detail()

    def _show_slots(self) -> None:
        """Fill the table again, and keep the selected row."""
        table = self._table()
        if table is None:
            return
        row = table.cursor_row
        columns, rows = top_text.table(self._fleet, self.size.width)
        table.clear(columns=True)
        for name, width in columns:
            table.add_column(name, key=name, width=width)
        for cells in rows:
            table.add_row(*(Text(cell, no_wrap=True) for cell in cells))
        table.move_cursor(row=min(row, table.row_count - 1))

    def on_resize(self) -> None:
        """Show the columns that fit into the new width."""
        if self._fleet:
            # The new size is known when this message has been handled.
            self.call_later(self._show_slots)

    def _show_detail(self) -> None:
        row = self._selected()
        self._put("detail", top_text.detail(row) if row else "")

    def on_data_table_row_highlighted(self) -> None:
        """Show the row at the cursor."""
        self._show_detail()

    def _selected(self) -> top_rows.Row:
        rows = top_rows.of(self._fleet) if self._fleet else []
        table = self._table()
        number = -1 if table is None else table.cursor_row
        return rows[number] if 0 <= number < len(rows) else ()

    def _table(self) -> DataTable[Text] | None:
        """Return the table of slots; nothing at the end, when messages may still come and the screen is gone."""
        found = [table for screen in self.screen_stack[:1] for table in screen.query("#slots").results(DataTable)]
        return found[0] if found else None

    def action_order(self, verb: str) -> None:
        """Ask about an order for the selected slot, or for the selected lease if it has no slot."""
        row = self._selected()
        if len(row) > 1:
            name = top_rows.workload(row[0])
            self._say(f"{len(row)} slots share this row: `gpubid {verb} {name}/NUMBER` names one, {name} all")
        for slot in row if len(row) == 1 else ():
            self._ask(Order(verb, slot["slot"] if slot["is_configured"] else slot["lease"]))

    def action_kill(self) -> None:
        """Ask about a kill of everything."""
        self._ask(Order("kill", str(EVERYTHING)))

    def action_lift(self) -> None:
        """Ask about the end of a kill."""
        self._ask(Order("resume", str(EVERYTHING)))

    def _ask(self, order: Order, why: str = "") -> None:
        """Ask about an order. A newer question replaces one that is not on the screen yet."""
        self.run_worker(self._order(order, why), exclusive=True, group="question", exit_on_error=False)

    async def _order(self, order: Order, why: str) -> None:
        """Show the effect of an order, and give it if a person agrees. `why` it is asked again is shown first."""
        try:
            preview = await self._feed.preview(order)
        except Refused as error:
            self._say(str(error))
            return
        question = top_text.question(order, preview)
        if not await self.push_screen_wait(Confirm(f"{why}\n{question}" if why else question)):
            self._say(f"not given: {top_text.words(order)}")
            return
        self._say(f"{top_text.words(order)} ...")
        agreed = replace(order, leases=order_text.named(preview))
        # Another question must not end the wait for this answer.
        self.run_worker(self._give(agreed), group="answer", exit_on_error=False)

    async def _give(self, order: Order) -> None:
        """Give an order and show its result. Ask again if it would by now concern other leases."""
        try:
            said = await self._feed.give(order)
        except Refused as error:
            self._say(str(error))
            if error.code == order_preview.CHANGED and not isinstance(self.screen, Confirm):
                self._ask(order, str(error))
            return
        self._say(_done(said, order))

    def _say(self, line: str) -> None:
        """Show a line above the one before it, because the answer to another order may be a moment old."""
        self._lines.appendleft(plain(line))
        self._put("said", "\n".join(self._lines))


def _done(said: Mapping[str, Any], order: Order) -> str:
    """Return the result of an order, and the doubts that it leaves."""
    states = ", ".join(f"{row['slot']} {row['kind']} {row['state']}" for row in said["done"])
    doubts = "; ".join(order_text.doubts([order], said))
    return ": ".join(part for part in (top_text.said(said["said"], order), states, doubts) if part)
