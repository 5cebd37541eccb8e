"""Flood the daemon's webhook, run in a guest by Debian's Python: flood.py PORT SECRET ROUNDS.

Each round is a delivery signed and new, the same again, one with a forged signature and one far too large; a few
hundred connections that never finish a request lie beside them. Prints how often each status came, as JSON.
"""

import collections
import concurrent.futures
import contextlib
import hashlib
import hmac
import http.client
import json
import socket
import sys
import time

PATH = "/webhooks/vast"
IDLE, THREADS = 400, 16


def main(port: int, secret: str, rounds: int) -> None:
    """Send it all and print what came back."""
    idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(IDLE)]
    for link in idle:
        link.sendall(b"POST " + PATH.encode() + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        found = collections.Counter(
            status
            for statuses in pool.map(lambda each: _round(port, secret, each), range(rounds))
            for status in statuses
        )
    for link in idle:
        link.close()
    print(json.dumps(found))


def _round(port: int, secret: str, number: int) -> list[str]:
    at = str(int(time.time()))
    event = {
        "event_id": f"flood-{number}",
        "user_id": 7,
        "notif_type": "client:outbid",
        "subject": "outbid",
        "message": f"Your instance {number} on machine 7 at $0.20/hr has been outbid and will be stopped.",
        "timestamp": time.time(),
    }
    raw = json.dumps(event).encode()
    mark = "sha256=" + hmac.new(secret.encode(), at.encode() + b"." + raw, hashlib.sha256).hexdigest()
    large = b"x" * 1_000_000
    sent = [(raw, mark), (raw, mark), (raw, "sha256=" + "0" * 64), (large, mark)]
    return [
        f"{name} {_status(port, *one, at)}" for name, one in zip(("new", "again", "forged", "large"), sent, strict=True)
    ]


def _status(port: int, raw: bytes, mark: str, at: str) -> str:
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with contextlib.closing(link):
        try:
            link.request("POST", PATH, raw, {"X-Vast-Timestamp": at, "X-Vast-Signature-256": mark})
            return str(link.getresponse().status)
        except (OSError, http.client.HTTPException):
            # The connection of a too large body may be closed before all of it is sent.
            return "cut"


main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
