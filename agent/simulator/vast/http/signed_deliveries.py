"""Signed deliveries to webhooks, as the vendor documents them, over real HTTP and to loopback only.

1. A webhook's address must be public, but nothing here leaves the machine. `resolve` maps a public name to an address
   on loopback, as the person's own proxy would. A name without one cannot be reached.
2. A delivery is tried again after 408, 429, 5xx or no answer, with the delays of RETRY_SECONDS. Every other answer ends
   it. It is sent at least once, and at no exact time: `attend` sends the deliveries that are due.
3. The body is signed as it is sent: HMAC-SHA256 over the header's time, a dot and the bytes.
"""

import asyncio
import dataclasses
import hashlib
import hmac
import urllib.parse
from collections.abc import Mapping
from typing import Any

import aiohttp
import msgspec

from agent.simulator import recorded_figures
from agent.simulator.vast.http import notice_words
from agent.simulator.vast.model import Notice, NoticeKind
from agent.simulator.vast.world import World

TIMEOUT_SECONDS = 10.0
MOST_KEPT = 1_000
RETRY_SECONDS = recorded_figures.WEBHOOK_RETRY_SECONDS
_AGAIN = frozenset({0, 408, 429})
_SERVER_ERROR = 500


@dataclasses.dataclass(frozen=True, slots=True)
class Parcel:
    """One event for one webhook, and the time and number of its next attempt."""

    hook: dict[str, Any]
    event_id: str
    raw: bytes
    due: float
    attempt: int = 1
    is_final: bool = False


class Deliveries:
    """Sends the notices of one world to the webhooks that subscribe to them."""

    def __init__(self, world: World, webhooks: Mapping[int, dict[str, Any]]) -> None:
        """Start after the notices that are already in the inbox."""
        self._world = world
        self._webhooks = webhooks
        self._read = len(world.inbox)
        self._waiting: list[Parcel] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._session: aiohttp.ClientSession | None = None
        self._leads_to: dict[str, str] = {}
        self.sent: list[dict[str, Any]] = []

    def resolve(self, name: str, url: str) -> None:
        """Let a public name lead to an address on loopback."""
        self._leads_to[name] = url.rstrip("/")

    def attend(self, now: float) -> None:
        """Read the new notices of the inbox, and send the deliveries that are due."""
        inbox = self._world.inbox
        while self._read < len(inbox):
            notice = inbox[self._read]
            self._read += 1
            if self._webhooks:
                self._waiting += self._parcels(notice, now)
        due = [parcel for parcel in self._waiting if parcel.due <= now]
        if due:
            self._waiting = [parcel for parcel in self._waiting if parcel.due > now]
            for parcel in due:
                self._send(parcel, now)

    def try_out(self, hook: dict[str, Any], number: int, now: float) -> None:
        """Send a test event to one webhook, once."""
        event_id = hashlib.sha256(f"webhook_test/{number}".encode()).hexdigest()[:32]
        body = _body(event_id, hook, "webhook_test", "Test webhook", "This is a test of your webhook.", None, now)
        self._send(Parcel(hook, event_id, body, now, is_final=True), now)

    async def settle(self) -> None:
        """Wait until every delivery that was sent is answered."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Send nothing more."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _parcels(self, notice: Notice, now: float) -> list[Parcel]:
        slug, subject, message = notice_words.words(notice)
        wanting = [hook for hook in self._webhooks.values() if f"client:{slug}" in hook["event_types"]]
        return [
            Parcel(
                hook,
                notice.event_id,
                _body(notice.event_id, hook, slug, subject, message, _data(notice), notice.at),
                now,
            )
            for hook in wanting
        ]

    def _send(self, parcel: Parcel, now: float) -> None:
        task = asyncio.get_running_loop().create_task(self._deliver(parcel, now))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _deliver(self, parcel: Parcel, now: float) -> None:
        status = await self._post(parcel, now)
        if len(self.sent) < MOST_KEPT:
            row = {"time": now, "webhook": parcel.hook["id"], "event_id": parcel.event_id}
            self.sent.append({**row, "attempt": parcel.attempt, "status": status})
        is_again = status in _AGAIN or status >= _SERVER_ERROR
        if is_again and not parcel.is_final and parcel.attempt <= len(RETRY_SECONDS):
            due = now + RETRY_SECONDS[parcel.attempt - 1]
            self._waiting.append(dataclasses.replace(parcel, due=due, attempt=parcel.attempt + 1))

    async def _post(self, parcel: Parcel, now: float) -> int:
        """Send one attempt and return the status of its answer, 0 where nobody answered."""
        wanted = urllib.parse.urlsplit(parcel.hook["webhook_url"])
        place = self._leads_to.get(wanted.hostname or "")
        if place is None:
            return 0
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_SECONDS))
        url = place + (wanted.path or "/") + (f"?{wanted.query}" if wanted.query else "")
        headers = {**_headers(parcel, now), "Host": wanted.netloc}
        try:
            async with self._session.post(url, data=parcel.raw, headers=headers, allow_redirects=False) as answer:
                return answer.status
        except (aiohttp.ClientError, OSError, TimeoutError):
            return 0


def _headers(parcel: Parcel, now: float) -> dict[str, str]:
    stamp = str(int(now))
    secret = str(parcel.hook["webhook_secret"]).encode()
    mark = hmac.new(secret, stamp.encode() + b"." + parcel.raw, hashlib.sha256).hexdigest()
    return {
        "Content-Type": "application/json",
        "X-Vast-Event-Id": parcel.event_id,
        "X-Vast-Delivery-Attempt": str(parcel.attempt),
        "X-Vast-Timestamp": stamp,
        "X-Vast-Signature-256": f"sha256={mark}",
    }


def _body(
    event_id: str, hook: dict[str, Any], slug: str, subject: str, message: str, data: dict[str, Any] | None, at: float
) -> bytes:
    return msgspec.json.encode(
        {
            "event_id": event_id,
            "user_id": hook["user_id"],
            "notif_type": slug,
            "subject": subject,
            "message": message,
            "data": data,
            "data_truncated": False,
            "timestamp": at,
        }
    )


def _data(notice: Notice) -> dict[str, Any] | None:
    """Return the structured details. Only those of low_credit are documented; no others are assumed."""
    return {"balance": 0.0, "threshold": 0.0} if notice.kind is NoticeKind.LOW_CREDIT else None
