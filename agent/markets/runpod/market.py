"""The port over RunPod: on-demand pods through REST v2.

Invariants: those of the port. Beyond them:
1. A listing is one answer with every pod in it, or it is no listing.
2. A pod that ran and reports nothing any more runs on for `SILENCE_SECONDS`; after that its host is silent.
"""

from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from agent import clock as clocks
from agent.domain.instance import Instance, InstanceState
from agent.domain.interruption import MarketEvent
from agent.domain.money import UsdPerHour
from agent.domain.offer import Offer
from agent.markets import errors, hints, pace, transport
from agent.markets.port import Account, Capability, Charge, OfferQuery, Terms
from agent.markets.runpod import bill, client, graph, logs, names, orders, parse, search, states

SILENCE_SECONDS = 180.0
"""The market asks a host for its report with a timeout of about two seconds: a few missing ones say nothing."""
ASK_GRAPH_AGAIN_SECONDS = 6 * 3600.0
"""A question that was taken away is asked again this seldom: the market may have been mending something."""
_MYSELF = "query account { myself { id clientBalance } }"


class _Myself(msgspec.Struct):
    id: str
    clientBalance: float | None = None  # noqa: N815 - the vendor's spelling


class RunPodMarket:
    """One account on runpod."""

    name = parse.MARKET

    def __init__(self, endpoints: client.RunPodClient, clock: clocks.Clock) -> None:
        self._client = endpoints
        self._clock = clock
        self._prices: dict[tuple[str, str], UsdPerHour] = {}
        self._heard_at: dict[str, float] = {}
        self._account_id = ""
        self._no_account_until: float | None = None
        self._dropped_rows = 0

    @property
    def dropped_rows(self) -> int:
        """Rows of the catalogue that could not be used since the start."""
        return self._dropped_rows

    async def offers(self, query: OfferQuery) -> Sequence[Offer]:
        """Return offers that may fit, the cheapest first."""
        clouds = (parse.SECURE,) if query.requirements.verified_only else (parse.SECURE, parse.COMMUNITY)
        found: list[Offer] = []
        for cloud in clouds:
            for row in await self._catalogue(cloud, query.requirements.gpus):
                rows = parse.offers(row, cloud, query.requirements.gpus, query.disk_gb, self._clock.now())
                found += [offer for offer in rows if search.fits(offer, query)]
        found.sort(key=lambda offer: (offer.ask or UsdPerHour(0), offer.offer_id))
        return found[: query.max_rows]

    async def instances(self) -> Sequence[Instance]:
        """Return every pod of the account, or raise."""
        rows = parse.pods((await self._client.pods()).body)
        await self._learn_prices(rows)
        found = tuple(self._instance(row) for row in rows)
        self._heard_at = {row.id: at for row in rows if (at := self._heard_at.get(row.id)) is not None}
        return found

    async def instance(self, instance_id: str) -> Instance:
        """Return one pod."""
        row = parse.pod(await self._client.pod(instance_id))
        if row.id != instance_id:
            raise errors.Malformed(f"runpod answered another pod than {instance_id}.")
        if row.status == states.GONE:
            raise errors.NotFound(f"runpod says that pod {instance_id} was ended.")
        await self._learn_prices([row])
        return self._instance(row)

    async def rent(self, offer: Offer, terms: Terms, label: str) -> str:
        """Rent and return the pod's id."""
        where = names.pool(offer.host_id)
        if where is None:
            raise errors.Rejected("invalid_args", f"{offer.offer_id} is no offer of runpod.")
        raw = await self._client.create(orders.create(where, offer.gpus, terms, label))
        try:
            made = parse.pod(raw)
        except errors.Malformed as error:
            raise errors.Ambiguous(f"runpod accepted the order and named no pod ({error})") from None
        return made.id

    async def rebid(self, instance_id: str, bid: UsdPerHour) -> None:
        """Refuse: an on-demand pod has no bid."""
        sentence = f"runpod changes no bid of a pod ({instance_id} to {bid}); nothing was sent."
        raise errors.Rejected("no_rebid", sentence)

    async def resume(self, instance_id: str) -> bool:
        """Start again on the same host; the market never queues a start."""
        await self._client.act(instance_id, "start")
        return True

    async def pause(self, instance_id: str) -> None:
        """Stop and keep the volume; what is stopped already is done."""
        try:
            await self._client.act(instance_id, "stop", is_urgent=True)
        except errors.Rejected as error:
            if error.reason != "wrong_state" or not await self._is_stopped(instance_id):
                raise

    async def release(self, instance_id: str) -> None:
        """End for good; also when the market says that there is no such pod."""
        try:
            await self._client.act(instance_id, "terminate", is_urgent=True)
        except errors.NotFound:
            return
        except errors.Unreachable as error:
            raise errors.Ambiguous(str(error)) from None

    async def account(self) -> Account:
        """Return the account; who it is and what is left is told by GraphQL alone, and unknown once that is gone."""
        if self._no_account_until is None or self._clock.monotonic() >= self._no_account_until:
            try:
                return await self._myself()
            except graph.Retired:
                self._no_account_until = self._clock.monotonic() + ASK_GRAPH_AGAIN_SECONDS
        # The listing proves the key where nothing says whose it is.
        reply = await self._client.pods()
        return Account(self._account_id, None, hints.market_time(reply))

    async def charges(self, since: datetime, until: datetime) -> Sequence[Charge]:
        """Return the market's bill by pod and UTC day; the first day is whole, whatever the hour of `since`."""
        return bill.charges(await self._client.bill(since, until))

    async def events(self, since: datetime) -> Sequence[MarketEvent]:  # noqa: ARG002 - REST v2 keeps no record
        """Return nothing: REST v2 does not tell why a pod stopped."""
        return ()

    async def logs(self, instance_id: str, lines: int) -> Sequence[str]:
        """Return the last lines that the container printed."""
        return logs.lines(await self._client.logs(instance_id, lines), lines)

    def capabilities(self) -> frozenset[Capability]:
        """Return what this market can do now."""
        return frozenset({Capability.CREDIT}) if self._no_account_until is None else frozenset()

    async def close(self) -> None:
        """Let go of connections."""
        await self._client.close()

    async def _myself(self) -> Account:
        data, reply = await self._client.ask_graph(_MYSELF, {})
        if data.get("myself") is None:
            raise errors.Unauthorized("runpod says that the key is nobody's; check the credential.")
        try:
            found = msgspec.convert(data["myself"], _Myself, strict=False)
        except msgspec.ValidationError:
            raise errors.Malformed("The account is not what runpod documents.") from None
        self._account_id, self._no_account_until = found.id, None
        credit = None if found.clientBalance is None else bill.dollars(found.clientBalance)
        return Account(found.id, credit, hints.market_time(reply))

    async def _catalogue(self, cloud: str, gpus: int) -> list[parse.GpuRow]:
        rows, dropped = parse.catalogue(await self._client.catalogue(cloud, gpus))
        self._dropped_rows += dropped
        for row in rows:
            each = parse.price(row, cloud)
            if each is not None:
                self._prices[cloud, row.id] = each
        return rows

    async def _learn_prices(self, rows: Sequence[parse.PodRow]) -> None:
        """Read the catalogue when a stopped pod shows no cost and nobody knows what it will cost when it runs again."""
        places = {parse.pool_of(row) for row in rows if not row.cost and row.gpu is not None}
        for cloud in sorted({place.cloud for place in places if self._price(place) is None}):
            await self._catalogue(cloud, 1)
        for place in places:
            # A model that the catalogue has no more is asked for once.
            self._prices.setdefault((place.cloud, place.gpu_type), UsdPerHour(0))

    def _price(self, where: names.Pool) -> UsdPerHour | None:
        return self._prices.get((where.cloud, where.gpu_type))

    def _instance(self, row: parse.PodRow) -> Instance:
        found = parse.instance(row, self._price)
        now = self._clock.monotonic()
        if found.state is InstanceState.RUNNING:
            self._heard_at[row.id] = now
        elif found.state is InstanceState.LOADING and row.status == "RUNNING" and row.id in self._heard_at:
            is_late = now - self._heard_at[row.id] < SILENCE_SECONDS
            return msgspec.structs.replace(found, state=InstanceState.RUNNING if is_late else InstanceState.OFFLINE)
        elif row.status != "RUNNING":
            self._heard_at.pop(row.id, None)
        return found

    async def _is_stopped(self, instance_id: str) -> bool:
        try:
            row = parse.pod(await self._client.pod(instance_id))
        except errors.MarketError:
            return False
        return row.id == instance_id and row.status == "EXITED"


def connect(
    url: str,
    key: transport.Key,
    clock: clocks.Clock,
    jitter: Callable[[], float],
    *,
    deadline: float = transport.DEADLINE_SECONDS,
) -> RunPodMarket:
    """Return the market at `url`, where REST v2 and GraphQL answer; `key` gives the credential when it is needed."""
    lanes = pace.Pace(clock, client.LANES)
    link = transport.Transport(url, key, clock, lanes, jitter, deadline=deadline)
    return RunPodMarket(client.RunPodClient(link, lanes, clock), clock)
