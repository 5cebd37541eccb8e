"""The JSON of REST v2 -> our nouns; structs name only the fields used, the decoder skips the rest.

Invariants:
1. A bad row of the catalogue is dropped. A pod stays even if a figure is unreadable; `unread` names the figure. A pod
   without a readable id refuses the whole listing, since a part of a listing would look like lost instances.
2. Prices of the catalogue are for one GPU, the cost of a pod is for all of its GPUs; both leave here for all of them.
3. A stopped pod shows no cost, so the price of its next run is looked up by its model and cloud. A running pod without
   a cost counts at that price too. Where the catalogue lacks the model, the price is unread and never zero.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from agent.domain import card_benchmarks, money
from agent.domain.market.instance import Instance
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.markets import labels, market_errors, text, tolerant_rows
from agent.markets.runpod import figures, names, reach, states

MARKET = "runpod"
SECURE, COMMUNITY = "SECURE", "COMMUNITY"
_CLOUDS = frozenset({SECURE, COMMUNITY})
_MOST = 10_000.0
"""Dollars per hour for one GPU above which a price is absurd."""
_MOST_GPUS = 64
_HUGE_GB = 1_000_000
_MB_PER_GB = 1024
_NONE = "NONE"


class _ByCloud(msgspec.Struct):
    secure: float | None = None
    community: float | None = None


class DataCenter(msgspec.Struct):
    """A data centre with a GPU type, and its stock."""

    id: str
    availability: str | None = None


class GpuRow(msgspec.Struct):
    """One GPU type of the catalogue in one cloud."""

    id: str
    price: _ByCloud
    name: str | None = None
    memory: float | None = None
    secure: bool | None = None
    community: bool | None = None
    maxCount: _ByCloud | None = None  # noqa: N815 - the vendor's spelling
    availability: str | None = None
    dataCenters: list[DataCenter] | None = None  # noqa: N815 - as above


class _Catalogue(msgspec.Struct):
    gpus: list[msgspec.Raw]


class _Gpu(msgspec.Struct):
    id: str
    count: int = 1


class _Persistent(msgspec.Struct):
    size: float = 0.0


class _Network(msgspec.Struct):
    volumeId: str | None = None  # noqa: N815 - the vendor's spelling


class _Mounts(msgspec.Struct):
    persistent: _Persistent | None = None
    network: list[_Network] | None = None


class _Use(msgspec.Struct):
    util: float | None = None


class Runtime(msgspec.Struct):
    """The report of a pod's host."""

    uptime: float | None = None
    gpus: list[_Use] | None = None
    ports: list[reach.Port] | None = None


class _Ssh(msgspec.Struct):
    direct: reach.Ends | None = None
    proxy: reach.Ends | None = None


class PodRow(msgspec.Struct):
    """One pod of a listing."""

    id: str
    status: str | None = None
    cost: float | None = None
    name: str | None = None
    gpu: _Gpu | None = None
    cpu: Any = None
    cloud: str | None = None
    disk: float | None = None
    mounts: _Mounts | None = None
    dataCenterId: str | None = None  # noqa: N815 - the vendor's spelling
    ssh: _Ssh | None = None
    runtime: Runtime | None = None
    createdAt: str | None = None  # noqa: N815 - as above


class Page(msgspec.Struct):
    """One page of a listing, and the mark of the next one."""

    pods: list[PodRow]
    nextCursor: str | None = None  # noqa: N815 - the vendor's spelling


Prices = Callable[[names.Pool], UsdPerHour | None]
"""Returns the price of one GPU of a pool, by the last catalogue."""

_CATALOGUE = msgspec.json.Decoder(_Catalogue)
_GPU_ROW = msgspec.json.Decoder(GpuRow, strict=False)
_PAGE = msgspec.json.Decoder(Page, strict=False)
_POD = msgspec.json.Decoder(PodRow, strict=False)


def catalogue(raw: bytes) -> list[GpuRow]:
    """Return the readable GPU types of a catalogue.

    Raises:
        Malformed: the body is no catalogue.
    """
    try:
        rows = _CATALOGUE.decode(raw).gpus
        catalogue_rows = list(_readable(_GPU_ROW.decode, rows))
    except (msgspec.DecodeError, RecursionError):
        rows = tolerant_rows.rows(raw, "gpus", "The catalogue")
        catalogue_rows = list(_readable(lambda row: msgspec.convert(row, GpuRow, strict=False), rows))
    # The market has one row that is no model.
    return [row for row in catalogue_rows if row.id != "unknown"]


def price(row: GpuRow, cloud: str) -> UsdPerHour | None:
    """Return the price of one GPU in a cloud, or None if it is not offered there: a price of 0 means that."""
    is_offered, listed = (row.secure, row.price.secure) if cloud == SECURE else (row.community, row.price.community)
    if not is_offered or listed is None or not 0 < listed <= _MOST:
        return None
    return money.per_hour(listed)


def offers(
    row: GpuRow,
    cloud: str,
    gpus: int,
    floor: UsdPerHour | None,
    seen_at: datetime,
    volumes: Mapping[str, tuple[str, ...]],
) -> Iterator[Offer]:
    """Yield one offer for each data centre with this many GPUs of a type, or one for the cloud if none is named.

    Ask and `floor` are for the whole pod; `volumes` are the account's network volumes by data centre. figures.py has
    the figures that the market does not report.
    """
    each = price(row, cloud)
    most = row.maxCount.secure if cloud == SECURE and row.maxCount else row.maxCount.community if row.maxCount else None
    if each is None or not 0 < gpus <= _MOST_GPUS or (most is not None and gpus > most) or row.availability == _NONE:
        return
    places = [place.id for place in row.dataCenters or () if place.availability != _NONE]
    if row.dataCenters and not places:
        return
    for data_center in places or [""]:
        where = names.Pool(cloud, text.clean(row.id, 64), text.clean(data_center, 32))
        offer = _offer(row, where, gpus, seen_at)
        ask, mountable = UsdPerHour(each.micros * gpus), volumes.get(where.data_center, ()) if cloud == SECURE else ()
        yield msgspec.structs.replace(offer, ask=ask, floor=floor, network_volumes=mountable)


def _offer(row: GpuRow, where: names.Pool, gpus: int, seen_at: datetime) -> Offer:
    model = names.model(row.name or row.id)
    return Offer(
        market=MARKET,
        offer_id=where.offer_id(gpus),
        host_id=where.host_id,
        owner_id="",
        gpu=model,
        gpus=gpus,
        vram_mb=int((_usable(row.memory, _HUGE_GB) or 0) * _MB_PER_GB),
        dlperf=card_benchmarks.dlperf(model) * gpus,
        reliability=figures.reliability(where),
        is_verified=where.cloud == SECURE,
        region=names.region(where.data_center),
        inet_down_mbps=figures.INET_MBPS,
        inet_up_mbps=figures.INET_MBPS,
        # The free disk of a host is not reported: the market itself refuses an order that is too large.
        disk_gb=_HUGE_GB,
        ask=None,
        floor=None,
        storage_micros_per_gb_month=figures.STORAGE_MICROS_PER_GB_MONTH,
        traffic_down_micros_per_gb=0,
        traffic_up_micros_per_gb=0,
        ends_at=None,
        seen_at=seen_at,
        # The Secure cloud is in data centres, the Community cloud at anybody's.
        is_datacenter=where.cloud == SECURE,
    )


def page(raw: bytes) -> Page:
    """Return a page of the listing.

    Raises:
        Malformed: the body is no page, or the id of a pod cannot be read.
    """
    try:
        return _named(_PAGE.decode(raw))
    except (msgspec.DecodeError, RecursionError):
        document = tolerant_rows.document(raw, "The listing")
    rows, cursor = document.get("pods"), document.get("nextCursor")
    # An unreadable mark would end the listing too early.
    if not isinstance(rows, list) or not isinstance(cursor, str | None):
        raise market_errors.Malformed(
            "The listing is not what runpod documents; it holds no pods or no readable cursor."
        )
    return _named(Page([tolerant_rows.row(row, PodRow, "The listing") for row in rows], cursor))


def _named(listed: Page) -> Page:
    if not all(row.id for row in listed.pods):
        raise market_errors.Malformed("runpod showed a pod without an id; the answer is refused.")
    return listed


def pod(raw: bytes) -> PodRow:
    """Return the one pod of an answer.

    Raises:
        Malformed: the body is no pod, or its id cannot be read.
    """
    try:
        row = _POD.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        row = tolerant_rows.row(tolerant_rows.document(raw, "The pod"), PodRow, "The answer")
    return _named(Page([row])).pods[0]


def is_priced_by_catalogue(row: PodRow) -> bool:
    """Return whether a pod shows no cost of its GPUs, and a cloud whose catalogue may have their price."""
    return row.cost == 0 and row.gpu is not None and row.cloud in _CLOUDS


def pool_of(row: PodRow) -> names.Pool:
    """Return the pool of a pod; a cloud that cannot be read is taken for the secure one."""
    data_center, cloud = text.clean(row.dataCenterId or "", 32), row.cloud if row.cloud in _CLOUDS else SECURE
    return names.Pool(cloud, text.clean(row.gpu.id if row.gpu else "CPU", 64), data_center)


def instance(row: PodRow, price_of: Prices) -> Instance:
    """Return a pod as an instance of ours; `unread` names missing and absurd fields."""
    where, runtime, status = pool_of(row), row.runtime, row.status or ""
    gpus = _usable(row.gpu.count if row.gpu else 0, _MOST_GPUS)
    volume = _usable(row.mounts.persistent.size if row.mounts and row.mounts.persistent else 0.0, _HUGE_GB)
    disk, cost = _usable(row.disk, _HUGE_GB), _usable(row.cost, _MOST * _MOST_GPUS)
    # A pod has GPUs or none; if neither is reported, the GPUs are unreadable.
    is_placed = (row.gpu is not None or row.cpu is not None) and row.cloud in _CLOUDS
    is_cpu = row.gpu is None and row.cpu is not None
    rate = _gpu_rate(cost, int(gpus or 0), price_of(where) if is_placed else None, is_cpu=is_cpu)
    read = {"gpu_rate": None if rate is None else cost, "disk_gb": disk}
    read["disk_rate"] = None if disk is None or row.mounts is None else volume
    read |= {"gpus": gpus if is_placed else None, "host_id": 1.0 if is_placed else None}
    # The market answers with an empty block before there is anything to report.
    has_runtime = runtime is not None and runtime.uptime is not None
    model = names.model(where.gpu_type)
    return Instance(
        market=MARKET,
        instance_id=text.clean(row.id, 64),
        label=text.clean(row.name or "", labels.MAX_LABEL),
        host_id=where.host_id,
        owner_id="",
        tenure=Tenure.ON_DEMAND,
        state=states.state(status, has_runtime=has_runtime),
        gpu=model,
        gpus=int(gpus or 0),
        gpu_rate=rate or money.FREE,
        disk_rate=disk_rate(disk or 0.0, volume or 0.0, is_stopped=not states.is_wanted_running(status)),
        disk_gb=disk or 0.0,
        created_at=tolerant_rows.moment(row.createdAt),
        ends_at=None,
        dlperf=card_benchmarks.dlperf(model) * (gpus or 0),
        reliability=figures.reliability(where),
        inet_down_mbps=figures.INET_MBPS,
        is_wanted_running=states.is_wanted_running(status),
        address=reach.ssh(row.ssh.direct, row.ssh.proxy) if row.ssh else "",
        ports=reach.ports(runtime.ports or ()) if runtime else "",
        has_trouble=status == states.BROKEN,
        gpu_util=_utilisation(runtime.gpus or ()) if runtime else None,
        bills_while_loading=True,
        may_bill_gpu=_may_bill_gpu(cost, status),
        network_volume=_network_volume(row.mounts),
        unread=frozenset(name for name, figure in read.items() if figure is None),
    )


def _network_volume(mounts: _Mounts | None) -> str | None:
    """Return the network volume that a pod mounts; None if no mount is shown, as perhaps before its start."""
    if mounts is not None and mounts.network:
        return None if mounts.network[0].volumeId is None else text.clean(mounts.network[0].volumeId, 64)
    return "" if mounts is not None and mounts.persistent is not None else None


def made_at(row: PodRow) -> datetime | None:
    """Return when a pod was made, or None if it is missing."""
    return tolerant_rows.moment(row.createdAt)


def disk_rate(disk_gb: float, volume_gb: float, *, is_stopped: bool) -> UsdPerHour:
    """Return the hourly cost of a pod's disks: a stopped pod pays for its volume alone, at twice the rate."""
    if is_stopped:
        micros = volume_gb * figures.STOPPED_VOLUME_MICROS_PER_GB_MONTH
    else:
        micros = disk_gb * figures.CONTAINER_MICROS_PER_GB_MONTH + volume_gb * figures.VOLUME_MICROS_PER_GB_MONTH
    return UsdPerHour(round(micros / figures.HOURS_A_MONTH))


def _may_bill_gpu(cost: float | None, status: str) -> bool:
    """Return whether the GPUs may be charged: the cost is the market's own word for it, whatever its host reports.

    Where the cost cannot be read, the status decides: only a pod that exited has given its GPUs back.
    """
    return cost > 0 if cost is not None else not states.is_stopped(status)


def _gpu_rate(dollars: float | None, gpus: int, price: UsdPerHour | None, *, is_cpu: bool) -> UsdPerHour | None:
    """Return the cost of a pod's GPUs, by the catalogue's price of one if it shows none; None if neither is known."""
    if dollars is None:
        return None
    cost = money.per_hour(dollars)
    if cost.micros or is_cpu:
        return cost
    return None if price is None or not gpus else UsdPerHour(price.micros * gpus)


def _readable(read: Callable[[Any], GpuRow], rows: Iterable[Any]) -> Iterator[GpuRow]:
    for raw in rows:
        try:
            row = read(raw)
        except (msgspec.DecodeError, RecursionError, ValueError, OverflowError):
            continue
        if row.id and "/" not in row.id:
            yield row


def _utilisation(uses: Iterable[_Use]) -> float | None:
    known = [use.util for use in uses if use.util is not None and 0 <= use.util <= 100]  # noqa: PLR2004 - per cent
    return sum(known) / len(known) if known else None


def _usable(figure: float | None, most: float) -> float | None:
    """Return a figure, or None for a missing or absurd one; a comparison with NaN is false."""
    return figure if figure is not None and 0 <= figure <= most else None
