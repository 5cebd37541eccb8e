"""The tables [front.NAME]: proxies in front of services, whose servers follow the leases."""

import os.path
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from agent.config.front_settings import Format, Front
from agent.config.toml_table import Table
from agent.config.value_kinds import WORKLOAD_NAME, Line, Span, Whole, refused
from agent.config.workload_tables.workload_table import WorkloadTable

FRONT_NAME = r"^[A-Za-z0-9._-]{1,64}$"
LONGEST_DRAIN = timedelta(minutes=10)
DRAIN = timedelta(seconds=30)


def _drain(value: timedelta | None) -> timedelta | None:
    if value is not None and value > LONGEST_DRAIN:
        raise refused("out_of_range", 'must be at most 10m, or "off"; write for example drain = "30s"')
    return value


_Drain = Annotated[
    Span | None,
    BeforeValidator(lambda value: None if value == "off" else value),
    AfterValidator(_drain),
    WithJsonSchema({"type": "string", "pattern": r"^(off|(\d+m)?(\d+s)?)$", "minLength": 2}),
]


class FrontTable(Table):
    """A proxy in front of a service: gpubid keeps its servers equal to the service's useful leases."""

    workload: Annotated[Line, Field(pattern=WORKLOAD_NAME, examples=["chat"])]
    """The service."""
    port: Annotated[Whole, Field(ge=1, le=65535, examples=[8000])]
    """The port of its containers to which the proxy passes requests."""
    haproxy: Annotated[Line, Field(min_length=1, max_length=104, examples=["/run/haproxy/admin.sock"])] | None = None
    """HAProxy's runtime socket, through which its servers are changed and drained."""
    backend: Annotated[Line, Field(pattern=FRONT_NAME, examples=["gpubid_chat"])] | None = None
    """HAProxy's backend, for this front alone. By default: gpubid_ and the front's name."""
    drain: Annotated[_Drain, Field(examples=["30s"])] = DRAIN
    """How long our own pause, release or move waits for the requests of its lease, or "off"; with `haproxy` alone."""
    file: Annotated[Line, Field(min_length=1, max_length=4096, examples=["/etc/traefik/dynamic/chat.yml"])] | None = (
        None
    )
    """A file with the list, for a proxy that reads files; relative to this one."""
    format: Literal["traefik", "caddy"] | None = None
    """The form of that file."""

    @model_validator(mode="after")
    def _is_of_one_proxy(self) -> Self:
        if (self.haproxy is None) == (self.file is None):
            sentence = 'a front needs one proxy; write either haproxy = "/run/haproxy/admin.sock" or file and format'
            raise refused("no_proxy", sentence)
        if (self.file is None) != (self.format is None):
            raise refused("missing_key", 'file and format go together; write for example format = "traefik"')
        beside = [key for key in ("backend", "drain") if self.file is not None and key in self.model_fields_set]
        if beside:
            raise refused("conflict", f"{beside[0]} is for HAProxy; remove it, or write haproxy instead of file")
        return self

    def front(self, name: str, place: Path) -> Front:
        """Return it as the program uses it; `place` is the configuration's path."""
        return Front(
            name,
            self.workload,
            self.port,
            haproxy=None if self.haproxy is None else place.parent / self.haproxy,
            backend=self.backend or f"gpubid_{name}",
            file=None if self.file is None else place.parent / self.file,
            format=Format(self.format or "traefik"),
            drain=(self.drain or timedelta()) if self.haproxy is not None else timedelta(),
        )


def misfits(
    fronts: Mapping[str, FrontTable], workloads: Mapping[str, WorkloadTable], folder: Path
) -> Iterator[tuple[str, str, str, str]]:
    """Yield (front, key, code, sentence) for fronts of unknown services, closed ports, and one backend for two.

    `folder` has the configuration, to which paths are relative.
    """
    taken: dict[tuple[str | None, str | None], str] = {}
    for name, table in fronts.items():
        work = workloads.get(table.workload)
        if work is None:
            yield name, "workload", "unknown_workload", f"there is no workload {table.workload}; name one of this file"
        elif work.kind != "service":
            yield name, "workload", "no_service", f'{table.workload} is no service; a front is for kind = "service"'
        elif table.port not in work.ports:
            sentence = f"workload {table.workload} does not open it; write ports = [{table.port}] there"
            yield name, "port", "closed_port", sentence
        written = table.haproxy if table.haproxy is not None else table.file
        backend = (table.backend or f"gpubid_{name}") if table.haproxy is not None else None
        # One path may be written in several ways, and /var/run leads to /run.
        place = (os.path.realpath(folder / written) if written is not None else None, backend)
        if place in taken:
            sentence = f"is that of front {taken[place]} too; each needs its own"
            yield name, "backend" if table.haproxy is not None else "file", "shared_front", sentence
        taken[place] = name
