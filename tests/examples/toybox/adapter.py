"""Toybox, a vendor that does not exist: its adapter and its record, as a package of somebody else would bring them."""

import email.utils
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from agent.clock import Clock
from agent.domain.market import gpu
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.interruption import MarketEvent
from agent.domain.market.market_rules import MarketRules, Settlement
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.markets import market_errors, pace, text, transport
from agent.markets.http_exchange import Exchange
from agent.markets.market_record import Finding, MarketOptions, MarketRecord, Question
from agent.markets.port import Account, Capability, Charge, Market, OfferQuery, Terms

RULES = MarketRules(settlement=Settlement.ARREARS, starts_by_itself=False)
STATES = {"starting": InstanceState.LOADING, "running": InstanceState.RUNNING, "paused": InstanceState.PAUSED}


class ToyOptions(MarketOptions):
    """The keys that only this market has."""

    room: str | None = None
    """The room in which its machines stand."""


class ToyMarket:
    """One account at Toybox."""

    name = "toybox"

    def __init__(self, link: transport.Transport, clock: Clock, room: str) -> None:
        self._link, self._clock, self._room = link, clock, room

    async def offers(self, query: OfferQuery) -> Sequence[Offer]:
        """Return the offers of the room."""
        rows = (await self._get(f"/rooms/{self._room}/machines"))["machines"]
        wants, now = query.requirements, self._clock.now()
        models = query.gpu_models or wants.gpu_models
        found = [_offer(row, query.disk_gb, now) for row in rows if row["gpus"] == wants.gpus]
        return [offer for offer in found if not models or offer.gpu in models][: query.max_rows]

    async def instances(self) -> Sequence[Instance]:
        """Return every instance of the account."""
        return [_instance(row) for row in (await self._get("/instances"))["instances"]]

    async def instance(self, instance_id: str) -> Instance:
        """Return one instance."""
        return _instance(await self._get(f"/instances/{instance_id}"))

    async def rent(self, offer: Offer, terms: Terms, label: str) -> str:
        """Rent and return the instance id."""
        body = {
            "machine": offer.offer_id,
            "bid": None if terms.bid is None else terms.bid.micros,
            "disk_gb": terms.disk_gb,
            "label": label,
        }
        return str((await self._order("POST", "/instances", body))["id"])

    async def rebid(self, instance_id: str, bid: UsdPerHour) -> None:
        """Change the bid."""
        await self._order("PATCH", f"/instances/{instance_id}", {"bid": bid.micros})

    async def resume(self, instance_id: str) -> bool:
        """Start again."""
        await self._order("PATCH", f"/instances/{instance_id}", {"state": "starting"})
        return True

    async def pause(self, instance_id: str) -> None:
        """Stop and keep the disk."""
        await self._order("PATCH", f"/instances/{instance_id}", {"state": "paused"})

    async def release(self, instance_id: str, *, is_gone: bool = False, is_gentle: bool = False) -> None:
        """End for good."""
        del is_gone, is_gentle
        try:
            await self._order("DELETE", f"/instances/{instance_id}", {})
        except market_errors.NotFound:
            return

    async def account(self) -> Account:
        """Return the account; it has no credit, since it pays by a later bill."""
        return Account((await self._get("/account"))["id"], None, self.server_time())

    async def charges(self, since: datetime, until: datetime) -> Sequence[Charge]:
        """Return no charges: it sends its bill on paper."""
        del since, until
        return ()

    async def events(self, since: datetime) -> Sequence[MarketEvent]:
        """Return nothing: it keeps no record."""
        del since
        return ()

    async def logs(self, instance_id: str, lines: int) -> Sequence[str]:
        """Return nothing: it shows no output."""
        del instance_id, lines
        return ()

    def search_delay(self, questions: int) -> float:  # noqa: ARG002 - as in the port
        """Return 0: it takes any number of questions."""
        return 0.0

    def instance_keys(self) -> None:
        """Return nothing: it registers no keys."""

    def capabilities(self) -> frozenset[Capability]:
        """Return its abilities."""
        return frozenset({Capability.INTERRUPTIBLE, Capability.REBID})

    def not_sold(self) -> Mapping[Tenure, str]:
        """Return nothing: it sells both tenures."""
        return {}

    def rules(self) -> MarketRules:
        """Return what is different here from other markets."""
        return RULES

    def server_time(self) -> datetime | None:
        """Return the time of its clock in its last answer."""
        said = self._link.last_date
        return email.utils.parsedate_to_datetime(said).astimezone(UTC) if said else None

    async def close(self) -> None:
        """Close connections."""
        await self._link.close()

    async def _get(self, path: str) -> Any:
        reply = await self._link.read(transport.Call("all", "GET", path))
        _refuse(reply)
        return json.loads(reply.body)

    async def _order(self, method: str, path: str, body: Mapping[str, Any]) -> Any:
        reply = await self._link.write(transport.Call("all", method, path, json.dumps(body).encode()))
        _refuse(reply)
        if not reply.is_ok:
            raise market_errors.Ambiguous(f"toybox answered {reply.status}; its listing shows what was done.")
        return json.loads(reply.body)


def _refuse(reply: transport.Reply) -> None:
    """Raise what a refusal proves; toybox gives each refusal a code."""
    code = json.loads(reply.body).get("code") if reply.looks_like_json else None
    if code == "bad_key":
        raise market_errors.Unauthorized("toybox does not know the key.")
    if code == "no_such_instance":
        raise market_errors.NotFound("toybox has no such instance.")
    if code == "machine_taken":
        raise market_errors.Rejected("no_capacity", "somebody else has the machine.")


def _offer(row: Mapping[str, Any], disk_gb: float, now: datetime) -> Offer:
    return Offer(
        market=ToyMarket.name,
        offer_id=text.clean(row["id"], 64),
        host_id=text.clean(row["id"], 64),
        owner_id="",
        gpu=gpu.model(row["gpu"]),
        gpus=row["gpus"],
        vram_mb=row["vram_mb"],
        dlperf=50.0,
        reliability=0.99,
        is_verified=True,
        region="",
        inet_down_mbps=1000.0,
        inet_up_mbps=1000.0,
        disk_gb=disk_gb,
        ask=UsdPerHour(row["ask"]),
        floor=UsdPerHour(row["floor"]),
        storage_micros_per_gb_month=row["disk_price"],
        traffic_down_micros_per_gb=0,
        traffic_up_micros_per_gb=0,
        ends_at=None,
        seen_at=now,
    )


def _instance(row: Mapping[str, Any]) -> Instance:
    return Instance(
        market=ToyMarket.name,
        instance_id=text.clean(row["id"], 64),
        label=text.clean(row["label"], 256),
        host_id=text.clean(row["machine"], 64),
        owner_id="",
        tenure=Tenure.ON_DEMAND if row["bid"] is None else Tenure.INTERRUPTIBLE,
        state=STATES.get(row["state"], InstanceState.UNKNOWN),
        gpu=gpu.model(row["gpu"]),
        gpus=row["gpus"],
        gpu_rate=UsdPerHour(row["price"]),
        disk_rate=UsdPerHour(round(row["disk_price"] * row["disk_gb"] / 720)),
        disk_gb=row["disk_gb"],
        created_at=datetime.fromtimestamp(row["created"], UTC),
        ends_at=None,
        dlperf=50.0,
        is_wanted_running=row["state"] != "paused",
    )


def connect(
    url: str,
    key: transport.Key,
    clock: Clock,
    jitter: Callable[[], float],
    /,
    *,
    options: MarketOptions | None = None,
    through: Exchange | None = None,
) -> ToyMarket:
    """Return the market at `url`."""
    room = options.room if isinstance(options, ToyOptions) and options.room else "main"
    lanes = pace.Pace(clock, {"all": pace.Lane(1.0, burst=20)})
    return ToyMarket(transport.Transport(url, key, clock, lanes, jitter, through=through), clock, room)


async def findings(market: Market, options: MarketOptions | None, _slots: int, /) -> Sequence[Finding]:
    """Say in which room the machines stand."""
    room = options.room if isinstance(options, ToyOptions) else None
    listed = len(await market.instances())
    return [Finding("room", f"the machines stand in {room}, {listed} rented", "" if room else "write room")]


RECORD = MarketRecord(
    name=ToyMarket.name,
    title="Toybox",
    url="https://toybox.example.com",
    documentation="https://toybox.example.com/docs",
    rules=RULES,
    connect=connect,
    options=ToyOptions,
    needed_live=("room",),
    questions=(Question("room", "The room in which the machines stand"),),
    findings=findings,
)
