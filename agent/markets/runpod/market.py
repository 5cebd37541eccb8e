"""The port over RunPod: REST v2, and GraphQL for facts and products that only it has.

Invariants: those of the port. Beyond them:
1. A listing has every pod of every page, or it is refused. GraphQL's additions make and remove no pod.
2. If a pod may have been rented at a bid, a listing without GraphQL's part is refused: the pod would pass for on
   demand.
3. A pod that ran and reports nothing any more counts as running for a while; after that its host is silent
   (`evidence/silence.py`). In both cases it counts as charged while the listing shows a cost. RunPod documents two
   things as free: the storage of a host that is down, and the time of announced maintenance. Silence alone is neither
   (references/billing-information and pods/maintenance-and-outages of runpod/docs).
4. A field that another one or the other surface contradicts changes nothing (`evidence/contradictions.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

import structlog

from agent import clock as clocks
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.interruption import MarketEvent
from agent.domain.market.market_rules import MarketRules
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.markets import hints, http_exchange, labels, market_errors, pace, transport
from agent.markets.port import Account, Capability, Charge, OfferQuery, Terms
from agent.markets.runpod import (
    bids,
    bill,
    client,
    graph,
    history,
    listing,
    logs,
    maintenance,
    names,
    orders,
    parse,
    rules,
    search,
    states,
)
from agent.markets.runpod.evidence import contradictions, known_bids, silence
from agent.markets.runpod.storage import network_volumes

log = structlog.get_logger("gpubid.runpod")

ASK_GRAPH_AGAIN_SECONDS = 6 * 3600.0
"""The wait before a removed question is asked again: the market may have been repairing something."""
ASK_PRICE_AGAIN_SECONDS = 600.0
"""The wait before the catalogue is read again for a model that it lacked: models come back. Assumed."""
HISTORY_KEPT_SECONDS = 4.0
"""GraphQL's answer serves the reads of one cycle, as long as the listing agrees with it."""
NOT_THERE_SECONDS = 900.0
"""GraphQL counts as gone after this long with no other answer; a proxy may answer the same. Assumed."""
LAG = timedelta(minutes=2)
"""How long after a rent two surfaces of the market may disagree. Assumed."""
ENDED_ELSEWHERE = frozenset({"invalid_args", "refused", "route_gone"})
"""Refusals of an action that say nothing about the pod: another route may still end it."""
_EXITED = "EXITED"


class RunPodMarket:
    """One account at RunPod."""

    name = parse.MARKET

    def __init__(self, endpoints: client.RunPodClient, clock: clocks.Clock) -> None:
        self._client = endpoints
        self._clock = clock
        self._bids = bids.Bids(endpoints, clock)
        self._volumes = network_volumes.NetworkVolumes(endpoints, clock)
        self._maintenance = maintenance.Maintenance(endpoints, clock, self.name)
        self._prices: dict[tuple[str, str], UsdPerHour] = {}
        self._asked_again_at: dict[names.Pool, float] = {}
        self._contradictions = contradictions.Contradictions()
        self._silence = silence.Silence()
        self._rows: dict[str, Instance] = {}
        self._graph_pods: dict[str, history.Pod] | None = None
        self._pods_read_at = -HISTORY_KEPT_SECONDS
        self._bids_went_out = False
        self._at_a_bid = known_bids.KnownBids()
        self._account_id = ""
        self._no_graph_until: float | None = None
        self._not_there_since: float | None = None

    async def offers(self, query: OfferQuery) -> Sequence[Offer]:
        """Return offers that may fit, the cheapest first."""
        wants, now = query.requirements, self._clock.now()
        volumes = await self._volumes.by_data_center(wants.network_volume)
        is_secure = wants.verified_only or wants.datacenter_only or wants.network_volume
        clouds = (parse.SECURE,) if is_secure else (parse.SECURE, parse.COMMUNITY)
        found: list[Offer] = []
        for cloud in clouds:
            floors = await self._floors(cloud, wants.gpus) if Tenure.INTERRUPTIBLE in query.tenures else {}
            for row in await self._catalogue(cloud, wants.gpus):
                rows = parse.offers(row, cloud, wants.gpus, floors.get(row.id), now, volumes)
                found += [offer for offer in rows if search.fits(offer, query)]
        found.sort(key=lambda offer: (offer.floor or offer.ask or UsdPerHour(0), offer.offer_id))
        return found[: query.max_rows]

    def search_delay(self, questions: int) -> float:
        """Return the seconds until so many questions are asked without a wait: each may read two clouds."""
        return self._client.catalogue_delay(2 * questions)

    async def instances(self) -> Sequence[Instance]:
        """Return every pod of the account, or raise."""
        rows = await listing.pods(self._client)
        self._at_a_bid.keep({row.id for row in rows}, self._clock.monotonic())
        await self._learn_prices(rows)
        await self._learn_history(rows)
        self._refuse_pods_without_bid_facts(rows)
        pods = [self._told(row) for row in rows]
        instances = [self._instance(pod) for pod in pods if pod.row.status != states.GONE]
        for memory in (self._contradictions, self._silence):
            memory.keep({row.id for row in rows})
        self._rows = {row.instance_id: row for row in instances}
        return instances

    async def instance(self, instance_id: str) -> Instance:
        """Return one pod."""
        row = parse.pod(await self._client.pod(instance_id))
        if row.id != instance_id:
            raise market_errors.Malformed(f"runpod answered another pod than {instance_id}.")
        is_ended = row.status == states.GONE and not row.cost
        if not is_ended:
            await self._learn_prices([row])
            await self._learn_history([row])
        pod = self._told(row)
        if pod.row.status == states.GONE:
            raise market_errors.NotFound(f"runpod says that pod {instance_id} was ended.")
        return self._instance(pod)

    async def rent(self, offer: Offer, terms: Terms, label: str) -> str:
        """Rent and return the pod's id."""
        where = names.pool(offer.host_id)
        if where is None:
            raise market_errors.Rejected("invalid_args", f"{offer.offer_id} is no offer of runpod.")
        if terms.tenure is Tenure.INTERRUPTIBLE and terms.bid is not None:
            self._bids_went_out = True
            pod_id = await self._bids.rent(where, offer.gpus, terms, label)
            self._at_a_bid[pod_id] = terms.bid
            self._contradictions.ordered(pod_id, terms.bid.dollars, offer.gpus, terms.disk_gb)
            return pod_id
        raw = await self._client.create(orders.create(where, offer.gpus, terms, label))
        try:
            pod = parse.pod(raw)
        except market_errors.Malformed as error:
            raise market_errors.Ambiguous(f"runpod accepted the order and named no pod ({error})") from None
        self._contradictions.ordered(pod.id, offer.ask.dollars if offer.ask else None, offer.gpus, terms.disk_gb)
        return pod.id

    async def rebid(self, instance_id: str, bid: UsdPerHour) -> None:
        """Start a stopped pod again at another bid; the bid of a running pod cannot be changed."""
        row = self._rows.get(instance_id)
        if row is None or row.tenure is not Tenure.INTERRUPTIBLE or row.state is not InstanceState.PAUSED:
            sentence = (
                f"runpod changes the bid only of a stopped interruptible pod; nothing was sent for {instance_id}."
            )
            raise market_errors.Rejected("no_rebid", sentence)
        await self._bids.resume(instance_id, bid, row.gpus)
        self._at_a_bid[instance_id] = bid

    async def resume(self, instance_id: str) -> bool:
        """Start again on the same host, at the old bid if it had one; the market never queues a start."""
        row = self._rows.get(instance_id)
        if row is not None and row.tenure is Tenure.INTERRUPTIBLE:
            bids.refuse_unknown(row)
            await self._bids.resume(instance_id, row.gpu_rate, row.gpus)
        else:
            await self._client.act(instance_id, "start")
        return True

    async def pause(self, instance_id: str) -> None:
        """Stop and keep the volume; also returns if the pod is already stopped."""
        try:
            await self._client.act(instance_id, "stop", is_urgent=True)
        except market_errors.Rejected as error:
            if error.reason != "wrong_state" or not await self._is_stopped(instance_id):
                raise

    async def release(self, instance_id: str, *, is_gone: bool = False, is_gentle: bool = False) -> None:
        """End for good; also returns if the market says that there is no such pod."""
        del is_gone, is_gentle
        try:
            await self._end(instance_id)
        except market_errors.NotFound:
            return
        except market_errors.Unreachable as error:
            raise market_errors.Ambiguous(str(error)) from None

    async def _end(self, instance_id: str) -> None:
        """End a pod by its action, or by the other route if the market does not take the action.

        The first answer was a refusal for that pod. The answer of the other route proves no more, not even a 404: a
        market without that route gives the same. The next listing shows the outcome.
        """
        try:
            await self._client.act(instance_id, "terminate", is_urgent=True)
        except market_errors.Rejected as refusal:
            if refusal.reason not in ENDED_ELSEWHERE:
                raise
            try:
                await self._client.remove(instance_id)
            except (market_errors.Throttled, market_errors.Unreachable):
                raise
            except market_errors.MarketError as error:
                log.warning("release.other_route", instance=instance_id, code=error.code, reason=str(error)[:200])
                raise refusal from None

    async def account(self) -> Account:
        """Return the account. Only GraphQL reports its id and credit; both are unknown without GraphQL."""
        await self._floors(parse.SECURE, 1)
        if self._may_ask_graph():
            try:
                return await self._ask_account()
            except graph.Retired:
                self._no_graph_until = self._clock.monotonic() + ASK_GRAPH_AGAIN_SECONDS
        # Without an account id, the listing proves that the key is valid.
        reply = await self._client.pods()
        return Account(self._account_id, None, hints.market_time(reply))

    async def charges(self, since: datetime, until: datetime) -> Sequence[Charge]:
        """Return the market's bill by pod and UTC day; the first day is complete, whatever the hour of `since`."""
        return bill.charges(await self._client.bill(since, until))

    async def events(self, since: datetime) -> Sequence[MarketEvent]:
        """Return the last change of each pod and announced maintenance, while GraphQL reports them."""
        pods = self._graph_pods or {}
        pairs = ((row, pods.get(pod_id)) for pod_id, row in self._rows.items())
        events = [history.event(self.name, row, pod) for row, pod in pairs if pod is not None]
        events += await self._maintenance.events() if pods else ()
        return sorted((one for one in events if one is not None and one.at >= since), key=lambda one: one.at)

    async def logs(self, instance_id: str, lines: int) -> Sequence[str]:
        """Return the last lines that the container printed."""
        return logs.lines(await self._client.logs(instance_id, lines), lines)

    def instance_keys(self) -> None:
        """Return nothing: the market registers keys with the account alone, and updates no running pod."""

    def capabilities(self) -> frozenset[Capability]:
        """Return the present abilities; the bid of a running pod can never be changed."""
        found = set() if self._bids.not_sold_because else {Capability.INTERRUPTIBLE}
        return frozenset(found | {Capability.CREDIT, Capability.EVENTS} if self._no_graph_until is None else found)

    def rules(self) -> MarketRules:
        """Return what is different here from other markets."""
        return rules.RULES

    def not_sold(self) -> Mapping[Tenure, str]:
        """Return interruptible with the reason, once the market's own answers show that it is not sold."""
        why = self._bids.not_sold_because
        return {Tenure.INTERRUPTIBLE: f"runpod sells no interruptible pods to this account: {why}"} if why else {}

    def server_time(self) -> datetime | None:
        """Return the time of the market's clock in its last answer."""
        return hints.server_time(self._client.last_date())

    async def close(self) -> None:
        """Close connections."""
        await self._client.close()

    def _may_ask_graph(self) -> bool:
        return self._no_graph_until is None or self._clock.monotonic() >= self._no_graph_until

    async def _ask_account(self) -> Account:
        answered = await self._ask_graph()
        account = history.account(answered)
        self._graph_pods, self._pods_read_at = history.pods(answered), self._clock.monotonic()
        self._account_id, self._no_graph_until = account.id or self._account_id, None
        return Account(self._account_id, bill.credit(account.clientBalance), hints.market_time(answered.reply))

    async def _ask_graph(self) -> graph.Answered:
        try:
            answered = await self._client.ask_graph(history.QUESTION, {})
        except graph.NotThere as error:
            now = self._clock.monotonic()
            self._not_there_since = now if self._not_there_since is None else self._not_there_since
            if now - self._not_there_since < NOT_THERE_SECONDS:
                raise market_errors.Unavailable(f"{error}; it is asked again before it is taken for gone.") from None
            raise
        self._not_there_since = None
        return answered

    async def _learn_history(self, rows: Sequence[parse.PodRow]) -> None:
        """Ask GraphQL about the pods; without an answer, continue only if none of them can be at a bid."""
        is_recent = self._clock.monotonic() - self._pods_read_at < HISTORY_KEPT_SECONDS
        if not self._may_ask_graph() or (is_recent and all(self._is_in_graph(row) for row in rows)):
            return
        try:
            await self._ask_account()
        except graph.Retired:
            self._no_graph_until = self._clock.monotonic() + ASK_GRAPH_AGAIN_SECONDS
            self._graph_pods = {}
        except market_errors.Unauthorized:
            raise
        except market_errors.MarketError:
            is_known = self._graph_pods is not None and not any(
                pod.is_interruptible for pod in self._graph_pods.values()
            )
            if not is_known or self._at_a_bid:
                raise

    def _is_in_graph(self, row: parse.PodRow) -> bool:
        """Return whether GraphQL's last answer describes the pod as the listing does."""
        pod = (self._graph_pods or {}).get(row.id)
        return pod is not None and (pod.desiredStatus == _EXITED) == (row.status == _EXITED)

    def _refuse_pods_without_bid_facts(self, rows: Sequence[parse.PodRow]) -> None:
        """Refuse a listing with a fresh pod of ours that GraphQL lacks: it is not known whether the pod has a bid.

        Raises:
            Unavailable: the listing has one.
        """
        pods, now = self._graph_pods, self._clock.now()
        if not pods and not self._bids_went_out:
            return
        for row in rows:
            is_fresh = (at := parse.made_at(row)) is not None and now - at < LAG
            is_ours = labels.parse(row.name or "") is not None
            if is_ours and is_fresh and row.id not in self._at_a_bid and row.id not in (pods or {}):
                raise market_errors.Unavailable(
                    f"runpod's GraphQL does not show pod {row.id} yet; the next listing will."
                )

    async def _floors(self, cloud: str, gpus: int) -> dict[str, UsdPerHour]:
        """Return floors, or none if they cannot be read now: the search for on-demand offers continues."""
        try:
            return await self._bids.floors(cloud, gpus)
        except market_errors.Unauthorized:
            raise
        except market_errors.MarketError:
            return {}

    async def _catalogue(self, cloud: str, gpus: int) -> list[parse.GpuRow]:
        rows = parse.catalogue(await self._client.catalogue(cloud, gpus))
        for row in rows:
            each = parse.price(row, cloud)
            if each is not None:
                self._prices[cloud, row.id] = each
        return rows

    async def _learn_prices(self, rows: Sequence[parse.PodRow]) -> None:
        """Read the catalogue if a stopped pod shows no cost and its price when running is not known.

        Raises: Unauthorized
        """
        now, places = self._clock.monotonic(), {parse.pool_of(row) for row in rows if parse.is_priced_by_catalogue(row)}
        unknown = [place for place in places if self._price(place) is None]
        wanted = [place for place in unknown if now >= self._asked_again_at.get(place, now)]
        self._asked_again_at |= dict.fromkeys(wanted, now + ASK_PRICE_AGAIN_SECONDS)
        for cloud in sorted({place.cloud for place in wanted}):
            try:
                await self._catalogue(cloud, 1)
            except market_errors.Unauthorized:
                raise
            except market_errors.MarketError as error:
                # A listing must not wait for the catalogue: whatever has to end is ended by the listing.
                log.debug("catalogue.unread", cloud=cloud, code=error.code)

    def _price(self, where: names.Pool) -> UsdPerHour | None:
        return self._prices.get((where.cloud, where.gpu_type))

    def _told(self, row: parse.PodRow) -> contradictions.Told:
        return self._contradictions.settled(row, (self._graph_pods or {}).get(row.id), self._clock.monotonic())

    def _instance(self, told: contradictions.Told) -> Instance:
        row, pod = told.row, told.pod
        instance = self._silence.heard(row, parse.instance(row, self._price), self._clock.monotonic())
        if pod is not None and pod.is_interruptible:
            self._at_a_bid[row.id] = pod.rate or self._at_a_bid.get(row.id) or bids.shown(instance)
        instance = history.added(instance, pod, has_run=self._silence.has_run(row.id))
        return bids.at_bid(instance, row.cost, self._at_a_bid[row.id]) if row.id in self._at_a_bid else instance

    async def _is_stopped(self, instance_id: str) -> bool:
        try:
            row = parse.pod(await self._client.pod(instance_id))
        except market_errors.MarketError:
            return False
        return row.id == instance_id and _EXITED in {row.status, self._told(row).row.status}


def connect(
    url: str,
    key: transport.Key,
    clock: clocks.Clock,
    jitter: Callable[[], float],
    *,
    deadline: float = transport.DEADLINE_SECONDS,
    through: http_exchange.Exchange | None = None,
) -> RunPodMarket:
    """Return the market at `url`, with REST v2 and GraphQL; `key` returns the credential for each request."""
    lanes = pace.Pace(clock, client.LANES)
    link = transport.Transport(url, key, clock, lanes, jitter, bounds=transport.Bounds(deadline), through=through)
    return RunPodMarket(client.RunPodClient(link, lanes, clock), clock)
