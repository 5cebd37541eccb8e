"""The bodies of the handbook for Slack, Discord and Telegram, each taken from its page and sent to a web server."""

import datetime as dt
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.clock import SteppedClock
from agent.config import loading
from agent.domain.market.interruption import Cause
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.ledger.store import Ledger
from agent.notify import channels
from agent.notify.dispatcher import Dispatcher
from tests.notify.receiver import Receiver
from tests.support.configs import GOOD

PAGE = Path(__file__).parents[2] / "deploy/handbook/pages/notifications.md"
NOW = dt.datetime(2026, 11, 20, 12, 0, tzinfo=dt.UTC)
WORDS = 'its "host" said:\n{"a": 1} @everyone <!channel> [bill](http://x) ' + "x" * 6000
FIELDS = {"Slack": {"text"}, "Discord": {"content"}, "Telegram": {"chat_id", "text"}}
MOST = {"Slack": 40_000, "Discord": 2_000, "Telegram": 4_096}
"""The documented greatest length of a message, in characters."""


def printed(service: str) -> str:
    """Return the body that the page's table has for a service."""
    table = PAGE.read_text().partition("## Slack, Discord and Telegram by webhook")[2]
    row = next(line for line in table.splitlines() if line.startswith(f"| {service} |"))
    return row.replace("\\|", "\0").split("|")[3].strip().strip("`").replace("\0", "|")


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver()
    await made.start()
    yield made
    await made.close()


@pytest.mark.parametrize("service", FIELDS)
async def test_a_printed_body_is_what_the_service_documents(tmp_path: Path, receiver: Receiver, service: str) -> None:
    table = f"[notify.webhook]\nurl = '{receiver.url}'\nbody = '{printed(service)}'\n"
    (tmp_path / "agent.toml").write_text(GOOD + table)
    notify = loading.load(tmp_path / "agent.toml", strategies=frozenset({"patient", "hedged", "ondemand"})).notify
    clock = SteppedClock(NOW)
    ledger = await Ledger.open(tmp_path / "ledger.sqlite", clock=clock)
    mine = Dispatcher(ledger, clock, notify, channels.channels(notify, str, clock), lambda *_: None)
    await mine.round()
    async with ledger.transaction() as tx:
        lost = Event(
            at=NOW, kind=EventKind.LEASE_INTERRUPTED, workload="train", slot=0, cause=Cause.OUTBID, reason=WORDS
        )
        tx.append_event(lost)
    await mine.round()
    await ledger.close()
    ((_, body),) = receiver.got
    said = json.loads(body)
    assert said.keys() == FIELDS[service]
    text = said.get("content", said.get("text"))
    assert "lease.interrupted train/0" in text
    assert len(text) <= MOST[service]
    assert "@everyone" not in text
    assert "<!channel" not in text
