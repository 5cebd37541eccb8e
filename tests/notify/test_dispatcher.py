"""The dispatcher over a real ledger, a real web server and real programs: delivered once, tried again, in nobody's way.

Apprise is the real library too, and posts to our own server.
"""

import asyncio
import contextlib
import dataclasses
import datetime as dt
import json
import stat
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from agent.clock import SteppedClock
from agent.config.notify_settings import Hook, Notify, Quiet, Rule, Severity, Webhook
from agent.domain.market.interruption import Cause
from agent.domain.record.event import Event
from agent.domain.work.run_times.run_window import WindowRule
from agent.ledger.store import Ledger
from agent.notify import channels
from agent.notify.dispatcher import Dispatcher
from tests.notify.receiver import Receiver
from tests.support import programs

NOW = dt.datetime(2026, 11, 20, 12, 0, tzinfo=dt.UTC)
SECRET = "a secret of the test"


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver()
    await made.start()
    yield made
    await made.close()


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock(NOW)


@pytest.fixture
async def ledger(tmp_path: Path, clock: SteppedClock) -> AsyncIterator[Ledger]:
    opened = await Ledger.open(tmp_path / "ledger.sqlite", clock=clock)
    yield opened
    await opened.close()


async def happen(ledger: Ledger, clock: SteppedClock, **changes: Any) -> None:
    plain: dict[str, Any] = {"kind": "lease.interrupted", "workload": "train", "slot": 0, "cause": Cause.OUTBID}
    async with ledger.transaction() as tx:
        tx.append_event(Event(at=clock.now(), **(plain | changes)))


def sender(ledger: Ledger, clock: SteppedClock, notify: Notify, seen: Callable[..., None] | None = None) -> Dispatcher:
    ways = channels.channels(notify, lambda _: SECRET, clock)
    return Dispatcher(ledger, clock, notify, ways, seen or (lambda *_: None))


async def stopped(running: "asyncio.Future[None]") -> None:
    """Stop a dispatcher, and wait until the command that it may be running has ended."""
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


async def test_news_are_told_once(ledger: Ledger, clock: SteppedClock, receiver: Receiver) -> None:
    await happen(ledger, clock)
    mine = sender(ledger, clock, Notify(webhook=Webhook(url=receiver.url)))
    await mine.round()
    await happen(ledger, clock, slot=1)
    await mine.round()
    await mine.round()
    assert receiver.titles == [f"gpubid: lease.interrupted train/{slot} (outbid)" for slot in (0, 1)]


async def test_what_the_first_cycle_of_a_new_ledger_does_is_told(
    ledger: Ledger, clock: SteppedClock, receiver: Receiver
) -> None:
    mine = sender(ledger, clock, Notify(webhook=Webhook(url=receiver.url)))
    running = asyncio.ensure_future(mine.run())
    await programs.until(lambda: mine.is_begun, "where the past ends")
    await happen(ledger, clock)
    mine.wake()
    await programs.until(lambda: receiver.got, "the news")
    await stopped(running)
    assert receiver.titles == ["gpubid: lease.interrupted train/0 (outbid)"]


async def test_a_message_is_signed_over_its_time_and_body(
    ledger: Ledger, clock: SteppedClock, receiver: Receiver
) -> None:
    mine = sender(ledger, clock, Notify(webhook=Webhook(url=receiver.url, secret_credential="webhook_secret")))
    await mine.round()
    await happen(ledger, clock)
    await mine.round()
    ((headers, body),) = receiver.got
    seconds = str(int(NOW.timestamp()))
    assert headers["X-Gpubid-Signature"] == f"t={seconds},v1={channels.signature(SECRET, seconds, body)}"
    assert headers["X-Gpubid-Key"] == json.loads(body)["key"]
    assert SECRET.encode() not in body


async def test_a_template_makes_the_body(ledger: Ledger, clock: SteppedClock, receiver: Receiver) -> None:
    body = '{"text": {{ title | tojson }}, "cause": "{{ events[0].cause }}"}'
    mine = sender(ledger, clock, Notify(webhook=Webhook(url=receiver.url, body=body)))
    await mine.round()
    await happen(ledger, clock)
    await mine.round()
    assert json.loads(receiver.got[0][1]) == {"text": "gpubid: lease.interrupted train/0 (outbid)", "cause": "outbid"}


async def test_what_is_refused_is_tried_again_until_it_arrives_and_then_no_more(
    ledger: Ledger, clock: SteppedClock, receiver: Receiver
) -> None:
    tries: list[tuple[str, bool]] = []
    mine = sender(ledger, clock, Notify(webhook=Webhook(url=receiver.url)), lambda *seen: tries.append(seen))
    await mine.round()
    await happen(ledger, clock)
    receiver.status = 503
    await mine.round()
    await mine.round()
    clock.advance(5)
    receiver.status = 200
    await mine.round()
    clock.advance(60)
    await mine.round()
    assert tries == [("webhook", False), ("webhook", True)]
    assert len({headers["X-Gpubid-Key"] for headers, _ in receiver.got}) == 1


async def test_a_restart_leaves_nothing_out(ledger: Ledger, clock: SteppedClock, receiver: Receiver) -> None:
    notify = Notify(webhook=Webhook(url=receiver.url))
    first = sender(ledger, clock, notify)
    await first.round()
    receiver.status = 503
    await happen(ledger, clock)
    await happen(ledger, clock, slot=1)
    await first.round()
    receiver.status, receiver.got = 200, []
    second = sender(ledger, clock, notify)
    await second.round()
    third = sender(ledger, clock, notify)
    await third.round()
    assert receiver.titles == [f"gpubid: lease.interrupted train/{slot} (outbid)" for slot in (0, 1)]


async def test_after_a_day_a_message_is_given_up(ledger: Ledger, clock: SteppedClock) -> None:
    mine = sender(ledger, clock, Notify(webhook=Webhook(url="http://127.0.0.1:1")))
    await mine.round()
    await happen(ledger, clock)
    await mine.round()
    clock.advance(86_400)
    await mine.round()
    tries: list[tuple[str, bool]] = []
    after = sender(ledger, clock, Notify(webhook=Webhook(url="http://127.0.0.1:1")), lambda *seen: tries.append(seen))
    await after.round()
    assert tries == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Apprise's own imports
async def test_apprise_delivers_through_its_own_services(
    ledger: Ledger, clock: SteppedClock, receiver: Receiver
) -> None:
    notify = Notify(apprise=("apprise_url",))
    way = channels.AppriseChannel(notify.apprise, lambda _: receiver.url.replace("http://", "json://"))
    mine = Dispatcher(ledger, clock, notify, {"apprise": way})
    await mine.round()
    await happen(ledger, clock)
    await mine.round()
    assert receiver.titles == ["gpubid: lease.interrupted train/0 (outbid)"]


def script(folder: Path, text: str) -> str:
    file = folder / "hook"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(stat.S_IRWXU)
    return str(file)


EVERYTHING = (Rule(severity=Severity.INFO, channels=("hook",)),)


async def test_a_hook_gets_each_event_as_json_and_no_secret(
    ledger: Ledger, clock: SteppedClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VAST_API_KEY", SECRET)
    command = script(tmp_path, f"cat >> {tmp_path}/got; echo >> {tmp_path}/got; env > {tmp_path}/env")
    mine = sender(ledger, clock, Notify(rules=EVERYTHING, hook=Hook((command,))))
    await mine.round()
    await happen(ledger, clock, reason="$(id); `id`")
    await happen(ledger, clock, kind="lease.resumed", cause=None)
    await mine.round()
    got = [json.loads(line) for line in (tmp_path / "got").read_text().splitlines()]
    assert [each["events"][0]["kind"] for each in got] == ["lease.interrupted", "lease.resumed"]
    assert got[0]["events"][0]["reason"] == "$(id); `id`"
    assert SECRET not in (tmp_path / "env").read_text()


class AfterChild(dt.timedelta):
    """A limit that begins once the hook wrote down its child: a busy machine may start a shell only after seconds."""

    child: Path

    def total_seconds(self) -> float:
        deadline = time.monotonic() + programs.PATIENCE_SECONDS
        while not (self.child.exists() and self.child.read_text().endswith("\n")):
            assert time.monotonic() < deadline, "the hook never wrote down its child"
            time.sleep(programs.PAUSE_SECONDS)
        return super().total_seconds()


async def test_a_hook_that_hangs_is_killed_with_its_children(
    ledger: Ledger, clock: SteppedClock, tmp_path: Path
) -> None:
    command = script(tmp_path, f"sleep 600 & echo $! > {tmp_path}/child; wait")
    limit = AfterChild(seconds=1)
    limit.child = tmp_path / "child"
    hook = Hook((command,), limit)
    tries: list[tuple[str, bool]] = []
    mine = sender(ledger, clock, Notify(rules=EVERYTHING, hook=hook), lambda *seen: tries.append(seen))
    await mine.round()
    await happen(ledger, clock)
    await mine.round()
    child = int((tmp_path / "child").read_text())
    assert tries == [("hook", False)]
    await programs.until(lambda: not is_alive(child), "the end of the hook's child")


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def test_the_digest_goes_out_once_a_day(ledger: Ledger, clock: SteppedClock, receiver: Receiver) -> None:
    notify = Notify(webhook=Webhook(url=receiver.url), digest_at=dt.time(12, 30), rules=())
    mine = sender(ledger, clock, notify)
    await mine.round()
    clock.advance(1800)
    await mine.round()
    clock.advance(3600)
    await mine.round()
    clock.advance(86_400)
    await mine.round()
    assert [title.split()[1] for title in receiver.titles] == ["2026-11-19", "2026-11-20"]


async def test_a_start_long_after_the_hour_sends_no_second_digest(
    ledger: Ledger, clock: SteppedClock, receiver: Receiver
) -> None:
    notify = Notify(webhook=Webhook(url=receiver.url), digest_at=dt.time(8, 0), rules=())
    await sender(ledger, clock, notify).round()
    assert receiver.titles == []


async def test_other_rules_and_channels_are_taken_on_reload(
    ledger: Ledger, clock: SteppedClock, receiver: Receiver
) -> None:
    notify = Notify(webhook=Webhook(url="http://127.0.0.1:1"))
    mine = sender(ledger, clock, notify)
    await mine.round()
    changed = dataclasses.replace(notify, webhook=Webhook(url=receiver.url))
    mine.use(changed, channels.channels(changed, lambda _: SECRET, clock))
    await happen(ledger, clock)
    await mine.round()
    assert len(receiver.got) == 1


@pytest.mark.parametrize("status", [204, 503], ids=["arrives", "is refused"])
async def test_a_channel_that_is_removed_while_it_hangs_ends_no_other_message(
    ledger: Ledger, clock: SteppedClock, receiver: Receiver, tmp_path: Path, status: int
) -> None:
    """It ended the dispatcher, and with it every later message."""
    mine = sender(ledger, clock, Notify(webhook=Webhook(url=receiver.url)))
    running = asyncio.ensure_future(mine.run())
    await programs.until(lambda: mine.is_begun, "where the past ends")
    receiver.may_answer.clear()
    receiver.status = status
    await happen(ledger, clock)
    mine.wake()
    await programs.until(lambda: receiver.got, "a delivery that hangs")
    told = tmp_path / "told"
    changed = Notify(rules=EVERYTHING, hook=Hook((script(tmp_path, f"cat > {told}"),)))
    mine.use(changed, channels.channels(changed, lambda _: SECRET, clock))
    receiver.may_answer.set()
    await happen(ledger, clock, slot=1)
    mine.wake()
    await programs.until(told.exists, "the next message")
    assert not running.done()
    await stopped(running)


NIGHT = Quiet(WindowRule("0 22 * * *", dt.timedelta(hours=9)), Severity.WARNING)


async def test_what_waits_in_quiet_hours_is_sent_after_them_in_one_message(
    ledger: Ledger, clock: SteppedClock, receiver: Receiver
) -> None:
    mine = sender(ledger, clock, Notify(webhook=Webhook(url=receiver.url), quiet=(NIGHT,)))
    clock.advance(11 * 3600)
    await mine.round()
    await happen(ledger, clock)
    await happen(ledger, clock, slot=1)
    await mine.round()
    await happen(ledger, clock, kind="alert.market_fault", cause=None)
    await happen(ledger, clock, kind="budget.reached", cause=None, slot=None)
    await mine.round()
    urgent = ["gpubid: alert.market_fault train/0", "gpubid: budget.reached"]
    assert receiver.titles == urgent, "critical events and money never wait"
    clock.advance(8 * 3600 - 1)
    await mine.round()
    assert receiver.titles == urgent
    clock.advance(1)
    await mine.round()
    assert receiver.titles == [*urgent, "gpubid: 2 messages of the quiet hours"]
    said = json.loads(receiver.got[-1][1])["text"].splitlines()
    assert said == [
        "2026-11-20 23:00:00 UTC lease.interrupted train/0",
        "2026-11-20 23:00:00 UTC lease.interrupted train/1",
    ]
    await happen(ledger, clock, slot=2)
    await mine.round()
    assert receiver.titles[-1] == "gpubid: lease.interrupted train/2 (outbid)", "after them it is as before"


async def test_a_restart_in_quiet_hours_loses_nothing(ledger: Ledger, clock: SteppedClock, receiver: Receiver) -> None:
    notify = Notify(webhook=Webhook(url=receiver.url), quiet=(NIGHT,))
    clock.advance(11 * 3600)
    first = sender(ledger, clock, notify)
    await first.round()
    await happen(ledger, clock)
    await first.round()
    second = sender(ledger, clock, notify)
    await second.round()
    assert receiver.titles == []
    clock.advance(8 * 3600)
    await second.round()
    assert receiver.titles == ["gpubid: lease.interrupted train/0 (outbid)"]


async def test_a_hook_never_waits_and_what_is_more_severe_than_they_say_neither(
    ledger: Ledger, clock: SteppedClock, receiver: Receiver
) -> None:
    quiet = dataclasses.replace(NIGHT, up_to=Severity.NOTICE)
    mine = sender(ledger, clock, Notify(webhook=Webhook(url=receiver.url), quiet=(quiet,)))
    clock.advance(11 * 3600)
    await mine.round()
    await happen(ledger, clock)
    await mine.round()
    assert receiver.titles == ["gpubid: lease.interrupted train/0 (outbid)"]


async def test_there_are_no_quiet_hours_while_the_time_is_not_known(
    ledger: Ledger, clock: SteppedClock, receiver: Receiver
) -> None:
    notify, is_known = Notify(webhook=Webhook(url=receiver.url), quiet=(NIGHT,)), [True]
    ways = channels.channels(notify, lambda _: SECRET, clock)
    mine = Dispatcher(ledger, clock, notify, ways, is_time_known=lambda: is_known[0])
    clock.advance(11 * 3600)
    await mine.round()
    await happen(ledger, clock)
    await mine.round()
    assert receiver.titles == []
    is_known[0] = False
    await mine.round()
    assert receiver.titles == ["gpubid: lease.interrupted train/0 (outbid)"]


async def test_other_quiet_hours_are_taken_on_reload(ledger: Ledger, clock: SteppedClock, receiver: Receiver) -> None:
    notify = Notify(webhook=Webhook(url=receiver.url), quiet=(NIGHT,))
    mine = sender(ledger, clock, notify)
    clock.advance(11 * 3600)
    await mine.round()
    await happen(ledger, clock)
    await mine.round()
    assert receiver.titles == []
    awake = dataclasses.replace(notify, quiet=())
    mine.use(awake, channels.channels(awake, lambda _: SECRET, clock))
    await mine.round()
    assert receiver.titles == ["gpubid: lease.interrupted train/0 (outbid)"]
