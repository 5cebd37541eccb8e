"""A host's words in a message, through the real channels."""

import datetime as dt
import json

import pytest

from agent.clock import SteppedClock
from agent.config.notify_settings import Severity, Webhook
from agent.notify import channels
from agent.notify.incidents import Message
from tests.notify.receiver import Receiver

NOW = dt.datetime(2026, 11, 20, 12, 0, tzinfo=dt.UTC)
MARKS = ("@everyone", "@here", "<!channel>", "](", "<http")
SAID = "image_refused: @everyone <!channel> see [your bill](http://example.invalid) or <http://example.invalid|this>"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Apprise's own imports
@pytest.mark.nightly
async def test_the_words_of_a_host_call_nobody_in_a_chat() -> None:
    clock, receiver = SteppedClock(NOW), Receiver()
    await receiver.start()
    body = '{"title": {{ title | tojson }}, "message": {{ text | tojson }}}'
    settings = Webhook(url=receiver.url, body=body)
    said = Message("key", "any", Severity.WARNING, "gpubid: @here", SAID, clock.now())
    await channels.WebhookChannel(settings, lambda _: "", clock).deliver(said)
    address = receiver.url.replace("http://", "json://")
    await channels.AppriseChannel(("apprise_url",), lambda _: address).deliver(said)
    await receiver.close()
    for told in [json.loads(body) for _, body in receiver.got]:
        assert not [mark for mark in MARKS if mark in told["title"] + told["message"]]
        assert told["message"].replace("\u200b", "") == SAID
    assert len(receiver.got) == 2
