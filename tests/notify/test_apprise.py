"""Several services of the real Apprise: one that fails is tried again; the others get a message once."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from agent.clock import SteppedClock
from agent.config.notify_settings import Severity
from agent.notify import channels
from agent.notify.channels import AppriseChannel, UndeliveredError
from agent.notify.incidents import Message
from agent.systemd import CredentialError
from tests.notify.receiver import Receiver
from tests.notify.test_dispatcher import NOW
from tests.support import programs

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Apprise's own imports
MESSAGE = Message("apprise/1", "apprise", Severity.CRITICAL, "gpubid: test", "a text", SteppedClock(NOW).now())
NAMES = ("slack", "old_pager")


@pytest.fixture
async def slack() -> AsyncIterator[Receiver]:
    server = Receiver()
    await server.start()
    yield server
    await server.close()


@pytest.fixture
async def old_pager() -> AsyncIterator[Receiver]:
    server = Receiver()
    await server.start()
    yield server
    await server.close()


def both(slack: Receiver, old_pager: Receiver) -> AppriseChannel:
    """Return a channel with both services."""
    urls = {"slack": slack.url, "old_pager": old_pager.url}
    return AppriseChannel(NAMES, lambda name: urls[name].replace("http://", "json://"))


async def test_a_service_that_accepted_a_message_gets_it_once(slack: Receiver, old_pager: Receiver) -> None:
    """One revoked address sent each message about thirty times to every service that works."""
    channel = both(slack, old_pager)
    old_pager.status = 403
    for _ in range(2):
        with pytest.raises(UndeliveredError) as error:
            await channel.deliver(MESSAGE)
        assert str(error.value) == "not accepted by every service of Apprise: old_pager refused the message"
    old_pager.status = 204
    await channel.deliver(MESSAGE)
    assert (len(slack.got), len(old_pager.got)) == (1, 3)
    assert channel._attempts == {}


async def test_a_missing_credential_of_one_service_keeps_no_message_from_another(slack: Receiver) -> None:
    def credential(name: str) -> str:
        if name == "old_pager":
            raise CredentialError("missing", "there is no key named old_pager")
        return slack.url.replace("http://", "json://")

    with pytest.raises(UndeliveredError, match="old_pager: there is no key named old_pager"):
        await AppriseChannel(NAMES, credential).deliver(MESSAGE)
    assert len(slack.got) == 1


async def test_an_attempt_that_succeeds_after_its_deadline_is_not_repeated(
    slack: Receiver, old_pager: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels, "DEADLINE_SECONDS", 0.05)
    channel, may_send, send = both(slack, old_pager), threading.Event(), AppriseChannel._send

    def late(self: AppriseChannel, name: str, message: Message) -> bool:
        return (name == "slack" or may_send.wait(programs.PATIENCE_SECONDS)) and send(self, name, message)

    monkeypatch.setattr(AppriseChannel, "_send", late)
    for _ in range(2):
        with pytest.raises(UndeliveredError, match="old_pager did not answer in time"):
            await channel.deliver(MESSAGE)
    may_send.set()
    await asyncio.wait(channel._attempts[MESSAGE.key].values())
    await channel.deliver(MESSAGE)
    assert (len(slack.got), len(old_pager.got)) == (1, 1)
