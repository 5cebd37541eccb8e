"""The JSON of the market -> our nouns; structs name only the fields used.

Invariants:
1. A bad row of the catalogue is dropped. A bid stays even if a figure is unreadable; `unread` names the figure. A bid
   without a readable id refuses the whole listing, since a part of a listing would look like lost instances.
2. Prices are for a whole machine, all of its GPUs together.
3. The market keeps no size of a boot disk: our start script names it (`start_script.py`).
"""

from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from agent.domain.market import card_memory
from agent.domain.market.gpu import GpuModel
from agent.markets import market_errors, text, tolerant_rows
from agent.markets.mithril import figures, names

MARKET = "mithril"
MOST_GPUS = 64
_Row = TypeVar("_Row", bound=msgspec.Struct)


class InstanceType(msgspec.Struct):
    """One kind of machine."""

    fid: str
    name: str = ""
    num_gpus: int = 0
    gpu_type: str = ""
    gpu_memory_gb: float | None = None
    gpu_socket: str = ""

    @property
    def model(self) -> GpuModel:
        """Our name of its GPUs."""
        return names.model(self.gpu_type, self.gpu_socket, self.name)

    @property
    def vram_mb(self) -> int:
        """The memory of one GPU: as the market says, but not more than its model is sold with."""
        most = card_memory.GIGABYTES.get(self.model)
        told = self.gpu_memory_gb if self.gpu_memory_gb is not None and 0 < self.gpu_memory_gb < 10_000 else None  # noqa: PLR2004 - absurd
        known = [size for size in (told, most) if size is not None]
        return int(min(known) * figures.MB_PER_GB) if known else 0

    @property
    def is_gpu(self) -> bool:
        """Whether its accelerators are GPUs; the market also lists TPUs and machines without any."""
        return 0 < self.num_gpus <= MOST_GPUS and "TPU" not in f"{self.gpu_type} {self.name}".upper()


class Quota(msgspec.Struct):
    """How many machines of one kind the project may bid for, and for how many it does."""

    name: str
    product_type: str
    total_quantity: int
    used_quantity: int

    @property
    def is_used_up(self) -> bool:
        """Whether a further bid would be refused."""
        return self.used_quantity >= self.total_quantity


class Auction(msgspec.Struct):
    """One pool with an auction."""

    instance_type: str
    region: str
    last_instance_price: str | None = None

    @property
    def pool(self) -> names.Pool | None:
        """The pool, or None if its names are no identifiers."""
        return names.pool_of(self.region, self.instance_type)


class _Project(msgspec.Struct):
    fid: str


class Launch(msgspec.Struct):
    """How a bid's machine starts."""

    startup_script: str | None = None


class Bid(msgspec.Struct):
    """One bid."""

    fid: str
    name: str | None = None
    project: str | None = None
    created_at: str | None = None
    deactivated_at: str | None = None
    limit_price: str | None = None
    instance_quantity: int | None = None
    instance_type: str | None = None
    region: str | None = None
    instances: list[str] | None = None
    launch_specification: Launch | None = None
    status: str | None = None

    @property
    def pool(self) -> names.Pool | None:
        """Its pool, or None if it is unreadable."""
        return names.pool_of(self.region, self.instance_type)


class Machine(msgspec.Struct):
    """One virtual machine: one allocation of a bid, or a reservation's."""

    fid: str
    bid: str | None = None
    created_at: str | None = None
    ssh_destination: str | None = None
    status: str | None = None


def instance_types(raw: bytes) -> dict[str, InstanceType]:
    """Return the readable kinds of machines with GPUs, by id.

    Raises:
        Malformed: the body is no list.
    """
    rows = _catalogue(raw, "The list of instance types", InstanceType)
    return {row.fid: row for row in rows if row.fid and row.is_gpu}


def auctions(raw: bytes) -> list[Auction]:
    """Return the readable pools.

    Raises:
        Malformed: the body is no list.
    """
    return [row for row in _catalogue(raw, "The list of auctions", Auction) if row.pool is not None]


def projects(raw: bytes) -> list[str]:
    """Return the ids of the projects of a key.

    Raises:
        Malformed: the body is no list.
    """
    return [row.fid for row in _catalogue(raw, "The list of projects", _Project) if row.fid]


def spot_quotas(raw: bytes) -> list[Quota]:
    """Return the quotas of bids, with names that are safe to show.

    Raises:
        Malformed: the body is no list.
    """
    rows = _catalogue(raw, "The list of quotas", Quota)
    rows = (row for row in rows if row.product_type.casefold() == "spot")
    return [msgspec.structs.replace(row, name=text.clean(row.name, 64)) for row in rows]


def bids(raw: bytes) -> tuple[list[Bid], str]:
    """Return a page of bids and the cursor of the next one, empty after the last.

    Raises:
        Malformed: the body is no page, or the id of a bid cannot be read.
    """
    return _page(raw, Bid, "The listing of bids")


def machines(raw: bytes) -> tuple[list[Machine], str]:
    """Return a page of machines, as `bids`."""
    return _page(raw, Machine, "The listing of machines")


def bid(raw: bytes) -> Bid:
    """Return the one bid of an answer.

    Raises:
        Malformed: the body is no bid, or its id cannot be read.
    """
    return _named(tolerant_rows.row(tolerant_rows.document(raw, "The bid"), Bid, "The answer"))


def cursor(document: dict[str, Any], what: str) -> str:
    """Return the cursor of the next page, empty after the last.

    Raises:
        Malformed: it cannot be read; the listing would end too early.
    """
    mark = document.get("next_cursor")
    if mark is None or mark == "":
        return ""
    if isinstance(mark, bool) or not isinstance(mark, str | int):
        raise market_errors.Malformed(f"{what} has no readable cursor; it is refused.")
    return str(mark)


def _page(raw: bytes, kind: type[_Row], what: str) -> tuple[list[_Row], str]:
    document = tolerant_rows.document(raw, what)
    rows = document.get("data")
    if not isinstance(rows, list):
        raise market_errors.Malformed(f"{what} has no list of data; try again later.")
    return [_named(tolerant_rows.row(row, kind, what)) for row in rows], cursor(document, what)


def _named(row: _Row) -> _Row:
    fid = getattr(row, "fid", "")
    if not fid or text.clean(fid, 64) != fid:
        raise market_errors.Malformed("mithril showed a row without a readable id; the answer is refused.")
    return row


def _catalogue(raw: bytes, what: str, kind: type[_Row]) -> Iterator[_Row]:
    return tolerant_rows.readable(tolerant_rows.bare_rows(raw, what), kind, what)
