"""A real dstack server on loopback, with SQLite in a folder of its own and no cloud; and its own OpenAPI document."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import jsonschema

PROGRAM = pathlib.Path(__file__).parents[2] / ".venv-dstack" / "bin" / "dstack"
WHERE = "`make dstack-server` installs it"
TOKEN = "made-up-token-4711"
PATIENCE_SECONDS = 120.0
Document = dict[str, Any]


class Server:
    """One server; it may be killed, and started again on its folder."""

    def __init__(self, home: pathlib.Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._home = home
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        home = {**os.environ, "HOME": str(self._home), "DSTACK_DO_NOT_UPDATE_DEFAULT_PROJECT": "1"}
        words = [str(PROGRAM), "server", "--host", "127.0.0.1", "--port", str(self.port), "--token", TOKEN, "-y"]
        with (self._home / "server.log").open("ab") as log:
            self._process = subprocess.Popen(words, env=home, stdout=log, stderr=log, start_new_session=True)
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{self.url}/healthcheck", timeout=5)  # noqa: S310 - loopback
                return
            time.sleep(0.2)
        raise AssertionError((self._home / "server.log").read_text()[-2000:])

    def kill(self) -> None:
        """End it as SIGKILL does."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def post(self, path: str, body: Any = None, token: str = TOKEN) -> tuple[int, Any]:
        """Return the status and the JSON of an answer."""
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        data = json.dumps(body or {}).encode()
        asked = urllib.request.Request(f"{self.url}{path}", data, headers, method="POST")  # noqa: S310 - loopback
        try:
            with urllib.request.urlopen(asked, timeout=30) as reply:  # noqa: S310 - loopback
                return int(reply.status), json.loads(reply.read() or b"null")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def document(self) -> Document:
        """Return its OpenAPI document."""
        with urllib.request.urlopen(f"{self.url}/openapi.json", timeout=30) as reply:  # noqa: S310 - loopback
            return dict(json.loads(reply.read()))


@contextlib.contextmanager
def running(home: pathlib.Path) -> Iterator[Server]:
    server = Server(home)
    server.start()
    try:
        yield server
    finally:
        server.kill()


def faults(document: Document, path: str, status: int, body: Any) -> list[str]:
    """Return how an answer of a route departs from the document."""
    declared = document["paths"][path]["post"]["responses"].get(str(status))
    if declared is None or "content" not in declared:
        return [] if status >= 400 else [f"{path}: {status} is not declared"]
    schema = {**declared["content"]["application/json"]["schema"], "components": document["components"]}
    errors = jsonschema.Draft202012Validator(schema).iter_errors(body)
    return [f"{path}: {'/'.join(map(str, error.path))}: {error.message[:200]}" for error in errors]


def asked(document: Document, path: str, body: Any) -> list[str]:
    """Return how a request to a route departs from the document."""
    described = document["paths"][path]["post"].get("requestBody")
    if described is None:
        return []
    schema = {**described["content"]["application/json"]["schema"], "components": document["components"]}
    errors = jsonschema.Draft202012Validator(schema).iter_errors(body)
    return [f"{path}: {'/'.join(map(str, error.path))}: {error.message[:200]}" for error in errors]
