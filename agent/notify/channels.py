"""The channels: a signed webhook, Apprise's services, a command. Each delivers one message or says why it could not.

1. A webhook is signed: `X-Gpubid-Signature: t=SECONDS,v1=HEX` is the HMAC-SHA256 over "SECONDS.BODY". So a receiver
   can refuse a message that is old or not ours. `X-Gpubid-Key` is the same when a message is sent again.
2. A command is run without a shell, gets no secret, and is killed with its children at its deadline.
3. No error contains any part of an address or a key.
4. Apprise's services, and the template of a webhook, get text that mentions nobody and hides no address
   (`chat_text.py`), since a host may have written a part of it.
"""

import asyncio
import contextlib
import hashlib
import hmac
import importlib
import json
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Protocol

import aiohttp
from jinja2.sandbox import SandboxedEnvironment

from agent.clock import Clock
from agent.config.notify_settings import Hook, Notify, Webhook
from agent.domain.record.event import Event
from agent.notify import chat_text
from agent.notify.incidents import Message
from agent.systemd import CredentialError

DEADLINE_SECONDS = 15.0
MOST_TEXT = 4_000
"""Most characters of a message: chat services refuse more."""
MOST_REMEMBERED = 1_000
"""Messages of which is known which service accepted them. A message that is given up is never delivered."""


class UndeliveredError(Exception):
    """A message did not arrive; the text gives the reason without the address."""


class Channel(Protocol):
    """One channel."""

    async def deliver(self, message: Message) -> None:
        """Deliver one message.

        Raises:
            UndeliveredError: it did not arrive; it may be tried again.
        """
        ...


def plain(event: Event) -> dict[str, Any]:
    """Return an event as JSON: money in dollars, times in ISO."""
    return {name: _plain(value) for name, value in asdict(event).items()}


def _plain(value: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "dollars"):
        return value.dollars
    return getattr(value, "value", value)


def as_json(message: Message) -> dict[str, Any]:
    """Return a message as JSON."""
    return {
        "key": message.key,
        "severity": message.severity.name.lower(),
        "title": message.title,
        "text": message.text[:MOST_TEXT],
        "at": message.at.isoformat(),
        "events": [plain(event) for event in message.events],
    }


class WebhookChannel:
    """Posts to the operator's own address."""

    def __init__(self, settings: Webhook, credential: Callable[[str], str], clock: Clock) -> None:
        """Post as `settings` say; addresses and keys are looked up at each delivery."""
        self._settings = settings
        self._credential = credential
        self._clock = clock
        self._template = SandboxedEnvironment().from_string(settings.body) if settings.body else None

    async def deliver(self, message: Message) -> None:
        """Post one message; an answer other than 2xx is no delivery. Redirects are not followed: they would leak it."""
        settings = self._settings
        url = settings.url or self._credential(settings.url_credential)
        body = self._body(message)
        patience = aiohttp.ClientTimeout(total=DEADLINE_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(timeout=patience) as session,
                session.post(url, data=body, headers=self._headers(message, body), allow_redirects=False) as answer,
            ):
                status = answer.status
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise UndeliveredError(f"the webhook could not be reached ({type(error).__name__})") from None
        if not 200 <= status < 300:  # noqa: PLR2004 - what HTTP calls success
            raise UndeliveredError(f"the webhook answered HTTP {status}")

    def _body(self, message: Message) -> bytes:
        if self._template is None:
            return json.dumps(as_json(message)).encode()
        given = as_json(message)
        shown = {name: chat_text.unmarked(given[name]) for name in ("title", "text")}
        return self._template.render(given | shown).encode()

    def _headers(self, message: Message, body: bytes) -> Mapping[str, str]:
        headers = {"Content-Type": "application/json", "X-Gpubid-Key": message.key}
        if self._settings.secret_credential:
            seconds = str(int(self._clock.now().timestamp()))
            secret = self._credential(self._settings.secret_credential)
            headers["X-Gpubid-Signature"] = f"t={seconds},v1={signature(secret, seconds, body)}"
        return headers


def signature(secret: str, seconds: str, body: bytes) -> str:
    """Return the HMAC-SHA256, in hexadecimal, over the time and the body as sent."""
    return hmac.new(secret.encode(), seconds.encode() + b"." + body, hashlib.sha256).hexdigest()


class AppriseChannel:
    """Hands messages to Apprise, which supports a hundred services; an extra: `pip install gpubid[notify]`."""

    def __init__(self, names: tuple[str, ...], credential: Callable[[str], str]) -> None:
        """Send to the services whose addresses the named credentials hold."""
        self._names = names
        self._credential = credential
        self._attempts: dict[str, dict[str, asyncio.Future[bool]]] = {}
        """By a message's key and the service's name: the last attempt at each service."""

    async def deliver(self, message: Message) -> None:
        """Send one message to each service that has not accepted it yet; it is delivered once all have."""
        attempts = self._begun(message)
        await asyncio.wait(attempts.values(), timeout=DEADLINE_SECONDS)
        failures = [why for name, attempt in attempts.items() if (why := _failure(name, attempt))]
        if failures:
            raise UndeliveredError(f"not accepted by every service of Apprise: {'; '.join(failures)}")
        self._attempts.pop(message.key, None)

    def _begun(self, message: Message) -> Mapping[str, "asyncio.Future[bool]"]:
        """Begin the missing attempts, and return all. One that may still succeed is not begun a second time."""
        attempts = self._attempts.setdefault(message.key, {})
        while len(self._attempts) > MOST_REMEMBERED:
            del self._attempts[next(iter(self._attempts))]
        for name in self._names:
            if name not in attempts or (attempts[name].done() and _failure(name, attempts[name])):
                attempts[name] = asyncio.get_running_loop().run_in_executor(None, self._send, name, message)
                # An attempt that fails after the last look at it is no error of the loop.
                attempts[name].add_done_callback(asyncio.Future.exception)
        return attempts

    def _send(self, name: str, message: Message) -> bool:
        try:
            apprise = importlib.import_module("apprise")
        except ImportError:
            raise UndeliveredError("Apprise is not installed: pip install 'gpubid[notify]'") from None
        sender = apprise.Apprise()
        sender.add(self._credential(name))
        title, body = chat_text.unmarked(message.title), chat_text.unmarked(message.text)[:MOST_TEXT]
        # Services that show HTML get the text with its marks escaped.
        return bool(sender.notify(title=title, body=body, body_format=apprise.NotifyFormat.TEXT))


def _failure(name: str, attempt: "asyncio.Future[bool]") -> str:
    """Return why a service has not accepted a message, or an empty text if it has."""
    if not attempt.done():
        return f"{name} did not answer in time"
    error = attempt.exception()
    if error is not None:
        is_known = isinstance(error, UndeliveredError | CredentialError)
        return f"{name}: {error}" if is_known else f"{name} failed ({type(error).__name__})"
    return "" if attempt.result() else f"{name} refused the message"


class HookChannel:
    """Runs the operator's command."""

    def __init__(self, settings: Hook) -> None:
        """Run the command as `settings` say."""
        self._settings = settings

    async def deliver(self, message: Message) -> None:
        """Run the command with the message on its standard input; an exit status other than 0 is no delivery."""
        given = json.dumps(as_json(message)).encode()
        environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        try:
            process = await asyncio.create_subprocess_exec(
                *self._settings.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise UndeliveredError(f"the hook could not be started ({error.strerror})") from None
        try:
            await asyncio.wait_for(process.communicate(given), self._settings.deadline.total_seconds())
        except TimeoutError:
            raise UndeliveredError(f"the hook was killed after {self._settings.deadline}") from None
        finally:
            await _end(process)
        if process.returncode:
            raise UndeliveredError(f"the hook ended with status {process.returncode}")


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill the rest of a command, with its children."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def channels(notify: Notify, credential: Callable[[str], str], clock: Clock) -> dict[str, Channel]:
    """Return the configured channels by name."""
    built: dict[str, Channel] = {}
    if notify.webhook is not None:
        built["webhook"] = WebhookChannel(notify.webhook, credential, clock)
    if notify.apprise:
        built["apprise"] = AppriseChannel(notify.apprise, credential)
    if notify.hook is not None:
        built["hook"] = HookChannel(notify.hook)
    return built
