"""HTTP to a market: deadlines, reads tried again, writes sent once.

Invariants:
1. A write is handed to the exchange at most once, and the exchange sends it at most once.
2. A read that fails is tried again with a jittered back-off, then raises `Unavailable`.
3. The deadline holds on the wall and on the injected clock: in a rehearsal a slow answer costs no wall time.
4. The key is in one header, and in no repr, log line or error.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from agent import clock as clocks
from agent.markets import http_exchange, market_errors, outer_address, send_permit
from agent.markets import pace as pacing
from agent.markets.http_exchange import Exchange, Reply

__all__ = ["USUAL", "Bounds", "Call", "Key", "Reply", "Transport"]

DEADLINE_SECONDS = 30.0
ATTEMPTS = 3
RETRY_WITHIN_SECONDS = 20.0
"""A read that has taken this long is not tried again: the waiting cycle may have something to end."""
BACKOFF_SECONDS = 0.25
"""The first wait before a read is tried again, doubled each time; short, because a decision waits for the answer."""

MAX_BYTES = 64 * 2**20
"""The whole market of 13,000 full rows is 31 MB; an answer of twice that is an attack or a mistake."""

PROMPT_SECONDS = 1.0
"""A write that has waited this long for its turn is recorded again before it leaves."""
STATUS_PAGE = "check the market's status page"
OWN_SIDE = "check this machine's network, and `url` in the market's table if it is set"

_HTTP_FORBIDDEN = 403
_HTTP_TIMEOUT = 408
_HTTP_SERVER_ERROR = 500

Key = Callable[[], str]
"""Returns the bearer key for each request, so that nothing else stores it."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a market."""

    lane: str
    """The name of the lane in which it waits for its turn."""
    method: str
    path: str
    """The path, with an encoded query."""
    body: bytes | None = field(default=None, repr=False)
    """JSON. It may contain secrets of a workload, so no repr shows it."""
    is_urgent: bool = False
    """Whether it goes before all other calls of its lane, as a release and a pause do."""

    @property
    def door(self) -> str:
        """The name of an urgent call among others in its lane; empty for other calls."""
        return f"{self.method} {self.path} {self.body!r}" if self.is_urgent else ""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of one exchange."""

    deadline: float = DEADLINE_SECONDS
    """The most seconds that it may take."""
    max_bytes: int = MAX_BYTES
    """The most bytes of its answer."""


USUAL = Bounds()


class Transport:
    """The HTTP side of one market."""

    def __init__(
        self,
        base_url: str,
        key: Key,
        clock: clocks.Clock,
        pace: pacing.Pace,
        jitter: Callable[[], float],
        *,
        bounds: Bounds = USUAL,
        through: Exchange | None = None,
    ) -> None:
        """Take the market's address, its key and time; `jitter` returns a number from 0 to 1.

        Requests go out `through` the network unless something else carries them.
        """
        self._base_url = base_url.rstrip("/")
        self._key = key
        self._clock = clock
        self._pace = pace
        self._jitter = jitter
        self._bounds = bounds
        self._exchange = through if through is not None else http_exchange.HttpExchange(bounds.deadline, base_url)
        self.last_date = ""
        """The Date of the last answer, also of a refusal."""

    async def read(self, call: Call) -> Reply:
        """Return the answer to a question; ask again while the failure looks transient.

        Raises: Unavailable, Malformed (an endless answer), Throttled (a closed lane), Unauthorized (no usable key).
        """
        failure, fix, tries, began = "", STATUS_PAGE, 0, self._clock.monotonic()
        for attempt in range(ATTEMPTS):
            if attempt and self._clock.monotonic() - began >= RETRY_WITHIN_SECONDS:
                break
            tries += 1
            if attempt:
                await self._clock.sleep(BACKOFF_SECONDS * 2 ** (attempt - 1) * (0.5 + self._jitter()))
            await self._pace.turn(call.lane, door=call.door)
            try:
                reply = await self._send(call, call.body)
            except http_exchange.TooLarge as error:
                raise market_errors.Malformed(f"{_place(call)}: {error}") from None
            except (http_exchange.Lost, http_exchange.NeverLeft) as error:
                failure, fix = str(error), _fix(error)
                continue
            if not _is_transient(reply):
                return reply
            failure, fix = f"it answered {reply.status}", STATUS_PAGE
        raise market_errors.Unavailable(f"{_place(call)}: {failure}, {tries} time(s); {fix}.")

    async def fetch(self, url: str, most_bytes: int) -> Reply:
        """Return the file at an address that the market gave, requested without the key; a longer file is cut.

        Raises: Unavailable, Malformed (an address that a market may not name).
        """
        if why := outer_address.refusal(url, self._base_url):
            raise market_errors.Malformed(f"The market gave an address for a file, and {why}; nothing is fetched.")
        try:
            return await self._exchange.first(http_exchange.Request("GET", url), most_bytes)
        except (http_exchange.Lost, http_exchange.NeverLeft) as error:
            raise market_errors.Unavailable(f"a file of the market cannot be fetched: {error}") from None

    async def tail(self, call: Call, most_bytes: int) -> Reply:
        """Return the present content of an endless stream: stop when it is silent or too long.

        Raises: Unavailable, Throttled (a closed lane), Unauthorized (no usable key).
        """
        await self._pace.turn(call.lane, door=call.door)
        headers = self._headers(None, has_body=False) | {"Accept": "text/event-stream"}
        try:
            return await self._exchange.tail(
                http_exchange.Request("GET", self._base_url + call.path, headers), most_bytes
            )
        except (http_exchange.Lost, http_exchange.NeverLeft) as error:
            raise market_errors.Unavailable(f"{_place(call)}: {error}") from None

    async def write(self, call: Call) -> Reply:
        """Send an order once and return the answer, whatever its status.

        Raises: Ambiguous (no usable answer), Unreachable (no connection, so nothing left), Throttled (the lane is
            closed, nothing was sent), Unauthorized (no usable key, nothing was sent), Withheld (this daemon may not
            send any more, nothing was sent).
        """
        began = self._clock.monotonic()
        await self._pace.turn(call.lane, door=call.door)
        if self._clock.monotonic() - began >= PROMPT_SECONDS:
            await send_permit.renew()
        send_permit.check()
        body = call.body or b"{}"
        try:
            return await self._send(call, body, is_write=True)
        except http_exchange.Lost as error:
            raise market_errors.Ambiguous(f"{_place(call)}: {error}; its listing shows whether it was done.") from None
        except http_exchange.NeverLeft as error:
            raise market_errors.Unreachable(f"{_place(call)}: {error}; nothing was sent.") from None

    async def close(self) -> None:
        """Close every connection."""
        await self._exchange.close()

    async def _send(self, call: Call, body: bytes | None, *, is_write: bool = False) -> Reply:
        length = len(body) if is_write and body is not None else None
        headers = self._headers(length, has_body=body is not None)
        request = http_exchange.Request(call.method, self._base_url + call.path, headers, body, is_write)
        began = self._clock.monotonic()
        try:
            reply = await self._exchange.send(request, self._bounds.max_bytes)
        except http_exchange.TimedOut:
            raise http_exchange.Lost(self._too_late()) from None
        self.last_date = reply.headers.get("Date") or ""
        if self._clock.monotonic() - began >= self._bounds.deadline:
            raise http_exchange.Lost(self._too_late())
        return reply

    def _too_late(self) -> str:
        return f"no answer within {self._bounds.deadline:g} s"

    def _headers(self, length: int | None, *, has_body: bool) -> dict[str, str]:
        key = self._key().strip()
        if not key or not key.isascii() or not key.isprintable():
            raise market_errors.Unauthorized("The key is empty or not printable text; check its credential file.")
        headers = {"Authorization": f"Bearer {key}"}
        if has_body:
            headers["Content-Type"] = "application/json"
        if length is not None:
            # Without a length, a body from a generator would be chunked.
            headers["Content-Length"] = str(length)
        return headers


def _is_transient(reply: Reply) -> bool:
    # The proxy in front of the market answers bursts with a 403 page; the market's own 403 is JSON.
    is_page = reply.status == _HTTP_FORBIDDEN and not reply.looks_like_json
    return is_page or reply.status == _HTTP_TIMEOUT or reply.status >= _HTTP_SERVER_ERROR


def _fix(failure: Exception) -> str:
    """Return advice for the operator: without a connection, this machine's network comes first."""
    return OWN_SIDE if isinstance(failure, http_exchange.NeverLeft) else STATUS_PAGE


def _place(call: Call) -> str:
    return f"{call.method} {call.path.partition('?')[0]}"
