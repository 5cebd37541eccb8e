"""A proxy in front of an S3 server that injects errors, cuts and slowness. It also counts requests."""

import contextlib
import http.client
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.s3_servers import Store

CUT, LOST = "cut", "lost"
Fault = Callable[[str, str], int | str | None]
"""The fault for a request of a method and a path: a status to answer with, CUT, LOST or nothing.

Of a CUT request the server sees nothing; of a LOST one it does all, and only its answer is dropped."""


class StoreProxy:
    """Steers the answers that the clients of one server get."""

    def __init__(self, behind: Store) -> None:
        self.asked: list[tuple[str, str]] = []
        self.fault: Fault = lambda _method, _path: None
        self.cut_after: int | None = None
        self.slow_seconds = 0.0
        self.code = "Weather"
        """The code of the error in the body of a fault that is a status."""
        self.date: str | None = None
        self.behind = behind
        self.url = ""
        self._in_flight = 0
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def carrying(self) -> Iterator[None]:
        """Count a request that may still reach the server."""
        with self._changed:
            self._in_flight += 1
        try:
            yield
        finally:
            with self._changed:
                self._in_flight -= 1
                self._changed.notify_all()

    def settle(self, seconds: float = 60.0) -> None:
        """Wait until no request is under way, because s3rver shows a file that it is still writing."""
        with self._changed:
            assert self._changed.wait_for(lambda: not self._in_flight, seconds), "a request is still on its way"

    def count(self, method: str, part: str = "") -> int:
        """Return the number of requests of a method whose path contains `part`."""
        return sum(asked == method and part in path for asked, path in self.asked)

    def once(self, status: int | str, method: str, part: str = "", times: int = 1) -> None:
        """Let the next requests of a kind fail, that many times."""
        left = [status] * times

        def fault(asked: str, path: str) -> int | str | None:
            return left.pop() if left and asked == method and part in path else None

        self.fault = fault


@contextlib.contextmanager
def before(store: Store, certificate: Path | None = None) -> Iterator[StoreProxy]:
    """Run a proxy. With a certificate (and its key in one file) it uses TLS."""
    proxy = StoreProxy(store)

    class Handler(_Handler):
        it = proxy

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    proxy.url = f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    it: StoreProxy

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def _serve(self) -> None:
        with self.it.carrying():
            self._carry()

    def _carry(self) -> None:
        it = self.it
        it.asked.append((self.command, self.path))
        fault = it.fault(self.command, self.path)
        if fault == CUT:
            self.rfile.read(min(int(self.headers.get("content-length", 0)), 65_536))
            self.close_connection = True
            return
        length = int(self.headers.get("content-length", 0))
        body = self.rfile.read(length)
        if len(body) < length:
            # The sender died. S3 keeps nothing of such a request; s3rver keeps an object of the part that came.
            self.close_connection = True
            return
        time.sleep(it.slow_seconds)
        if isinstance(fault, int):
            said = f"<Error><Code>{it.code}</Code><Message>a fault of the test</Message></Error>"
            self._answer(fault, {}, said.encode())
            return
        address = urlsplit(it.behind.url)
        with contextlib.closing(http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)) as link:
            link.request(self.command, self.path, body, dict(self.headers.items()))
            answer = link.getresponse()
            status, headers, read = answer.status, dict(answer.getheaders()), answer.read()
        if fault == LOST:
            self.close_connection = True
            return
        with contextlib.suppress(ConnectionError):
            self._answer(status, headers, read)

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response_only(status)
        length = headers.get("Content-Length", headers.get("content-length", str(len(body))))
        self.send_header("Content-Length", length if self.command == "HEAD" else str(len(body)))
        self.send_header("Date", self.it.date or headers.get("Date") or self.date_time_string())
        for name in ("ETag", "Content-Range", "Last-Modified"):
            if (value := headers.get(name) or headers.get(name.lower())) is not None:
                self.send_header(name, value)
        self.end_headers()
        cut, self.it.cut_after = (self.it.cut_after, None) if len(body) > 1_000_000 else (None, self.it.cut_after)
        with contextlib.suppress(OSError):
            self.wfile.write(body if cut is None else body[:cut])
        if cut is not None:
            self.close_connection = True

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve  # noqa: N815 - http.server calls them so
