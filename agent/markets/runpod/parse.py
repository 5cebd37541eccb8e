"""The JSON of REST v2 -> our nouns; only the fields used are named, the rest is skipped by the decoder.

Invariants:
1. A bad row of the catalogue is dropped and counted; a bad pod refuses the listing, since half a listing would look
   like lost instances.
2. Prices of the catalogue are for one GPU, the cost of a pod is for all of its GPUs; both leave here for all of them.
3. A pod that is stopped shows no cost, so the price it will have again is looked up by its model and cloud; one that
   runs and shows none counts at that price too.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime

import msgspec

from agent.domain import money
from agent.domain.instance import Instance
from agent.domain.money import UsdPerHour
from agent.domain.offer import Offer
from agent.domain.tenure import Tenure
from agent.markets import errors, labels, text
from agent.markets.runpod import figures, names, reach, states

MARKET = "runpod"
SECURE, COMMUNITY = "SECURE", "COMMUNITY"
_MOST = 10_000.0
"""Dollars per hour that nobody asks for one GPU."""
_MOST_GPUS = 64
_HUGE_GB = 1_000_000
_MB_PER_GB = 1024
_NONE = "NONE"


class _ByCloud(msgspec.Struct):
    secure: float | None = None
    community: float | None = None


class DataCenter(msgspec.Struct):
    """A data centre that has a GPU type, and how much of it."""

    id: str
    availability: str | None = None


class GpuRow(msgspec.Struct):
    """One GPU type of the catalogue, seen through one cloud."""

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


class _Mounts(msgspec.Struct):
    persistent: _Persistent | None = None


class _Use(msgspec.Struct):
    util: float | None = None


class _Runtime(msgspec.Struct):
    uptime: float | None = None
    gpus: list[_Use] | None = None
    ports: list[reach.Port] | None = None


class _Ssh(msgspec.Struct):
    direct: reach.Ends | None = None
    proxy: reach.Ends | None = None


class PodRow(msgspec.Struct):
    """One pod of a listing."""

    id: str
    status: str
    cost: float
    name: str | None = None
    gpu: _Gpu | None = None
    cloud: str | None = None
    disk: float | None = None
    mounts: _Mounts | None = None
    dataCenterId: str | None = None  # noqa: N815 - the vendor's spelling
    ssh: _Ssh | None = None
    runtime: _Runtime | None = None
    createdAt: str | None = None  # noqa: N815 - as above


class _Pods(msgspec.Struct):
    pods: list[PodRow]


Prices = Callable[[names.Pool], UsdPerHour | None]
"""Gives what one GPU of a pool costs, by the last catalogue."""

_CATALOGUE = msgspec.json.Decoder(_Catalogue)
_GPU_ROW = msgspec.json.Decoder(GpuRow, strict=False)
_PODS = msgspec.json.Decoder(_Pods, strict=False)
_POD = msgspec.json.Decoder(PodRow, strict=False)


def catalogue(raw: bytes) -> tuple[list[GpuRow], int]:
    """Return the GPU types of a catalogue, and how many rows could not be read.

    Raises:
        Malformed: the body is no catalogue.
    """
    try:
        rows = _CATALOGUE.decode(raw).gpus
    except (msgspec.DecodeError, RecursionError) as error:
        raise errors.Malformed(f"The catalogue is not what runpod documents: {text.clean(str(error))}") from None
    found = list(_readable(rows))
    # The market keeps one row that stands for no model.
    return [row for row in found if row.id != "unknown"], len(rows) - len(found)


def price(row: GpuRow, cloud: str) -> UsdPerHour | None:
    """Return what one GPU costs in a cloud, or None where it is not offered there: a price of 0 stands for none."""
    is_offered, told = (row.secure, row.price.secure) if cloud == SECURE else (row.community, row.price.community)
    if not is_offered or told is None or not 0 < told <= _MOST:
        return None
    return money.per_hour(told)


def offers(
    row: GpuRow, cloud: str, gpus: int, disk_gb: float, floor: UsdPerHour | None, seen_at: datetime
) -> Iterator[Offer]:
    """Yield one offer for each data centre that has so many GPUs of a type, or one for the cloud where none is named.

    Ask and `floor` are for the whole pod; what the market does not tell stands in figures.py.
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
        made = _offer(row, where, gpus, disk_gb, seen_at)
        yield msgspec.structs.replace(made, ask=UsdPerHour(each.micros * gpus), floor=floor)


def _offer(row: GpuRow, where: names.Pool, gpus: int, disk_gb: float, seen_at: datetime) -> Offer:
    model = names.model(row.name or row.id)
    return Offer(
        market=MARKET,
        offer_id=where.offer_id(gpus),
        host_id=where.host_id,
        owner_id="",
        gpu=model,
        gpus=gpus,
        vram_mb=int((row.memory or 0) * _MB_PER_GB),
        dlperf=figures.dlperf(model) * gpus,
        reliability=figures.reliability(where),
        is_verified=where.cloud == SECURE,
        region=names.region(where.data_center),
        inet_down_mbps=figures.INET_MBPS,
        inet_up_mbps=figures.INET_MBPS,
        # What a host has left is not told; an order for more than that is refused.
        disk_gb=disk_gb,
        ask=None,
        floor=None,
        storage_micros_per_gb_month=figures.STORAGE_MICROS_PER_GB_MONTH,
        traffic_down_micros_per_gb=0,
        traffic_up_micros_per_gb=0,
        ends_at=None,
        seen_at=seen_at,
    )


def pods(raw: bytes) -> list[PodRow]:
    """Return the pods of a listing that have not ended.

    Raises:
        Malformed: the body is no listing, a pod lacks what a pod must have, or one is listed twice.
    """
    try:
        rows = _PODS.decode(raw).pods
    except (msgspec.DecodeError, RecursionError) as error:
        raise errors.Malformed(f"The listing is not what runpod documents: {text.clean(str(error))}") from None
    if len({row.id for row in rows}) != len(rows):
        raise errors.Malformed("runpod listed a pod twice; the listing is refused.")
    return [row for row in rows if row.status != states.GONE]


def pod(raw: bytes) -> PodRow:
    """Return the one pod of an answer.

    Raises:
        Malformed: the body is no pod.
    """
    try:
        return _POD.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise errors.Malformed(f"The pod is not what runpod documents: {text.clean(str(error))}") from None


def pool_of(row: PodRow) -> names.Pool:
    """Return the pool that a pod was rented from."""
    data_center = text.clean(row.dataCenterId or "", 32)
    return names.Pool(row.cloud or SECURE, text.clean(row.gpu.id if row.gpu else "CPU", 64), data_center)


def instance(row: PodRow, price_of: Prices) -> Instance:
    """Return a pod as an instance of ours.

    Raises:
        Malformed: a figure that money depends on is absurd.
    """
    where, runtime = pool_of(row), row.runtime
    gpus = _bounded(row.gpu.count if row.gpu else 0, "gpu count", _MOST_GPUS)
    volume = _bounded(row.mounts.persistent.size if row.mounts and row.mounts.persistent else 0.0, "volume", _HUGE_GB)
    disk = _bounded(row.disk or 0.0, "disk", _HUGE_GB)
    # An empty block is what the market answers before there is anything to report.
    has_runtime = runtime is not None and runtime.uptime is not None
    model = names.model(where.gpu_type)
    return Instance(
        market=MARKET,
        instance_id=text.clean(row.id, 64),
        label=text.clean(row.name or "", labels.MAX_LABEL),
        host_id=where.host_id,
        owner_id="",
        tenure=Tenure.ON_DEMAND,
        state=states.state(row.status, has_runtime=has_runtime),
        gpu=model,
        gpus=int(gpus),
        gpu_rate=_gpu_rate(row, where, int(gpus), price_of),
        disk_rate=disk_rate(disk, volume, is_stopped=not states.is_wanted_running(row.status)),
        disk_gb=disk,
        created_at=_moment(row.createdAt),
        ends_at=None,
        dlperf=figures.dlperf(model) * gpus,
        reliability=figures.reliability(where),
        inet_down_mbps=figures.INET_MBPS,
        is_wanted_running=states.is_wanted_running(row.status),
        address=reach.ssh(row.ssh.direct, row.ssh.proxy) if row.ssh else "",
        ports=reach.ports(runtime.ports or ()) if runtime else "",
        has_trouble=row.status == "ERROR",
        gpu_util=_utilisation(runtime.gpus or ()) if runtime else None,
        bills_while_loading=True,
        # The market's own word for the rate that it bills is the cost of a pod, whatever its host reports.
        may_bill_gpu=row.cost > 0,
    )


def made_at(row: PodRow) -> datetime | None:
    """Return when a pod was made, or None where that is not told."""
    return _moment(row.createdAt)


def disk_rate(disk_gb: float, volume_gb: float, *, is_stopped: bool) -> UsdPerHour:
    """Return what the disks of a pod cost per hour: a stopped pod pays for its volume alone, at twice the rate."""
    if is_stopped:
        micros = volume_gb * figures.STOPPED_VOLUME_MICROS_PER_GB_MONTH
    else:
        micros = disk_gb * figures.CONTAINER_MICROS_PER_GB_MONTH + volume_gb * figures.VOLUME_MICROS_PER_GB_MONTH
    return UsdPerHour(round(micros / figures.HOURS_A_MONTH))


def _gpu_rate(row: PodRow, where: names.Pool, gpus: int, price_of: Prices) -> UsdPerHour:
    cost = money.per_hour(_bounded(row.cost, "cost", _MOST * _MOST_GPUS))
    if cost.micros:
        return cost
    return UsdPerHour((price_of(where) or money.FREE).micros * gpus)


def _readable(rows: Iterable[msgspec.Raw]) -> Iterator[GpuRow]:
    for raw in rows:
        try:
            row = _GPU_ROW.decode(raw)
        except (msgspec.DecodeError, RecursionError):
            continue
        if row.id and "/" not in row.id:
            yield row


def _utilisation(told: Iterable[_Use]) -> float | None:
    known = [use.util for use in told if use.util is not None and 0 <= use.util <= 100]  # noqa: PLR2004 - per cent
    return sum(known) / len(known) if known else None


def _moment(stamp: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(stamp or "")
    except ValueError:
        return None
    return found.astimezone(UTC) if found.tzinfo is not None else None


def _bounded(figure: float, name: str, most: float) -> float:
    if not 0 <= figure <= most:
        raise errors.Malformed(f"A pod's {name} is {figure!r}; the listing is refused.")
    return figure
