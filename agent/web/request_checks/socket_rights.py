"""The user at the other end of the operators' socket, and his rights: to read, or to give orders too."""

import grp
import os
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

import structlog
from aiohttp import web

log = structlog.get_logger("gpubid.socket")

MODE = 0o660


@dataclass(frozen=True, slots=True)
class Peer:
    """The process that connected, as the kernel reports it."""

    uid: int

    def __str__(self) -> str:
        return f"uid {self.uid}"


def peer(request: web.Request) -> Peer:
    """Return the uid of a request's sender, or -1 if the kernel does not know it."""
    link = request.transport.get_extra_info("socket") if request.transport is not None else None
    if link is None:
        return Peer(-1)
    credentials = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return Peer(int(struct.unpack("3i", credentials)[1]))


def may_order(who: Peer, uids: tuple[int, ...], *, may_group_order: bool) -> bool:
    """Return whether a user may give orders. Every user who can connect may read."""
    return may_group_order or who.uid in {0, os.geteuid(), *uids}


def open_to_group(path: Path, group: str) -> None:
    """Allow the daemon's group, or the named one, to connect to the socket, and nobody else."""
    path.chmod(0o600)
    if group:
        try:
            os.chown(path, -1, grp.getgrnam(group).gr_gid)
        except (KeyError, OSError) as error:
            log.warning("socket.not_shared", group=group, reason=str(error))
            return
    path.chmod(MODE)
