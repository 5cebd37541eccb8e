"""The port over one project of a dstack server: a run is the instance, and a pool of a cloud's machines is the offer.

Invariants: those of the port. Beyond them:
1. A listing has every run and every machine that may matter, or it is refused.
2. A run is listed until its machines are proven gone, also if somebody deletes it before. `release` stops an active
   run; it deletes a finished one only after that proof. Until then the machine counts as billing.
3. Runs start in one fleet that is made for gpubid alone. While it is missing or unusable, nothing is offered.
4. Prices are the listed ones: the server knows no bill.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec
import structlog

from agent import clock as clocks
from agent.domain.market.instance import Instance
from agent.domain.market.interruption import MarketEvent
from agent.domain.market.market_rules import MarketRules
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.markets import hints, http_exchange, market_errors, pace, text, transport
from agent.markets.dstack import (
    client,
    cloud_clients,
    deletions,
    endings,
    fleets,
    instances,
    listing,
    logs,
    names,
    orders,
    rows,
    rules,
    search,
    states,
)
from agent.markets.port import Account, Capability, Charge, OfferQuery, Terms

log = structlog.get_logger("gpubid.dstack")

PLAN_SECONDS = 60.0
"""How long the offers of one question are kept, because each plan makes the server ask clouds."""
CUT = "the dearest offers are not seen: name fewer clouds or regions in [markets.dstack], or GPU models in the workload"
NO_BIDS = "dstack takes no bids: its prices are taken as listed"
ENDING = "dstack ends run {name}; it bills until its cloud has taken the machine back."
UNPROVEN_DELETION = "run {name} was deleted at dstack, and its machine is not proven gone."
UNKNOWN_RUN = "dstack knows no run {id}, and its machine is not proven gone."
OTHER_NAME = "dstack's project is called {told}, not {ours}: write [markets.dstack] project with the same capitals."
NOWHERE = orders.Bounds()
"""No cloud: nothing is offered."""


@dataclass(frozen=True, slots=True)
class Terrain:
    """The operator's facts about the server: the project, the fleet, and which clouds and regions may be used."""

    project: str = "main"
    fleet: str = ""
    bounds: orders.Bounds = NOWHERE


class DstackMarket:
    """One project of a server."""

    name = search.MARKET

    def __init__(self, endpoints: client.DstackClient, clock: clocks.Clock, terrain: Terrain) -> None:
        self._client = endpoints
        self._clock = clock
        self._terrain = terrain
        self._listing = listing.Listing(endpoints, terrain.fleet)
        self._endings = endings.Endings()
        self._clients = cloud_clients.CloudClients(endpoints, clock)
        self._fleet = fleets.Fleet(endpoints, clock, terrain.fleet)
        self._planned: dict[tuple[int, int, float], tuple[float, list[Offer]]] = {}
        self._over: set[str] = set()
        self._deletions = deletions.Deletions()
        self._missing_clouds = ""

    async def offers(self, query: OfferQuery) -> Sequence[Offer]:
        """Return the pools that may fit, the cheapest first; at most `max_rows` of each cloud, model and tenure."""
        if not self._terrain.bounds.backends or await self._fleet.why_unusable():
            return ()
        planned = await self._plan(query)
        if not planned:
            # It tells which cloud is missing, where one is.
            await self.backends()
        return search.cheapest([offer for offer in planned if search.fits(offer, query)], query.max_rows)

    def search_delay(self, questions: int) -> float:
        """Return the seconds until so many questions are asked without a wait."""
        return self._client.plan_delay(questions)

    async def instances(self) -> Sequence[Instance]:
        """Return every run of the project that may cost something, and machines of the fleet without a run."""
        clients = await self._cloud_clients()
        listed = await self._listing.everything()
        machines = [*(one for ones in listed.machines.values() for one in ones), *listed.without_run]
        active = {one.id for run in listed.runs if states.is_active(run) for one in listed.machines.get(run.name, ())}
        self._endings.look(machines, clients, self._clock.monotonic(), active)
        standing = {run.id: self._standing(run, listed) for run in listed.runs}
        self._over = {run_id for run_id, where in standing.items() if where.is_over}
        self._deletions.look(listed, standing)
        mattering = [run for run in listed.runs if self._deletions.is_kept(run) or _may_matter(run, listed)]
        self._listing.note(listed, mattering)
        found = [self._shown(run, standing[run.id], listed) for run in mattering]
        alone = [machine for machine in listed.without_run if machine.status != endings.TERMINATED]
        return [*found, *map(instances.of_machine, alone)]

    async def instance(self, instance_id: str) -> Instance:
        """Return one run."""
        run = await self._run(instance_id)
        listed = await self._listing.of_run(run)
        if run.deleted and not (self._deletions.is_kept(run) or deletions.is_there(run, listed)):
            raise market_errors.NotFound(f"dstack says that run {run.name} was deleted.")
        return self._shown(run, self._standing(run, listed), listed)

    async def rent(self, offer: Offer, terms: Terms, label: str) -> str:
        """Submit a run and return its id; the server looks for its machine afterwards."""
        if why := await self._fleet_problem():
            raise market_errors.Rejected("no_fleet", why)
        order = orders.create(offer, terms, label, self._terrain.fleet)
        return _submitted(await self._client.apply(order), order["run_name"])

    async def rebid(self, instance_id: str, bid: UsdPerHour) -> None:
        """Refuse: there are no bids."""
        del bid
        await self._run(instance_id)
        raise market_errors.Rejected("no_bids", f"{NO_BIDS}.")

    async def resume(self, instance_id: str) -> bool:
        """Refuse: a run that has ended does not start again."""
        await self._run(instance_id)
        raise market_errors.Rejected("wrong_state", "A run at dstack does not start again; another one is rented.")

    async def pause(self, instance_id: str) -> None:
        """Refuse: a run cannot be stopped and kept; `MarketRules.can_pause` says so."""
        await self._run(instance_id)
        raise market_errors.Rejected("wrong_state", "A run at dstack cannot be paused; release it.")

    async def release(self, instance_id: str, *, is_gone: bool = False, is_gentle: bool = False) -> None:
        """Stop a run, or delete one that is over; also returns if it is gone.

        A gentle stop lets the work end by itself for some seconds. It is sent once: the server would take a later one
        for a new order, and might soften a hard one. A stop that the server accepts is no end yet, and a run that it
        does not know proves none. Each release is Unfinished until the machine is proven gone, or until a person says
        so of a run that has ended.
        """
        try:
            run = await self._run(instance_id)
            if run.id in self._over or (is_gone and run.status in states.FINISHED):
                if not run.deleted:
                    await self._client.delete(run.name)
                self._deletions.forget(run)
                return
            if run.status not in states.FINISHED and not (is_gentle and run.status == states.TERMINATING):
                await self._client.stop(run.name, is_abort=not is_gentle)
        except market_errors.NotFound:
            if is_gone:
                return
            raise market_errors.Unfinished(UNKNOWN_RUN.format(id=text.clean(instance_id, 64))) from None
        except (market_errors.Unavailable, market_errors.Malformed, market_errors.Rejected) as error:
            raise market_errors.Ambiguous(str(error)) from None
        why = UNPROVEN_DELETION if run.deleted and not self._deletions.is_kept(run) else ENDING
        raise market_errors.Unfinished(why.format(name=run.name))

    async def account(self) -> Account:
        """Return the project. The clouds are paid in arrears, so there is no credit."""
        reply = await self._client.project()
        return Account(text.clean(self._ours(reply).project_id, 64), None, hints.market_time(reply))

    async def charges(self, since: datetime, until: datetime) -> Sequence[Charge]:
        """Return nothing: each cloud sends its bill to its customer, and the server has no bill."""
        del since, until
        await self._client.project()
        return ()

    async def events(self, since: datetime) -> Sequence[MarketEvent]:
        """Return nothing: a run's own record says how it ended."""
        del since
        return ()

    async def logs(self, instance_id: str, lines: int) -> Sequence[str]:
        """Return the last lines that the job printed."""
        run = await self._run(instance_id)
        job = run.latest_job_submission
        if job is None or not job.id or job.job_provisioning_data is None:
            return ()
        pieces = min(max(lines, 1), logs.MOST_PIECES)
        return logs.lines(rows.log_lines(await self._client.log(run.name, job.id, pieces)), lines)

    def instance_keys(self) -> None:
        """Return nothing: the server's own command attaches a shell."""

    def capabilities(self) -> frozenset[Capability]:
        """Return the abilities: spot machines, and no change of a running one."""
        return frozenset({Capability.INTERRUPTIBLE})

    def rules(self) -> MarketRules:
        """Return what is different here from other markets."""
        return rules.RULES

    def not_sold(self) -> Mapping[Tenure, str]:
        """Return both tenures with the reason, while no cloud is named or the fleet is missing or unusable."""
        why = self._missing_clouds or self._fleet.last_problem
        return {Tenure.ON_DEMAND: why, Tenure.INTERRUPTIBLE: why} if why else {}

    def server_time(self) -> datetime | None:
        """Return the time of the server's clock in its last answer."""
        return hints.server_time(self._client.last_date())

    async def backends(self) -> Sequence[str]:
        """Return the clouds whose keys the server has. Raises: as `account`."""
        project = self._ours(await self._client.project())
        found = sorted(text.clean(backend.name, 32) for backend in project.backends or ())
        self._missing_clouds = fleets.why_no_cloud(self._terrain.bounds.backends, found)
        return found

    async def fleet_problem(self) -> str:
        """Return why the fleet cannot be used and how to make it, or an empty text. Raises: as `account`."""
        return await self._fleet.why_unusable()

    def most_machines(self) -> int | None:
        """Return how many machines the fleet may have, by its last look; None without a bound, or before a look."""
        return self._fleet.most_machines

    async def close(self) -> None:
        """Close connections."""
        await self._clients.close()
        await self._client.close()

    def _ours(self, reply: transport.Reply) -> rows.Project:
        """Return the project of an answer.

        Raises:
            Unavailable: it has another name. The server takes a path's project in any case, and answers a question for
                all runs of a project that it has only in another case with none: also those that bill would be gone.
        """
        project = rows.project(reply.body)
        if project.project_name not in {None, self._terrain.project}:
            told = text.clean(project.project_name or "", 64)
            raise market_errors.Unavailable(OTHER_NAME.format(told=told, ours=self._terrain.project))
        return project

    async def _cloud_clients(self) -> Mapping[str, float]:
        """Return the clouds of which the server has a client, each with the monotonic second of the proof."""
        backends = await self.backends()
        # Also the clouds that may be rented at: a machine may be made and ended before its second look.
        clouds = {**dict.fromkeys(self._terrain.bounds.backends or backends, False), **self._endings.clouds()}
        await self._clients.ask({cloud: is_ending for cloud, is_ending in clouds.items() if cloud in backends})
        return self._clients.proven(backends)

    async def _plan(self, query: OfferQuery) -> list[Offer]:
        wants, bounds = query.requirements, self._terrain.bounds
        memory_mb = max(wants.min_vram_mb or 0, names.least_memory_mb(query.gpu_models or wants.gpu_models))
        asked, now = (wants.gpus, memory_mb, query.disk_gb), self._clock.monotonic()
        kept = {key: each for key, each in self._planned.items() if now - each[0] < PLAN_SECONDS}
        if asked not in kept:
            plan = rows.plan(await self._client.plan(orders.question(*asked, self._terrain.fleet, bounds)))
            if plan.beyond:
                log.warning("plan.cut", market=self.name, rows=len(plan.offers), beyond=plan.beyond, fix=CUT)
            clouds, seen_at = frozenset(bounds.backends), self._clock.now()
            kept[asked] = now, search.offers(plan.offers, clouds, seen_at, query.disk_gb, bounds.egress)
        self._planned = kept
        return kept[asked][1]

    async def _fleet_problem(self) -> str:
        """Return why the fleet cannot be used, for an order. Raises: Throttled, Unauthorized, Unreachable."""
        try:
            return await self._fleet.why_unusable()
        except (market_errors.Unavailable, market_errors.Malformed) as error:
            raise market_errors.Unreachable(f"nothing was sent to dstack: {error}") from None

    async def _run(self, run_id: str) -> rows.Run:
        """Return a run, also a deleted one. Raises: NotFound, also for an id that no run can have."""
        if not names.is_run_id(run_id):
            # An unknown token must be refused as such here too.
            await self._client.project()
            raise market_errors.NotFound(f"{text.clean(run_id, 64)} is no id of a run at dstack.")
        run = rows.run(await self._client.run(run_id))
        if run.id != run_id:
            raise market_errors.Malformed(f"dstack answered another run than {run_id}.")
        return run

    def _standing(self, run: rows.Run, listed: listing.Listed) -> states.Standing:
        return states.standing(run, listed.machines.get(run.name, ()), self._endings)

    def _shown(self, run: rows.Run, where: states.Standing, listed: listing.Listed) -> Instance:
        """Return a run as an instance. A deleted run is listed again if its machine, once over, is listed again.

        It stays listed until the machine is proven gone anew, also where the next look calls that over again.
        """
        found = instances.of_run(run, where, listed)
        machines = listed.machines.get(run.name, ()) if run.deleted else ()
        over = [self._endings.over_at(machine) for machine in machines if not self._endings.is_gone(machine)]
        surely = [at for at in over if at is not None]
        if not surely or len(surely) < len(over):
            return found
        passed = timedelta(seconds=self._clock.monotonic() - min(surely))
        return msgspec.structs.replace(found, was_over_at=self._clock.now() - passed)


def connect(
    url: str,
    key: transport.Key,
    clock: clocks.Clock,
    jitter: Callable[[], float],
    *,
    terrain: Terrain,
    deadline: float = transport.DEADLINE_SECONDS,
    through: http_exchange.Exchange | None = None,
) -> DstackMarket:
    """Return the market at `url` for one project; `key` returns the token for each request."""
    lanes = pace.Pace(clock, client.LANES)
    link = transport.Transport(url, key, clock, lanes, jitter, bounds=transport.Bounds(deadline), through=through)
    return DstackMarket(client.DstackClient(link, lanes, clock, terrain.project), clock, terrain)


def _submitted(raw: bytes, name: str) -> str:
    """Return the id of a run that was just submitted.

    Raises:
        Ambiguous: the answer does not show a run of that name.
    """
    try:
        run = rows.run(raw)
    except market_errors.Malformed as error:
        raise market_errors.Ambiguous(f"dstack accepted the order and named no run ({error})") from None
    if run.name != name or not names.is_run_id(run.id):
        raise market_errors.Ambiguous("dstack answered an order with a run of another name; its listing shows ours.")
    return run.id


def _may_matter(run: rows.Run, listed: listing.Listed) -> bool:
    """Return whether a run is listed: one of ours until it is deleted, another's while it or its machine is there."""
    is_there = run.status not in states.FINISHED or deletions.is_there(run, listed)
    return not run.deleted and (names.is_ours(run) or is_there)
