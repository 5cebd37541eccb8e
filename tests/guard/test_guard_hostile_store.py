"""A store may answer anything: it is read within bounds of memory, and its failures are its own."""

import contextlib
import threading
import tracemalloc
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from agent.guard.guard_clock import GuardClock
from agent.guard.guard_settings import BucketPlace
from agent.guard.object_store import LARGEST_NOTE_BYTES, Refused, Unreachable
from agent.guard.s3 import s3_client
from agent.guard.s3.s3_objects import S3Objects


class Endless(BaseHTTPRequestHandler):
    """Answers every listing with a thousand keys and more to come, and every object with one that never ends."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        row = "<Contents><Key>p/{}</Key><Size>1</Size><LastModified>2026-11-22T00:00:00Z</LastModified></Contents>"
        rows = "".join(row.format("k" * 200 + str(number)) for number in range(1_000))
        more = "<IsTruncated>true</IsTruncated><NextContinuationToken>more</NextContinuationToken>"
        is_listing = "list-type" in self.path
        body = f"<ListBucketResult>{rows}{more}</ListBucketResult>".encode() if is_listing else b"x" * 65_536
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) if is_listing else 10**12))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)
            while not is_listing:
                self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@contextlib.contextmanager
def served(handler: type[BaseHTTPRequestHandler]) -> Iterator[S3Objects]:
    """Return a client of a store that answers as `handler` does."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    place = BucketPlace(f"http://127.0.0.1:{server.server_address[1]}", "us-east-1", "b", "p", "k", "s", "")
    objects = S3Objects(place, GuardClock())
    try:
        yield objects
    finally:
        objects.close()
        server.shutdown()
        server.server_close()


@pytest.mark.nightly
def test_a_billion_keys_and_an_endless_object_are_read_in_bounded_memory(tmp_path: Path) -> None:
    with served(Endless) as objects:
        tracemalloc.start()
        try:
            assert len(objects.list("p/", 20_000)) == 20_000
            with pytest.raises(Refused, match="more than 65536 bytes"):
                objects.get("p/beat.json", LARGEST_NOTE_BYTES)
            assert len(objects.download("p/file", tmp_path / "file", 300_000)) == 64
            assert (tmp_path / "file").stat().st_size == 300_000
            assert tracemalloc.get_traced_memory()[1] < 32 * 1024 * 1024
        finally:
            tracemalloc.stop()


class BrokenOff(Endless):
    """Answers that it is busy, and breaks off in the middle of saying so."""

    def do_GET(self) -> None:
        self.send_response(503)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"ff\r\n<Error>")
        self.close_connection = True


def test_a_refusal_that_breaks_off_is_the_stores_and_not_the_disks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_client, "FIRST_PAUSE_SECONDS", 0.001)
    with served(BrokenOff) as objects, pytest.raises(Unreachable, match="GET was answered 503"):
        objects.download("p/file", tmp_path / "file", 10)
