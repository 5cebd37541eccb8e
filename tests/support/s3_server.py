"""A real S3 server over TCP: moto's, in this process, with one bucket."""

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from moto.backends import get_backend
from moto.server import ThreadedMotoServer
from obstore.store import S3Store

from agent.domain.work.guard_terms import Bucket

SECRET = "AKIAEXAMPLE:s3cretOfTheBucket"


@dataclass(frozen=True, slots=True)
class S3Server:
    """A server with one bucket."""

    url: str
    bucket: str = "runs"

    def place(self, prefix: str = "train", **changes: str) -> Bucket:
        """Return a folder of its bucket."""
        values = {"endpoint": self.url, "region": "us-east-1", "name": self.bucket, "credential": "train_bucket"}
        return Bucket(**{**values, "prefix": prefix, **changes})

    def put(self, path: str, content: bytes) -> None:
        """Write an object, as another client would."""
        asyncio.run(self._store().put_async(path, content))

    def put_raw(self, path: str, content: bytes) -> None:
        """Put an object under any key, even one that is no path. No client of ours could do this."""
        get_backend("s3")["123456789012"]["aws"].put_object(self.bucket, path, content)

    def get(self, path: str) -> bytes:
        """Return an object."""
        return bytes(asyncio.run(self._store().get_async(path)).bytes())

    def names(self) -> list[str]:
        """Return the names of all objects."""
        return sorted(entry["path"] for page in self._store().list() for entry in page)

    def _store(self) -> S3Store:
        return S3Store(
            self.bucket,
            endpoint=self.url,
            region="us-east-1",
            access_key_id="other",
            secret_access_key="other",
            virtual_hosted_style_request=False,
            client_options={"allow_http": True},
        )


@contextlib.contextmanager
def served() -> Iterator[S3Server]:
    """Run a server with an empty bucket while the block runs."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    backend = get_backend("s3")["123456789012"]["aws"]
    backend.reset()
    backend.create_bucket("runs", "us-east-1")
    try:
        yield S3Server(f"http://{host}:{port}")
    finally:
        server.stop()
