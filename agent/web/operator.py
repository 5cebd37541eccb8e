"""A Unix socket for operators while the daemon holds the ledger: release, kill, lift; the peer's uid is recorded."""

import contextlib
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from aiohttp import web

from agent.domain.intent import Intent
from agent.ledger.errors import LedgerError
from agent.web.server import ListenError

MOST_BODY = 64 * 1024
VERBS = ("release", "kill", "lift")


def path_of(ledger: Path) -> Path:
    """Return where the socket of a ledger's daemon is."""
    return ledger.with_name(ledger.name + ".sock")


class Orders(Protocol):
    """Who carries orders out: the App, between two cycles."""

    async def obey(self, verb: str, lease_ids: set[str], who: str, *, keep_disks: bool) -> list[Intent]:
        """Release the named leases, stop everything ("kill"), or end such a stop ("lift")."""
        ...

    def doubts(self) -> list[Intent]:
        """Return what may still turn out to bill."""
        ...


class OperatorSocket:
    """Serves orders on a socket that only the daemon's own user may open."""

    def __init__(self, ledger: Path, orders: Orders, wake: Callable[[], None]) -> None:
        """Serve orders beside `ledger`; `wake` starts a cycle at once."""
        self._orders = orders
        self._wake = wake
        self._path = path_of(ledger)
        made = web.Application(client_max_size=MOST_BODY)
        made.router.add_post("/order", self._order)
        self._runner = web.AppRunner(made, access_log=None, shutdown_timeout=1.0, handle_signals=False)

    async def start(self) -> None:
        """Listen; a socket left by a crash is replaced: the ledger's lock proves that nobody serves it.

        Raises:
            ListenError: the path is too long for a socket, or nothing can be made there.
        """
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        await self._runner.setup()
        try:
            await web.UnixSite(self._runner, self._path).start()
            self._path.chmod(0o600)
        except OSError as error:
            await self._runner.cleanup()
            why = os.strerror(error.errno) if error.errno else str(error)
            sentence = f"cannot listen on {self._path} ({why}); give [ledger] a shorter path, where files can be made"
            raise ListenError(sentence) from None

    async def close(self) -> None:
        """Stop listening."""
        await self._runner.cleanup()
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()

    async def _order(self, request: web.Request) -> web.Response:
        try:
            body = await request.json()
            verb, lease_ids, keep = str(body["verb"]), set(body["leases"]), bool(body["keep_disks"])
        except (ValueError, KeyError, TypeError):
            return web.json_response({"error": "bad_order"}, status=400)
        if verb not in VERBS:
            return web.json_response({"error": "bad_order"}, status=400)
        who = f"uid {_peer_uid(request)}"
        try:
            done = await self._orders.obey(verb, lease_ids, who, keep_disks=keep)
        except LedgerError as error:
            return web.json_response({"error": error.code.value, "sentence": error.sentence}, status=503)
        self._wake()
        return web.json_response(answer(done, self._orders.doubts()))


def answer(done: list[Intent], doubts: list[Intent]) -> dict[str, Any]:
    """Return what was done and what is in doubt, as JSON for the operator."""
    return {"done": [told(intent) for intent in done], "in_doubt": [told(intent) for intent in doubts]}


def told(intent: Intent) -> dict[str, Any]:
    """Return an intent as JSON for the operator."""
    return {
        "intent": intent.intent_id,
        "kind": intent.kind.value,
        "lease": intent.lease_id,
        "slot": str(intent.slot),
        "state": intent.state.value,
        "outcome": intent.outcome,
    }


def _peer_uid(request: web.Request) -> int:
    link = request.transport.get_extra_info("socket") if request.transport is not None else None
    if link is None:
        return -1
    credentials = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])
