"""Messages that wait: for a channel that hangs, for one that is broken, and for the end of quiet hours."""

import asyncio
import datetime as dt
from pathlib import Path

import pytest

from agent.clock import SteppedClock, SystemClock
from agent.config.notify_settings import Hook, Notify, Rule, Severity, Webhook
from agent.ledger.store import Ledger
from agent.notify import channels, dispatcher, quiet_hours
from agent.notify.incidents import MOST_LINES, Message
from tests.notify.receiver import Receiver
from tests.notify.test_dispatcher import NOW, clock, happen, ledger, receiver, script, sender, stopped
from tests.support import programs

__all__ = ["clock", "ledger", "receiver"]
BOTH = (Rule(severity=Severity.INFO, channels=("hook", "webhook")),)


async def test_a_channel_that_hangs_delays_no_later_message_of_another(
    ledger: Ledger, clock: SteppedClock, receiver: Receiver, tmp_path: Path
) -> None:
    """Its backlog was tried message by message, and nobody read the ledger meanwhile."""
    tries: list[tuple[str, bool]] = []
    hook = Hook((script(tmp_path, "exit 0"),))
    notify = Notify(rules=BOTH, webhook=Webhook(url=receiver.url), hook=hook)
    mine = sender(ledger, clock, notify, lambda *seen: tries.append(seen))
    running = asyncio.ensure_future(mine.run())
    await programs.until(lambda: mine.is_begun, "where the past ends")
    receiver.may_answer.clear()
    for number in range(3):
        await happen(ledger, clock, slot=number)
        mine.wake()
        await _until_tried(tries, number + 1)
    assert tries == [("hook", True)] * 3, "the webhook still hangs"
    assert len(receiver.got) == 1
    receiver.may_answer.set()
    await stopped(running)


async def _until_tried(tries: list[tuple[str, bool]], count: int) -> None:
    await programs.until(lambda: len(tries) == count, "the hook's message")


async def test_a_message_is_tried_again_although_nobody_wakes_the_dispatcher(
    ledger: Ledger, clock: SteppedClock, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waited for the end of the next good cycle."""
    monkeypatch.setattr(dispatcher, "LATER_SECONDS", (0.1,))
    monkeypatch.setattr(dispatcher, "SHORTEST_PAUSE_SECONDS", 0.01)
    notify = Notify(webhook=Webhook(url=receiver.url))
    mine = dispatcher.Dispatcher(ledger, SystemClock(), notify, channels.channels(notify, str, clock))
    running = asyncio.ensure_future(mine.run())
    await programs.until(lambda: mine.is_begun, "where the past ends")
    receiver.status = 503
    await happen(ledger, clock)
    mine.wake()
    await programs.until(lambda: len(receiver.got) >= 2, "the second attempt")
    await stopped(running)


async def test_what_matters_most_is_dropped_last_and_never_for_another_channel(
    ledger: Ledger, clock: SteppedClock, receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest of all channels was dropped, and a broken hook took a critical message of the webhook with it."""
    monkeypatch.setattr(dispatcher, "MOST_WAITING", 3)
    hook = Hook((script(tmp_path, "exit 1"),))
    mine = sender(ledger, clock, Notify(rules=BOTH, webhook=Webhook(url=receiver.url), hook=hook))
    await mine.round()
    receiver.status = 503
    await happen(ledger, clock, kind="alert.market_fault", cause=None)
    for number in range(5):
        await happen(ledger, clock, slot=number)
        await mine.round()
    receiver.status = 204
    receiver.got.clear()
    clock.advance(3600)
    await mine.round()
    assert receiver.titles[0].startswith("gpubid: alert.market_fault")
    assert len(receiver.titles) == 3


def test_the_message_after_quiet_hours_leaves_no_warning_out_for_notices() -> None:
    """A slot that was held at ten in the evening was not in the message of the morning."""
    at = NOW + dt.timedelta(hours=10)
    held = Message("k0", "webhook", Severity.WARNING, "held", "sweep/3 is held", at)
    notices = [
        Message(f"k{number}", "webhook", Severity.NOTICE, "released", f"sweep/{number} is released", at)
        for number in range(1, MOST_LINES + 6)
    ]
    lines = quiet_hours.combined([held, *notices]).text.splitlines()
    assert lines[0] == "sweep/3 is held"
    assert lines[-1] == "(and 6 lines that are no more severe)"
    assert len(lines) == MOST_LINES + 1
