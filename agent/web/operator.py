"""A Unix socket for operators while the daemon holds the ledger: release, kill, lift; the peer's uid is recorded."""

import contextlib
import socket
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from aiohttp import web

from agent.app import App
from agent.domain.decision import Pause, Reason, Release
from agent.domain.intent import Intent
from agent.domain.lease import Lease
from agent.ledger.errors import LedgerError

MOST_BODY = 64 * 1024


def path_of(ledger: Path) -> Path:
    """Return where the socket of a ledger's daemon is."""
    return ledger.with_name(ledger.name + ".sock")


def orders(leases: Iterable[Lease], verb: str, *, keep_disks: bool) -> list[Release | Pause]:
    """Return the orders that stop `leases`: each released, or with `keep_disks` paused."""
    sentence = f"ordered by `gpubid {verb}`"
    if keep_disks:
        return [Pause(lease, Reason("ordered", sentence)) for lease in leases if lease.is_open]
    return [Release(lease, Reason("ordered", sentence)) for lease in leases if lease.is_open]


class OperatorSocket:
    """Serves orders on a socket that only the daemon's own user may open."""

    def __init__(self, app: App, wake: Callable[[], None]) -> None:
        """Serve orders for `app`; `wake` starts a cycle at once."""
        self._app = app
        self._wake = wake
        self._path = path_of(app.ledger.path)
        made = web.Application(client_max_size=MOST_BODY)
        made.router.add_post("/order", self._order)
        self._runner = web.AppRunner(made, access_log=None, shutdown_timeout=1.0, handle_signals=False)

    async def start(self) -> None:
        """Listen; a socket that a crash left behind is replaced, since the ledger's lock proves that nobody serves it."""
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        await self._runner.setup()
        await web.UnixSite(self._runner, self._path).start()
        self._path.chmod(0o600)

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
        who = f"uid {_peer_uid(request)}"
        try:
            done = await carry_out(self._app, verb, lease_ids, who, keep_disks=keep)
        except LedgerError as error:
            return web.json_response({"error": error.code.value, "sentence": error.sentence}, status=503)
        self._wake()
        return web.json_response({"done": [told(intent) for intent in done]})


async def carry_out(app: App, verb: str, lease_ids: set[str], who: str, *, keep_disks: bool) -> list[Intent]:
    """Carry out a person's order: release the named leases, stop everything, or lift such a stop.

    Raises:
        LedgerError: the order could not be written down.
    """
    if verb == "lift":
        await app.lift(who)
        return []
    if verb == "kill":
        await app.halt(who)
    held = app.ledger.recollection(app.clock.now()).leases
    wanted = [lease for lease in held if verb == "kill" or lease.lease_id in lease_ids]
    return await app.order(orders(wanted, verb, keep_disks=keep_disks), who)


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
