"""Two S3 servers as separate programs, over TCP: s3rver checks signatures, and moto is a second reading of the API.

s3rver is in a separate environment, .node-s3 (`make stores`).
"""

import atexit
import contextlib
import dataclasses
import functools
import itertools
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

ROOT = Path(__file__).parents[2]
S3RVER = ROOT / ".node-s3/node_modules/@20minutes/s3rver"
BUCKET = "runs"
KEY_ID = SECRET = "S3RVER"
"""The one key that s3rver knows. moto takes any key."""
_NUMBERS = itertools.count(1)
HERE = {"moto": True, "s3rver": S3RVER.exists() and shutil.which("node") is not None}
_MOTO = """
import sys, time
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
import urllib.request
host, port = server.get_host_and_port()
urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/" + sys.argv[1], method="PUT"))
print(port, flush=True)
sys.stdin.read()
"""
_S3RVER = """
const S3rver = require(process.argv[1]);
const options = {address: "127.0.0.1", port: 0, silent: true, directory: process.argv[2],
  configureBuckets: [{name: process.argv[3]}]};
new S3rver(options).run().then((address) => console.log(address.port));
process.stdin.on("end", () => process.exit()).resume();
"""


@dataclasses.dataclass(frozen=True)
class Store:
    """A server that runs: its address, and the bucket in it."""

    name: str
    url: str
    bucket: str = BUCKET

    def place(self, root: str, **changes: Any) -> dict[str, Any]:
        """Return the bucket as the guard's settings name it."""
        return {"endpoint": self.url, "region": "us-east-1", "name": self.bucket, "root": root, **changes}

    @property
    def keys(self) -> dict[str, str]:
        """Return the guard's variables for its key."""
        return {"GPUBID_BUCKET_KEY_ID": KEY_ID, "GPUBID_BUCKET_SECRET": SECRET}


def shared(name: str, base: Path) -> Store:
    """Return an empty bucket of a server that runs until this process ends, below `base`.

    A start takes a third of a second of processor time, and a server that has served answers quicker.
    """
    folder, bucket = base / f"shared-{name}", f"{BUCKET}-{next(_NUMBERS)}"
    store = _kept(name, folder)
    if name == "s3rver":
        (folder / bucket).mkdir()  # for it a folder is a bucket
    else:
        urllib.request.urlopen(urllib.request.Request(f"{store.url}/{bucket}", method="PUT")).close()  # noqa: S310
    return dataclasses.replace(store, bucket=bucket)


@functools.cache
def _kept(name: str, folder: Path) -> Store:
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(running(name, folder))


@contextlib.contextmanager
def running(name: str, folder: Path) -> Iterator[Store]:
    """Run a server. It ends when its standard input is closed."""
    words = {
        "moto": [sys.executable, "-c", _MOTO, BUCKET],
        "s3rver": ["node", "-e", _S3RVER, str(S3RVER), str(folder), BUCKET],
    }[name]
    folder.mkdir(parents=True, exist_ok=True)
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    with subprocess.Popen(words, env=environment, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, text=True) as server:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        assert port.isdigit(), f"{name} did not start: {port}"
        try:
            yield Store(name, f"http://127.0.0.1:{port}")
        finally:
            server.kill()
