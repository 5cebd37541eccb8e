"""Interruptible pods, which only GraphQL ever sold: whether they are still sold, their floors, and orders at a bid.

Invariants:
1. Nothing here is assumed to exist. If a field, a mutation or the product itself is gone, `not_sold` reports that in
   the market's own words, and the next request for it follows hours later.
2. The market's floor is for a whole pod, a bid is for one GPU of it; here both are for the whole pod.
3. A floor at or above the ask does not count: such a bid would buy nothing but the risk.
4. A pod pays its bid, not the floor.
"""

from typing import Any

import msgspec

from agent import clock as clocks
from agent.domain import money
from agent.domain.market.instance import Instance
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.markets import market_errors
from agent.markets.port import Terms
from agent.markets.runpod import client, graph, names, orders, parse

ASK_AGAIN_SECONDS = 6 * 3600.0
"""The wait before a product that is not sold is requested again; long, because the market announced its end."""
FLOORS_KEPT_SECONDS = 60.0
"""Recorded floors were constant for days; the searches of one plan share one request."""
MOST_REFUSALS = 3
"""Interruptible pods count as not sold any more after this many bids in a row without capacity. Assumed: since spring
2026 the market answers every bid like that, instead of saying that it sells none."""
_MOST = 10_000.0
_STARTED = "RUNNING"

_FLOORS = """
query floors($input: GpuLowestPriceInput!) {
  gpuTypes { id lowestPrice(input: $input) { minimumBidPrice uninterruptablePrice } }
}"""
_RENT = "mutation rent($input: PodRentInterruptableInput!) { podRentInterruptable(input: $input) { id } }"
_RESUME = "mutation resume($input: PodBidResumeInput!) { podBidResume(input: $input) { id desiredStatus } }"


def shown(row: Instance) -> UsdPerHour | None:
    """Return the rate that a pod shows, or None if it cannot be read."""
    return None if "gpu_rate" in row.unread else row.gpu_rate


def at_bid(row: Instance, cost: float | None, bid: UsdPerHour | None) -> Instance:
    """Return a pod at a bid with its rate: the shown cost, else the known bid. It is unread where there is neither."""
    if cost and shown(row) is not None:
        return msgspec.structs.replace(row, tenure=Tenure.INTERRUPTIBLE)
    if bid is None:
        return msgspec.structs.replace(row, tenure=Tenure.INTERRUPTIBLE, unread=row.unread | {"gpu_rate"})
    return msgspec.structs.replace(row, tenure=Tenure.INTERRUPTIBLE, gpu_rate=bid, unread=row.unread - {"gpu_rate"})


def refuse_unknown(row: Instance) -> None:
    """Refuse to start a pod whose bid nobody knows: at a bid of nothing it would be outbid at once, or cost anything.

    Raises:
        Rejected: it is unknown; nothing was sent.
    """
    if shown(row) is None:
        sentence = f"runpod does not show the bid of {row.instance_id}; nothing was sent."
        raise market_errors.Rejected("invalid_price", sentence)


class _Price(msgspec.Struct):
    minimumBidPrice: float | None = None  # noqa: N815 - the vendor's spelling
    uninterruptablePrice: float | None = None  # noqa: N815 - as above


class _Type(msgspec.Struct):
    id: str
    lowestPrice: _Price | None = None  # noqa: N815 - as above


class Bids:
    """The interruptible pods that the market sells to the account."""

    def __init__(self, endpoints: client.RunPodClient, clock: clocks.Clock) -> None:
        self._client = endpoints
        self._clock = clock
        self._because = ""
        self._again_at = 0.0
        self._floors: dict[tuple[str, int], tuple[float, dict[str, UsdPerHour]]] = {}
        self._refusals = 0

    @property
    def not_sold_because(self) -> str:
        """The reason why no interruptible pod is sold now; empty while some are, or before the first request."""
        return self._because

    async def floors(self, cloud: str, gpus: int) -> dict[str, UsdPerHour]:
        """Return the floor of a pod of this many GPUs by GPU type, without floors at or above the ask.

        Raises: Throttled, Unavailable, Malformed, Unauthorized.
        """
        now = self._clock.monotonic()
        if self._because and now < self._again_at:
            return {}
        known = self._floors.get((cloud, gpus))
        if known is not None and now - known[0] < FLOORS_KEPT_SECONDS:
            return known[1]
        try:
            asked = {"gpuCount": gpus, "secureCloud": cloud == parse.SECURE}
            answered = await self._client.ask_graph(_FLOORS, {"input": asked})
        except graph.Retired as retired:
            self._end(f"the market removed the question for floors ({retired})")
            return {}
        floors = _usable(answered.data)
        if answered.errors and not floors:
            # Without an error this would show that no interruptible pod is sold.
            raise answered.lacking("every floor")
        self._floors[cloud, gpus] = now, floors
        self._judge(floors, cloud, gpus)
        return floors

    async def rent(self, where: names.Pool, gpus: int, terms: Terms, label: str) -> str:
        """Rent at a bid and return the pod's id. Raises: as the port's `rent`."""
        body = _order(where, gpus, terms, label)
        data = await self._write(_RENT, body)
        pod_id = (data.get("podRentInterruptable") or {}).get("id")
        if not isinstance(pod_id, str) or not pod_id:
            raise market_errors.Ambiguous("runpod took the bid and named no pod; its listing shows what was done.")
        self._refusals = 0
        return pod_id

    async def resume(self, pod_id: str, bid: UsdPerHour, gpus: int) -> None:
        """Start a stopped pod on its own host at a bid. Raises: as the port's `resume`."""
        data = await self._write(_RESUME, {"podId": pod_id, "bidPerGpu": each(bid, gpus), "gpuCount": gpus})
        pod = data.get("podBidResume")
        # A pod that is shown as it was is no refusal: the start may come later, and cost then.
        if not isinstance(pod, dict) or pod.get("desiredStatus") != _STARTED:
            raise market_errors.Ambiguous(
                "runpod answered a start with no running pod; its listing shows what was done."
            )

    async def _write(self, mutation: str, body: dict[str, Any]) -> dict[str, Any]:
        try:
            return await self._client.mutate_graph(mutation, {"input": body})
        except graph.Retired as retired:
            self._end(f"the market removed the order ({retired})")
            raise market_errors.Rejected("not_sold", f"runpod takes no bids any more ({retired}).") from None
        except market_errors.Rejected as error:
            self._count(error)
            raise

    def _count(self, error: market_errors.Rejected) -> None:
        self._refusals = self._refusals + 1 if error.reason == "no_capacity" else self._refusals
        if error.reason == "not_sold":
            self._end(f"the market says so: {error}")
        elif self._refusals >= MOST_REFUSALS:
            self._end(f"{self._refusals} bids in a row found no capacity, which is how the market says it sells none")

    def _judge(self, floors: dict[str, UsdPerHour], cloud: str, gpus: int) -> None:
        if floors:
            self._because = ""
        elif (cloud, gpus) == (parse.SECURE, 1):
            self._end("no floor of any model is under its on-demand price")

    def _end(self, why: str) -> None:
        self._because = why
        self._again_at = self._clock.monotonic() + ASK_AGAIN_SECONDS
        self._floors.clear()
        self._refusals = 0


def each(bid: UsdPerHour, gpus: int) -> float:
    """Return the bid for one GPU, rounded up to the micro-dollar so that the whole is never below the floor."""
    return -(-bid.micros // max(gpus, 1)) / money.MICROS


def _usable(data: dict[str, Any]) -> dict[str, UsdPerHour]:
    try:
        types = msgspec.convert(data.get("gpuTypes"), list[_Type | None], strict=False)
    except msgspec.ValidationError:
        raise market_errors.Malformed("The floors are not what runpod documented.") from None
    found = {}
    for row in types:
        if row is None:
            continue
        price = row.lowestPrice or _Price()
        floor, ask = price.minimumBidPrice, price.uninterruptablePrice
        if floor is not None and 0 < floor <= _MOST and (ask is None or floor < ask):
            found[row.id] = money.per_hour_up(floor)
    return found


def _volume(terms: Terms, body: dict[str, Any]) -> dict[str, Any]:
    if terms.network_volume:
        return {"networkVolumeId": terms.network_volume}
    return {"volumeInGb": body["mounts"]["persistent"]["size"]}


def _order(where: names.Pool, gpus: int, terms: Terms, label: str) -> dict[str, Any]:
    """Return the input of an order at a bid.

    Raises:
        Rejected: the market cannot carry out these terms as meant.
    """
    if terms.bid is None:
        raise market_errors.Rejected("invalid_price", "an interruptible order needs a bid")
    body = orders.common(where, gpus, terms, label)
    order: dict[str, Any] = {
        "bidPerGpu": each(terms.bid, gpus),
        "cloudType": where.cloud,
        "gpuTypeId": where.gpu_type,
        "gpuCount": gpus,
        "name": label,
        "imageName": terms.image,
        "dockerArgs": body.get("args", ""),
        "env": [{"key": key, "value": value} for key, value in body["env"].items()],
        "ports": ",".join(body["ports"]),
        "containerDiskInGb": body["disk"],
        **_volume(terms, body),
        "volumeMountPath": orders.MOUNT,
        "startSsh": body["startSsh"],
        "startJupyter": body["startJupyter"],
    }
    if where.data_center:
        order["dataCenterId"] = where.data_center
    if terms.template:
        order["templateId"] = terms.template
    return order
