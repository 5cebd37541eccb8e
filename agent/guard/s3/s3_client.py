"""Sends requests to one bucket: signed by the store's clock if ours is wrong, and repeated after passing failures."""

from __future__ import annotations

import collections
import contextlib
import http.client
import random
import ssl
import threading
from dataclasses import dataclass, field
from typing import Callable, Iterable, Iterator, Mapping
from urllib.parse import urlsplit

from agent.guard.guard_clock import GuardClock
from agent.guard.object_store import Refused, StoreFailed, TooLarge, Unreachable
from agent.guard.s3 import s3_answers
from agent.guard.s3.signature import EMPTY_SHA256, SigningKey, encoded_path, encoded_query, signed

TIMEOUT_SECONDS = 30.0
TRIES = 6
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 20.0
PASSING = frozenset({408, 429, 500, 502, 503, 504})
"""Answers after which the same request may succeed."""
PARTIAL, FORBIDDEN, NOT_FOUND, CONFLICT, CHANGED, NOT_IMPLEMENTED = 206, 403, 404, 409, 412, 501
MOST_SKEW_SECONDS = 240.0
"""S3 refuses a signature whose date is 15 minutes off."""
_ERROR_BYTES = 64 * 1024
_SUCCESSES = range(200, 300)
_FAILURES = (OSError, http.client.HTTPException)


@dataclass(frozen=True)
class S3Request:
    """A request. `body` makes its content again for each try: `size` bytes, with the digest `sha256`."""

    method: str
    key: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Callable[[], Iterable[bytes]] | None = None
    size: int = 0
    sha256: str = EMPTY_SHA256


@dataclass(frozen=True)
class S3Answer:
    """An answer with its whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def tag(self) -> str:
        """Return the tag of the object's version."""
        return self.headers.get("etag", "").strip('"')


class S3Client:
    """Sends requests, from any thread. Every method raises StoreFailed."""

    def __init__(self, endpoint: str, bucket: str, key: SigningKey, clock: GuardClock) -> None:
        """Use a bucket by its path below an http or https address. Raise Refused for any other address."""
        address = urlsplit(endpoint)
        if address.scheme not in {"http", "https"} or not address.hostname:
            raise Refused(f"the endpoint {endpoint!r} is no http or https address")
        self._is_tls = address.scheme == "https"
        self._host, self._port = address.hostname, address.port
        self._netloc = address.netloc.rpartition("@")[2]
        self._base = f"{address.path.rstrip('/')}/{bucket}"
        self._key = key
        self._clock = clock
        self._skew = 0.0
        # Threads take connections and give them back; both are one step for the interpreter.
        self._idle: collections.deque[http.client.HTTPConnection] = collections.deque()

    def now(self) -> float:
        """Return the store's clock as far as it is known, in seconds since 1970."""
        return self._clock.wall() + self._skew

    def ask(
        self, request: S3Request, *, accepts: Iterable[int] = (), most_bytes: int = s3_answers.LARGEST_BYTES
    ) -> S3Answer:
        """Send a request until it is answered. Return an answer of success, or one with a status in `accepts`."""
        accepted = frozenset(accepts)
        last = Unreachable("never asked")
        for number in range(TRIES):
            if number:
                self.pause(number)
            try:
                with self.opened(request, accepted) as response:
                    most = most_bytes if _is_success(response) else _ERROR_BYTES
                    body = response.read(most + 1)
                    if len(body) > most:
                        kind = TooLarge if _is_success(response) else Refused
                        raise kind(f"an answer has more than {most} bytes")
                    return S3Answer(response.status, _headers(response), body)
            except Unreachable as failure:
                last = failure
            except _FAILURES as failure:
                last = self._lost(failure)
        raise last

    @contextlib.contextmanager
    def opened(self, request: S3Request, accepted: Iterable[int] = ()) -> Iterator[http.client.HTTPResponse]:
        """Send a request once, and again with the store's time if it refused ours. Yield the answer, to be read."""
        connection, response = self._sent(request)
        if response.status == FORBIDDEN and self._learned_skew(response):
            connection.close()
            connection, response = self._sent(request)
        try:
            if not _is_success(response) and response.status not in accepted:
                raise self._failure(request, response)
            yield response
        finally:
            # Unread bytes would be taken for the next answer.
            if response.isclosed():
                self._idle.append(connection)
            else:
                connection.close()

    def pause(self, number: int) -> None:
        """Wait before a further try, longer each time."""
        seconds = min(FIRST_PAUSE_SECONDS * 2.0 ** (number - 1), LONGEST_PAUSE_SECONDS)
        self._clock.wait(threading.Event(), seconds * random.SystemRandom().uniform(0.5, 1.0))

    def close(self) -> None:
        """Close idle connections."""
        while self._idle:
            self._idle.pop().close()

    def _sent(self, request: S3Request) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        path = encoded_path(f"{self._base}/{request.key}" if request.key else self._base)
        query = encoded_query(request.query)
        headers = {"host": self._netloc, **request.headers}
        signed_headers = signed(self._key, request.method, path, query, headers, request.sha256, self.now())
        signed_headers["content-length"] = str(request.size)
        connection = self._connection()
        try:
            # A store may answer, and close, before it has the whole body.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                target = f"{path}?{query}" if query else path
                connection.request(request.method, target, request.body() if request.body else None, signed_headers)
            return connection, connection.getresponse()
        except _FAILURES as failure:
            connection.close()
            raise self._lost(failure) from None
        except StoreFailed:
            connection.close()
            raise

    def _connection(self) -> http.client.HTTPConnection:
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        if not self._is_tls:
            return http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT_SECONDS)
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(self._host, self._port, timeout=TIMEOUT_SECONDS, context=context)

    def _lost(self, failure: Exception) -> Unreachable:
        return Unreachable(f"{self._netloc} does not answer ({type(failure).__name__}: {failure})")

    def _learned_skew(self, response: http.client.HTTPResponse) -> bool:
        """Use the store's clock if ours is far off. Return whether ours was."""
        store_time = s3_answers.date(response.getheader("date"))
        if store_time is None or abs(store_time - self.now()) < MOST_SKEW_SECONDS:
            return False
        self._skew = store_time - self._clock.wall()
        return True

    def _failure(self, request: S3Request, response: http.client.HTTPResponse) -> Exception:
        try:
            body = response.read(_ERROR_BYTES)
        except _FAILURES:
            body = b""
        code, message = s3_answers.refusal(body)
        sentence = f"{request.method} was answered {response.status} {code}: {message}".rstrip(": ")
        return Unreachable(sentence) if response.status in PASSING else Refused(sentence, response.status)


def _is_success(response: http.client.HTTPResponse) -> bool:
    return response.status in _SUCCESSES


def _headers(response: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.getheaders()}
