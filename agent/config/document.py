"""The tables and keys of agent.toml. The JSON schema for editors is made from them."""

import ipaddress
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, ConfigDict, Field, create_model, model_validator

from agent.config import problems
from agent.config.budgets import LimitsTable, MarketBudgetTable
from agent.config.notify_table import NotifyTable
from agent.config.toml_table import Table
from agent.config.value_kinds import (
    WORKLOAD_NAME,
    Flag,
    Line,
    Span,
    Whole,
    credential_name,
    host_name,
    refused,
    web_address,
)
from agent.config.workload_tables.front_table import FRONT_NAME, FrontTable
from agent.config.workload_tables.workload_table import WorkloadTable
from agent.ledger import server_address
from agent.ledger.server_address import ServerAddress
from agent.markets import registered_markets
from agent.markets.market_record import MarketRecord


def _poll(value: timedelta) -> timedelta:
    if not timedelta(seconds=5) <= value <= timedelta(minutes=10):
        raise refused("out_of_range", "must be 5s to 10m")
    return value


def _listen(value: str) -> str:
    host, _, port = value.rpartition(":")
    try:
        ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
        is_port = port.isascii() and port.isdecimal() and int(port) < 65536  # noqa: PLR2004 - the highest port
    except ValueError:
        is_port = False
    if not is_port:
        raise refused("bad_address", 'must be an IP address and a port; write for example listen = "127.0.0.1:9477"')
    return value


def _url(value: str) -> str:
    flaw = server_address.flaw(value)
    if flaw is not None:
        raise refused(*flaw)
    return value


def _schema(value: str) -> str:
    if not server_address.is_schema(value):
        raise refused("bad_name", 'may hold lower-case letters, digits and _ only; write for example "gpubid"')
    return value


class AgentTable(Table):
    """Settings of the daemon itself."""

    poll: Annotated[Span, AfterValidator(_poll), Field(examples=["15s"])] = timedelta(seconds=15)
    """Time between two listings of the market, 5s to 10m."""


class MarketTable(Table):
    """One market, simulated or live; both have the same keys. A market's record may add keys of its own."""

    needed_live: ClassVar[tuple[str, ...]] = ()
    simulated: Annotated[Line, Field(min_length=1, max_length=64, examples=["calm"])] | None = None
    """Name of a climate of the embedded simulator. A live market has none."""
    url: Annotated[Line, Field(max_length=256), AfterValidator(web_address)]
    """Address of the market's API."""
    credential: Annotated[Line, AfterValidator(credential_name)] | None = None
    """Name of the systemd credential, or in capitals of the environment variable, that holds the key."""
    credential_file: Annotated[Line, Field(min_length=1, max_length=4096)] | None = None
    """File that holds the key."""
    spend: Flag = False
    """Whether gpubid may spend money on this market."""
    budget: MarketBudgetTable = MarketBudgetTable()
    """Limits on the cost of this market."""

    @model_validator(mode="after")
    def _is_simulated_or_live(self) -> Self:
        live = [key for key in ("url", "credential", "credential_file", "spend") if key in self.model_fields_set]
        if self.simulated is not None and live:
            raise refused("conflict", f"simulated does not go with {' and '.join(live)}; remove one or the other")
        if self.simulated is None and (self.credential is None) == (self.credential_file is None):
            sentence = 'a live market needs one key; write either credential = "NAME_OF_THE_KEY" or credential_file'
            raise refused("no_credential", sentence)
        lacking = [key for key in self.needed_live if getattr(self, key) in (None, ())]
        if self.simulated is None and lacking:
            raise refused("missing_key", f"a live market of this kind needs {' and '.join(lacking)}; write it here")
        return self


class MarketsTable(Table):
    """The markets on which gpubid rents, at least one."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if not self.named:
            names = " or ".join(f"[markets.{name}]" for name in type(self).model_fields)
            raise refused("no_market", f"no market is configured; write {names}")
        return self

    @property
    def named(self) -> dict[str, MarketTable]:
        """The given tables, by the market's name."""
        found: dict[str, MarketTable | None] = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: table for name, table in found.items() if table is not None}


class LedgerTable(Table):
    """The place where everything is recorded."""

    path: Annotated[Line, Field(min_length=1, max_length=4096, examples=["gpubid.sqlite"])] = "gpubid.sqlite"
    """Path of the ledger, relative to the state directory under systemd, else to the working directory."""
    log_mb: Annotated[Whole, Field(ge=0, le=100_000)] = 64
    """The most megabytes of kept logs of containers, compressed, beside the ledger. 0 keeps none."""
    url: (
        Annotated[Line, Field(max_length=1024, examples=["postgresql://gpubid@db/gpubid"]), AfterValidator(_url)] | None
    ) = None
    """Address of a PostgreSQL database for the ledger's tables, without a password. Needs `gpubid[postgresql]`. The
    small files that belong to a ledger stay beside `path`."""
    schema_name: Annotated[Line, Field(examples=["gpubid"]), AfterValidator(_schema)] = server_address.DEFAULT_SCHEMA
    """Schema of this fleet in the database. Each fleet needs its own."""
    credential: Annotated[Line, AfterValidator(credential_name), Field(examples=["ledger_password"])] | None = None
    """Name of the systemd credential, or in capitals of the environment variable, that holds the password."""
    credential_file: Annotated[Line, Field(min_length=1, max_length=4096)] | None = None
    """File that holds the password."""
    reader: Annotated[Line, Field(min_length=1, max_length=63, examples=["gpubid_reader"])] | None = None
    """Role of the verbs that only read. The daemon grants it SELECT on the ledger's tables, and nothing else."""
    reader_credential: Annotated[Line, AfterValidator(credential_name)] | None = None
    """Name of the credential that holds the password of `reader`."""

    @model_validator(mode="after")
    def _is_of_one_place(self) -> Self:
        of_server = ("schema_name", "credential", "credential_file", "reader", "reader_credential")
        given = [key for key in of_server if key in self.model_fields_set]
        if self.url is None and given:
            raise refused("conflict", f"{' and '.join(given)} need a server; write url, or remove them")
        if self.credential is not None and self.credential_file is not None:
            raise refused("conflict", "the password has one place; write either credential or credential_file")
        if self.reader_credential is not None and self.reader is None:
            raise refused("conflict", "reader_credential needs reader; write it, or remove reader_credential")
        return self

    def server(self, folder: Path) -> ServerAddress | None:
        """Return the place of the tables on a server, or None for a file; `folder` is that of agent.toml."""
        if self.url is None:
            return None
        return ServerAddress(
            self.url,
            self.schema_name,
            self.credential or "",
            None if self.credential_file is None else folder / self.credential_file,
            self.reader or "",
            self.reader_credential or "",
        )


class WebTable(Table):
    """Address of the page, the metrics and the health checks."""

    listen: Annotated[Line, AfterValidator(_listen)] = "127.0.0.1:9477"
    """Address and port; port 0 takes any free one."""
    credential: Annotated[Line, AfterValidator(credential_name), Field(examples=["web_token"])] | None = None
    """Name of the credential, or in capitals of the environment variable, that allows orders through the page."""
    names: Annotated[
        tuple[Annotated[Line, Field(max_length=253), AfterValidator(host_name)], ...],
        Field(max_length=100, examples=[["gpu-box.lan"]]),
    ] = ()
    """Host names that requests may use, besides IP addresses and localhost. Other names are refused."""
    webhook_credential: Annotated[Line, AfterValidator(credential_name), Field(examples=["vast_webhook"])] | None = None
    """Name of the credential with which the market signs its webhooks. Without it every webhook is refused."""


class LabTable(Table):
    """Recordings of plans, for `gpubid lab verify`."""

    record: Flag = False
    """Whether to record every plan with all its inputs, in files beside the ledger."""
    record_mb: Annotated[Whole, Field(ge=1, le=1_000_000)] = 256
    """The most megabytes of recordings. Past it the oldest are deleted."""


class StrategiesTable(Table):
    """The folder of the operator's own strategy files."""

    directory: Annotated[Line, Field(min_length=1, max_length=4096, examples=["strategies"])] | None = None
    """Directory of strategy files, relative to this file."""


class OperatorsTable(Table):
    """Users who may read and give orders through the daemon's socket. Its own user and root always may."""

    group: Annotated[Line, Field(min_length=1, max_length=32, pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$")] | None = None
    """Group whose members may read; by default the daemon's own."""
    group_may_order: Flag = False
    """Whether the members of that group may give orders too."""
    uids: Annotated[tuple[Annotated[Whole, Field(ge=0, le=4_294_967_294)], ...], Field(max_length=64)] = ()
    """Numbers of other users who may give orders. They must be in the group to connect."""


class Document(Table):
    """A whole agent.toml."""

    # Only the models that `with_markets` makes are read with.
    model_config = ConfigDict(defer_build=True)

    include: Annotated[
        tuple[Annotated[Line, Field(min_length=1, max_length=4096)], ...],
        Field(max_length=64, examples=[["conf.d/*.toml"]]),
    ] = ()
    """More files, relative to this one, whose keys count as if they were written here. They include nothing more."""
    agent: AgentTable = AgentTable()
    markets: MarketsTable
    limits: LimitsTable
    ledger: LedgerTable = LedgerTable()
    web: WebTable = WebTable()
    strategies: StrategiesTable = StrategiesTable()
    operators: OperatorsTable = OperatorsTable()
    notify: NotifyTable = NotifyTable()
    lab: LabTable = LabTable()
    front: dict[Annotated[str, Field(pattern=FRONT_NAME)], FrontTable] = Field(default={}, max_length=64)
    """Proxies in front of services, by their names."""
    workloads: dict[Annotated[str, Field(pattern=WORKLOAD_NAME)], WorkloadTable] = Field(min_length=1)


_MADE: dict[str, Any] = {"use_attribute_docstrings": False}
"""A class that is made here has no source text. Pydantic would look for it in every loaded module at each start."""


def with_markets(records: Mapping[str, MarketRecord]) -> type[Document]:
    """Return the model of a whole agent.toml with a table for each of these markets."""
    tables: dict[str, Any] = {name: (_table(record) | None, None) for name, record in records.items()}
    markets = create_model(
        "MarketsTable", __base__=MarketsTable, __doc__=MarketsTable.__doc__, __cls_kwargs__=_MADE, **tables
    )
    return create_model(
        "Document", __base__=Document, __doc__=Document.__doc__, __cls_kwargs__=_MADE, markets=(markets, ...)
    )


@cache
def installed() -> type[Document]:
    """Return the model of a whole agent.toml with a table for each installed market.

    Raises:
        ConfigError: a package that brings a market is broken.
    """
    try:
        return with_markets(registered_markets.installed())
    except registered_markets.BrokenMarket as broken:
        found = problems.Problem(broken.entry.value, 1, broken.entry.name, "broken_market", broken.sentence)
        raise problems.ConfigError([found]) from broken


def _table(record: MarketRecord) -> type[MarketTable]:
    """Return the table of a market: the keys of every market, and its own."""
    own = () if record.options is None else (record.options,)
    shared = MarketTable.model_fields
    changed: dict[str, Any] = {
        "url": (shared["url"].rebuild_annotation(), Field(record.url, description=record.url_means)),
        "credential": (
            Annotated[  # pyright: ignore[reportOperatorIssue]
                Line, AfterValidator(credential_name), Field(examples=[record.credential])
            ]
            | None,
            Field(None, description=shared["credential"].description),
        ),
        "needed_live": (ClassVar[tuple[str, ...]], record.needed_live),
    }
    about = f"The {record.title} market, simulated or live."
    title = record.title.partition(".")[0] + "Table"
    bases = (*own, MarketTable)
    return create_model(  # pyright: ignore[reportReturnType]
        title, __base__=bases, __doc__=about, __cls_kwargs__=_MADE, **changed
    )
