"""The routes of ssh keys."""

import base64
import hashlib
from typing import Any

from agent.simulator.api_calls import Reply
from agent.simulator.mithril.belongings import SshKey
from agent.simulator.mithril.http import bid_bodies, calls
from agent.simulator.mithril.http.calls import Call
from agent.simulator.mithril.http.surface import Surface
from agent.simulator.mithril.model import Refused

_PRIVATE = "-----BEGIN OPENSSH PRIVATE KEY-----\nc2ltdWxhdGVk\n-----END OPENSSH PRIVATE KEY-----\n"


def listed(surface: Surface, call: Call) -> Reply:
    """Answer GET /v2/ssh-keys."""
    surface.project(call, call.required("project"))
    keys = surface.world.belongings.keys.values()
    return calls.ok([] if "empty_list" in call.struck else [_view(surface, key) for key in keys])


def make(surface: Surface, call: Call) -> Reply:
    """Answer POST /v2/ssh-keys. Without a public key the market makes a pair; here it is one that opens nothing."""
    body = bid_bodies.fields(call)
    project, name = bid_bodies.text(body, "project"), bid_bodies.text(body, "name")
    surface.project(call, project)
    is_made = body.get("public_key") is None
    public_key = _made(name) if is_made else bid_bodies.text(body, "public_key")
    if len(public_key.split()) < 2:  # noqa: PLR2004 - its type and its bytes
        raise Refused(422, "Input should be a public key", ("body", "public_key"))
    belongings = surface.world.belongings
    key = belongings.make_key(name, public_key, surface.world.now, is_required=_required(body))
    return calls.ok({**_view(surface, key), "private_key": _PRIVATE if is_made else None}, 201)


def change(surface: Surface, call: Call, fid: str) -> Reply:
    """Answer PATCH /v2/ssh-keys/{ssh_key_fid}."""
    key = surface.world.belongings.key(fid)
    key.is_required = _required(bid_bodies.fields(call))
    return calls.ok(_view(surface, key))


def delete(surface: Surface, _call: Call, fid: str) -> Reply:
    """Answer DELETE /v2/ssh-keys/{ssh_key_fid}."""
    surface.world.belongings.delete_key(fid)
    return Reply(b"", 204)


def _made(name: str) -> str:
    """Return a text in the shape of a public key, the same for the same name."""
    digest = hashlib.sha256(name.encode()).digest()
    blob = b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + digest
    return f"ssh-ed25519 {base64.b64encode(blob).decode()} {name}"


def _required(body: Any) -> bool:  # noqa: ANN401 - a JSON object
    value = body.get("required", False)
    if not isinstance(value, bool):
        raise Refused(422, "Input should be a valid boolean", ("body", "required"))
    return value


def _view(surface: Surface, key: SshKey) -> dict[str, Any]:
    return {
        "fid": key.fid,
        "name": key.name,
        "project": surface.world.project,
        "public_key": key.public_key,
        "created_at": calls.stamp(key.created),
        "required": key.is_required,
    }
