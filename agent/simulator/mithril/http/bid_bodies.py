"""The bodies of new and changed bids, checked field by field. A wrong field answers 422 with its place."""

import re
from collections.abc import Mapping
from typing import Any

from agent.simulator.mithril.http.calls import Call
from agent.simulator.mithril.http.surface import Surface
from agent.simulator.mithril.model import Refused, Terms

MOST_INSTANCES = 256
MOST_SCRIPT = 10_000
"""Characters, by the vendor's page on startup scripts. The refusal of a longer one is assumed."""
_PRICE = re.compile(r"\$?(\d{1,7})(?:\.(\d{1,2}))?")


def fields(call: Call) -> Mapping[str, Any]:
    """Return the object that the body must be, or raise Refused."""
    if call.is_body_broken:
        raise Refused(422, "JSON decode error", ("body",))
    if call.body is None:
        raise Refused(422, "Field required", ("body",))
    if not isinstance(call.body, dict):
        raise Refused(422, "Input should be a valid dictionary or object to extract fields from", ("body",))
    return call.body


def terms(surface: Surface, call: Call) -> Terms:
    """Read a new bid, or raise Refused."""
    body = fields(call)
    project, region, kind = (text(body, name) for name in ("project", "region", "instance_type"))
    limit, name = limit_cents(body), text(body, "name")
    quantity = whole(body, "instance_quantity", 1, MOST_INSTANCES)
    launch = body.get("launch_specification")
    if not isinstance(launch, dict):
        raise Refused(422, _wrong(launch, "dictionary"), ("body", "launch_specification"))
    surface.project(call, project)
    if (kind, region) not in surface.world.pools:
        raise Refused(404, "There is no auction for this instance type in this region")
    return Terms(
        name=name,
        project=project,
        pool=surface.world.pools[kind, region].pool,
        limit_cents=limit,
        quantity=quantity,
        volumes=_ids(launch, "volumes"),
        ssh_keys=_ids(launch, "ssh_keys"),
        script=_script(launch),
        image_version=_optional(launch, "image_version", str),
        memory_gb=_optional(launch, "memory_gb", int),
        cluster=_optional(launch, "kubernetes_cluster", str),
    )


def limit_cents(body: Mapping[str, Any]) -> int:
    """Read a limit such as "$25.60" in cents, or raise Refused."""
    match = _PRICE.fullmatch(text(body, "limit_price"))
    if match is None:
        raise Refused(422, 'Price must be dollars and cents, such as "$25.60"', ("body", "limit_price"))
    return int(match[1]) * 100 + int((match[2] or "").ljust(2, "0"))


def ids(body: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Read a list of ids, or raise Refused."""
    return _texts(body.get(name), ("body", name))


def _ids(launch: Mapping[str, Any], name: str) -> tuple[str, ...]:
    where = ("body", "launch_specification", name)
    if name not in launch:
        raise Refused(422, "Field required", where)
    return _texts(launch[name], where)


def _texts(value: object, where: tuple[str, ...]) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise Refused(422, "Input should be a valid list of strings", where)
    return tuple(value)


def text(body: Mapping[str, Any], name: str) -> str:
    """Read a text that must be there, or raise Refused."""
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise Refused(422, _wrong(value, "string"), ("body", name))
    return value


def whole(body: Mapping[str, Any], name: str, least: int, most: int) -> int:
    """Read a whole number that must be there, or raise Refused."""
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise Refused(422, _wrong(value, "integer"), ("body", name))
    if not least <= value <= most:
        raise Refused(422, f"Input should be between {least} and {most}", ("body", name))
    return value


def _script(launch: Mapping[str, Any]) -> str | None:
    script: str | None = _optional(launch, "startup_script", str)
    if script is not None and len(script) > MOST_SCRIPT:
        raise Refused(422, "Startup script is too large", ("body", "launch_specification", "startup_script"))
    return script


def _optional(launch: Mapping[str, Any], name: str, kind: type) -> Any:  # noqa: ANN401 - of that kind, or None
    value = launch.get(name)
    if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
        raise Refused(422, f"Input should be a valid {kind.__name__}", ("body", "launch_specification", name))
    return value


def _wrong(value: object, kind: str) -> str:
    return "Field required" if value is None else f"Input should be a valid {kind}"
