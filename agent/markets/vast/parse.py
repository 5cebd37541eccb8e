"""The market's JSON -> our nouns; structs name only the fields used, the decoder skips the rest.

Invariants:
1. Numbers may come as numbers, as strings or as null. A figure that is negative, absurd or not finite is unreadable.
2. An unreadable row of offers is dropped and counted: a search is a sample anyway. A row of instances stays even if a
   figure is unreadable; `unread` names the figure. A row without a readable id refuses the whole listing, since a part
   of a listing would look like lost instances.
3. A floor is rounded up to the micro-dollar, never down.
"""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec

from agent.domain import money
from agent.domain.market import gpu
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.markets import labels, market_errors, text, tolerant_rows
from agent.markets.vast import listed_price, reach, refusals, states

MARKET = "vast"
HOURS_A_MONTH = 720
"""The market's month, in storage prices."""

_MICROS = money.MICROS
_LEAST, _MOST = listed_price.LEAST, listed_price.MOST
_HUGE = 1e12
_MEGABYTES_PER_GB = 1024.0
"""Billed traffic is read as megabytes: the unit is not documented, and the prices are per 1/1024 of a terabyte."""
_MOST_GPUS = 4096
_LATEST_SECONDS = datetime(2060, 1, 1, tzinfo=UTC).timestamp()
"""Hosts without an end date say 2099."""
_ROUNDING = 1e-6
"""Micro-dollars that rounding up ignores: binary fractions of decimal prices are off by less."""


class OfferRow(msgspec.Struct, gc=False):
    """One row of a search."""

    id: int
    machine_id: int
    host_id: int | None = None
    num_gpus: int | None = None
    gpu_name: str | None = None
    gpu_ram: float | None = None
    dlperf: float | None = None
    reliability2: float | None = None
    reliability: float | None = None
    verification: str | None = None
    verified: bool | None = None
    geolocation: str | None = None
    inet_down: float | None = None
    inet_up: float | None = None
    disk_space: float | None = None
    dph_base: float | None = None
    min_bid: float | None = None
    storage_cost: float | None = None
    inet_down_cost: float | None = None
    inet_up_cost: float | None = None
    end_date: float | None = None
    rentable: bool | None = None
    resource_type: str | None = None
    hosting_type: int | None = None


class _OfferPage(msgspec.Struct):
    offers: list[OfferRow]
    success: bool | None = None


class InstanceRow(msgspec.Struct):
    """One row of a listing."""

    id: int
    machine_id: int | None = None
    is_bid: bool | None = None
    dph_base: float | None = None
    dph_total: float | None = None
    credit_discount: float | None = None
    search: listed_price.Running | None = None
    num_gpus: int | None = None
    actual_status: str | msgspec.UnsetType | None = msgspec.UNSET
    cur_state: str | msgspec.UnsetType | None = msgspec.UNSET
    intended_status: str | None = None
    status_msg: str | None = None
    label: str | None = None
    host_id: int | None = None
    gpu_name: str | None = None
    storage_total_cost: float | None = None
    storage_cost: float | None = None
    disk_space: float | None = None
    start_date: float | None = None
    end_date: float | None = None
    min_bid: float | None = None
    dlperf: float | None = None
    reliability2: float | None = None
    inet_down: float | None = None
    inet_down_billed: float | None = None
    inet_up_billed: float | None = None
    inet_down_cost: float | None = None
    inet_up_cost: float | None = None
    ssh_host: str | None = None
    ssh_port: int | None = None
    public_ipaddr: str | None = None
    ports: Any = None
    gpu_util: float | None = None


class _Frame(msgspec.Struct):
    """A page without its rows."""

    success: bool | None = None
    total_instances: int | None = None
    instances_found: int | None = None
    next_token: str | None = None


class InstancePage(_Frame, kw_only=True):
    """One page of a listing."""

    instances: list[InstanceRow]


class Harvest(msgspec.Struct, frozen=True):
    """The result of a search: offers, the number of rows that the market counted, and the unusable ones."""

    offers: list[Offer]
    rows: int
    dropped: int


# `strict=False` takes "0.5" for 0.5 and "null" for null; it costs nothing for a row in the documented shape.
_OFFERS = msgspec.json.Decoder(_OfferPage, strict=False)
_PAGE = msgspec.json.Decoder(InstancePage, strict=False)


def offers(raw: bytes, seen_at: datetime) -> list[Offer]:
    """Return the offers of an on-demand search.

    Raises:
        Malformed: the body is no list of offers.
    """
    return harvest(raw, seen_at).offers


def harvest(
    raw: bytes, seen_at: datetime, *, is_bid_search: bool = False, keep: Callable[[int], bool] | None = None
) -> Harvest:
    """Return the result of a search. In a bid search the price shown is the floor, so the ask stays unknown.

    `keep` decides by a row's id; it is for filters that name fields not decoded here.

    Raises:
        Malformed: the body is no list of offers.
    """
    rows, unreadable = _rows(raw)
    dropped = unreadable
    found: dict[int, Offer] = {}
    for row in rows:
        # Without a model in the question, disks for rent are among the rows: no GPUs, no floor.
        is_offer = row.num_gpus and row.rentable is not False and row.resource_type != "disk"
        if not is_offer or row.id in found or (keep is not None and not keep(row.id)):
            continue
        offer = _offer(row, seen_at, is_bid_search=is_bid_search)
        if offer is None:
            dropped += 1
        else:
            found[row.id] = offer
    return Harvest(list(found.values()), len(rows) + unreadable, dropped)


def loose_rows(raw: bytes) -> dict[int, dict[str, Any]]:
    """Return every row of a search with all its fields, by id, for filters that name fields not decoded above."""
    try:
        offers = msgspec.json.decode(raw).get("offers")
    except (msgspec.DecodeError, AttributeError):
        return {}
    return {row["id"]: row for row in offers or () if isinstance(row, dict) and isinstance(row.get("id"), int)}


def page(raw: bytes) -> InstancePage:
    """Return one page of the listing.

    Raises:
        Malformed: the body is no page, or the id of one of its rows cannot be read.
    """
    try:
        decoded = _PAGE.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        decoded = _loose_page(raw)
    refusals.check_success(decoded.success, "the listing")
    return decoded


def one(raw: bytes, instance_id: str) -> InstanceRow:
    """Return the row of a single look-up.

    Raises:
        NotFound: the market answered null for this id.
        Malformed: the body is something else, or the instance of another id.
    """
    document = tolerant_rows.document(raw, "The instance")
    refusals.check_success(document.get("success"), f"the look-up of {text.clean(instance_id)}")
    if "instances" in document and document["instances"] is None:
        raise market_errors.NotFound(f"vast has no instance {text.clean(instance_id)}.")
    row = tolerant_rows.row(document.get("instances"), InstanceRow, "The answer")
    if str(row.id) != instance_id:
        raise market_errors.Malformed(f"vast answered something else than instance {text.clean(instance_id)}.")
    return row


def _loose_page(raw: bytes) -> InstancePage:
    document = tolerant_rows.document(raw, "The listing")
    rows, frame = document.get("instances"), tolerant_rows.row(document, _Frame, "The listing")
    # An unreadable token would end the listing too early.
    if not isinstance(rows, list) or not isinstance(document.get("next_token"), str | None):
        raise market_errors.Malformed(
            "The listing is not what vast documents; it holds no instances or no readable token."
        )
    rows_read = [tolerant_rows.row(row, InstanceRow, "The listing") for row in rows]
    return InstancePage(instances=rows_read, **msgspec.structs.asdict(frame))


def instance(row: InstanceRow) -> Instance:
    """Return a row as an instance of ours; `unread` names missing and absurd fields."""
    base, disk_gb = _usable(row.dph_base, _MOST), _usable(row.disk_space, _HUGE)
    gpu_rate = listed_price.before_discount(base, row.dph_total, row.storage_total_cost, row.search)
    gpu_rate = listed_price.gpu_rate(gpu_rate, row.credit_discount, row.search) if row.is_bid is False else gpu_rate
    disk_rate, gpus = _disk_rate(row, disk_gb), _usable(row.num_gpus, _MOST_GPUS)
    read = {"gpu_rate": gpu_rate, "disk_gb": disk_gb, "disk_rate": disk_rate}
    read |= {"gpus": gpus, "tenure": row.is_bid, "host_id": row.machine_id}
    # Traffic is counted once its price is readable.
    prices = _usable(row.inet_down_cost or 0.0, _MOST), _usable(row.inet_up_cost or 0.0, _MOST)
    is_metered = None not in prices
    message = text.clean(row.status_msg or "")
    gpu_name = text.interned(row.gpu_name or "")
    return Instance(
        market=MARKET,
        instance_id=str(row.id),
        label=text.clean(row.label or "", labels.MAX_LABEL),
        host_id=_id(row.machine_id),
        owner_id=_id(row.host_id),
        tenure=Tenure.INTERRUPTIBLE if row.is_bid else Tenure.ON_DEMAND,
        state=_state(row, message),
        gpu=gpu.model(gpu_name),
        gpus=int(gpus or 0),
        gpu_rate=money.per_hour(gpu_rate or 0.0),
        disk_rate=money.per_hour(disk_rate or 0.0),
        disk_gb=disk_gb or 0.0,
        created_at=_moment(row.start_date),
        ends_at=_moment(row.end_date),
        floor=None if (floor := _usable(row.min_bid, _MOST)) is None else money.per_hour_up(floor),
        dlperf=_usable(row.dlperf, _HUGE) or 0.0,
        reliability=min(1.0, _usable(row.reliability2, _HUGE) or 0.0),
        inet_down_mbps=_usable(row.inet_down, _HUGE) or 0.0,
        traffic_down_gb=(_usable(row.inet_down_billed, _HUGE) or 0.0) / _MEGABYTES_PER_GB * is_metered,
        traffic_up_gb=(_usable(row.inet_up_billed, _HUGE) or 0.0) / _MEGABYTES_PER_GB * is_metered,
        traffic_down_micros_per_gb=round((prices[0] or 0.0) * _MICROS),
        traffic_up_micros_per_gb=round((prices[1] or 0.0) * _MICROS),
        is_wanted_running=row.intended_status == "running",
        message=message,
        address=reach.ssh(row.ssh_host, row.ssh_port, row.public_ipaddr),
        ports=reach.ports(row.ports, row.public_ipaddr),
        has_trouble=states.has_trouble(message),
        is_image_refused=states.is_image_refused(message),
        may_bill_gpu=states.may_bill_gpu(*words(row)[:2]),
        gpu_util=_usable(row.gpu_util, _HUGE),
        unread=frozenset(name for name, figure in read.items() if figure is None),
    )


def words(row: InstanceRow) -> tuple[str, str, str]:
    """Return the words for a container, its contract and what the market intends; empty for one that is not told."""
    actual, current, intended = (field or "" for field in (row.actual_status, row.cur_state, row.intended_status))
    return text.interned(actual), text.interned(current), text.interned(intended)


def _state(row: InstanceRow, message: str) -> InstanceState:
    # Null means that it has not begun; a missing field says nothing.
    has_states = msgspec.UNSET not in (row.actual_status, row.cur_state)
    return states.state(*words(row), message) if has_states else InstanceState.UNKNOWN


def _rows(raw: bytes) -> tuple[Sequence[OfferRow], int]:
    try:
        found = _OFFERS.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return _tolerant_rows(raw)
    refusals.check_success(found.success, "the search")
    return found.offers, 0


def _tolerant_rows(raw: bytes) -> tuple[Sequence[OfferRow], int]:
    """Decode row by row after a bad row; the library's decoder also reads NaN, which is not JSON but is sent."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise tolerant_rows.not_json(raw, "The search's answer", error) from None
    offers = body.get("offers") if isinstance(body, dict) else None
    if not isinstance(offers, list):
        raise market_errors.Malformed("The search's answer has no list of offers; try again later.")
    refusals.check_success(body.get("success"), "the search")
    rows = list(_convertible(offers))
    return rows, len(offers) - len(rows)


def _convertible(rows: Iterable[object]) -> Iterable[OfferRow]:
    for item in rows:
        try:
            yield msgspec.convert(item, OfferRow, strict=False)
        except (msgspec.ValidationError, OverflowError, ValueError, RecursionError):
            continue


def _offer(row: OfferRow, seen_at: datetime, *, is_bid_search: bool) -> Offer | None:
    """Return the row as an offer, or None if a figure in it is absurd; flat, because it runs 13,000 times."""
    ask, floor = row.dph_base, row.min_bid
    storage, down, up = row.storage_cost or 0.0, row.inet_down_cost or 0.0, row.inet_up_cost or 0.0
    reliability = row.reliability2 if row.reliability2 is not None else row.reliability or 0.0
    gpus, vram, dlperf = row.num_gpus or 0, row.gpu_ram or 0.0, row.dlperf or 0.0
    speed_down, speed_up, disk = row.inet_down or 0.0, row.inet_up or 0.0, row.disk_space or 0.0
    # A comparison with NaN is false, so each chain refuses NaN too.
    if not (
        ask is not None
        and (_LEAST <= ask <= _MOST or (is_bid_search and 0.0 <= ask <= _MOST))
        and (floor is None or _LEAST <= floor <= _MOST or (floor == 0.0 and not is_bid_search))
        and 0.0 <= storage <= _MOST
        and 0.0 <= down <= _MOST
        and 0.0 <= up <= _MOST
        and 0.0 <= reliability <= 1.0
        and 0 < gpus <= _MOST_GPUS
        and 0.0 <= vram <= _HUGE
        and 0.0 <= dlperf <= _HUGE
        and 0.0 <= speed_down <= _HUGE
        and 0.0 <= speed_up <= _HUGE
        and 0.0 <= disk <= _HUGE
    ):
        return None
    return Offer(
        MARKET,
        str(row.id),
        str(row.machine_id),
        _id(row.host_id),
        _model(row.gpu_name or ""),
        gpus,
        int(vram),
        dlperf,
        reliability,
        row.verification == "verified" or row.verified is True,
        text.interned(row.geolocation or ""),
        speed_down,
        speed_up,
        disk,
        None if is_bid_search else UsdPerHour(int(ask * _MICROS + 0.5)),
        None if not floor else UsdPerHour(math.ceil(floor * _MICROS - _ROUNDING)),
        int(storage * _MICROS + 0.5),
        int(down * _MICROS + 0.5),
        int(up * _MICROS + 0.5),
        _moment(row.end_date),
        seen_at,
        is_datacenter=None if row.hosting_type is None else row.hosting_type == 1,
    )


@lru_cache(maxsize=4096)
def _model(name: str) -> gpu.GpuModel:
    return gpu.model(text.clean(name))


@lru_cache(maxsize=65_536)
def _moment(seconds: float | None) -> datetime | None:
    """Return the instant; None also for a date so far off that it means none."""
    if seconds is None or not 0 < seconds < _LATEST_SECONDS:
        return None
    return datetime.fromtimestamp(seconds, UTC)


def _disk_rate(row: InstanceRow, disk_gb: float | None) -> float | None:
    """Return the disk's dollars per hour; from its price and size if the sum is missing."""
    total, each = _usable(row.storage_total_cost, _MOST), _usable(row.storage_cost, _MOST)
    if total is not None or each is None or disk_gb is None:
        return listed_price.disk_rate(row.dph_base, row.dph_total, total, row.search)
    return each * disk_gb / HOURS_A_MONTH


def _usable(figure: float | None, most: float) -> float | None:
    """Return a figure, or None for a missing or absurd one; a comparison with NaN is false."""
    return figure if figure is not None and 0.0 <= figure <= most else None


def _id(number: int | None) -> str:
    return "" if number is None else str(number)
