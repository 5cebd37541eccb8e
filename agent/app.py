"""App: the program as a value. Tests, rehearsals and the command line build, run and close the very same one.

This is the composition root: it alone knows how the parts are connected.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any

import structlog

from agent import schedule
from agent.act import endpoints, frame_recorder, intents, simulated_market_reset
from agent.act.billing_watch import BillingWatch
from agent.act.endings import ending_refusals
from agent.act.executor import Executor
from agent.act.guarding.advice_notes import AdviceNotes
from agent.act.guarding.guard_launches import GuardLaunches
from agent.act.guarding.guard_orders import GuardOrders
from agent.act.guarding.run_search import RunSearch
from agent.act.guarding.signs_of_life import SignsOfLife
from agent.act.journal import Journal
from agent.act.kept_logs import kept_log
from agent.act.kept_logs.log_keeper import LogKeeper
from agent.act.market_accounts import Accounts
from agent.act.orders import changed_workloads, kill_order, order_grounds
from agent.act.run_times.window_log import WindowLog
from agent.act.shell_keys.key_registration import KeyRegistration
from agent.clock import Clock, SteadyClock
from agent.config import guard_archive, service_reach
from agent.config.settings import Config, MarketSettings
from agent.cycle import Cycle, Parts, Pass, Rules
from agent.decide.facts import Alert
from agent.decide.operators import notices, operator_holds, reload
from agent.decide.strategy import Tuned
from agent.domain import money
from agent.domain.market.account_refusal import Refusal
from agent.domain.record.intent import Intent
from agent.domain.record.lease import Lease
from agent.domain.slot import Slot
from agent.domain.work.decision import Pause, Release
from agent.domain.work.order import Order
from agent.front.front_writer import FrontWriter
from agent.ledger import storage
from agent.ledger.ledger_errors import LedgerError
from agent.ledger.store import Ledger
from agent.observe import reload_review
from agent.observe.checkpoint_audit import CheckpointAudit
from agent.observe.demand.demand_reader import DemandReader
from agent.observe.guard_reader import GuardReader
from agent.observe.guard_reader import targets as guard_targets
from agent.observe.interruptible_reading import ReadingInterrupted
from agent.observe.poller import Poller, refusals
from agent.observe.prober import Prober
from agent.observe.replica_watch import ReplicaWatch
from agent.observe.task_estimates import TaskEstimates
from agent.outside import Outside
from agent.person_orders import PersonOrders, Turn

log = structlog.get_logger("gpubid.app")


class App:
    """The daemon without its schedule: open it, run cycles, close it. Closing never releases."""

    def __init__(
        self,
        config: Config,
        tuned: Mapping[str, Tuned],
        outside: Outside,
        clock: SteadyClock,
        ledger: Ledger,
        *,
        is_dry: bool,
    ) -> None:
        """Connect the parts; use `open`, which also opens the ledger and settles the intents that a crash left."""
        self.ledger, self.clock = ledger, clock
        self.config, self.credential = config, outside.credential
        self.rules = Rules(config.workloads, tuned, config.limits, config.poll)
        self.markets = {settings.name: outside.connect(settings) for settings in config.markets}
        self._accounts, self._replicas = Accounts(ledger, self.markets, clock), ReplicaWatch(ledger, clock)
        self.seen: Pass | None = None
        self._is_dry = is_dry
        self._stopped_because = ""
        self._unpaid: Mapping[str, str] = {}
        """Why the files of the last reload let nothing be paid for on a market, by its name."""
        self._endpoints: Mapping[Slot, str] = {}
        self._beside: set[asyncio.Task[None]] = set()
        self.pollers = [self._poller(settings, outside) for settings in config.markets]
        self._connect_orders(outside)
        self._connect_guards(outside)
        self._connect_beside(outside)
        room = config.recording_bytes
        self._recorder = frame_recorder.Recorder(frame_recorder.folder_of(config.ledger), room) if room else None
        self._cycle = self._new_cycle(outside.clock, is_dry=is_dry)
        turn = Turn(self._cycle.reading.interrupted)
        self._turn = turn.lock
        self._person_orders = PersonOrders(
            ledger, clock, self._executor, turn, self.grounds, lambda: self.signs.spread(self.rules.workloads)
        )

    def _poller(self, settings: MarketSettings, outside: Outside) -> Poller:
        market = self.markets[settings.name]
        poller = Poller(market, self.clock, settings.why_unpaid, self._account_check(settings.name))
        recorded = self.ledger.recollection(self.clock.now()).credits.get(settings.name)
        poller.recall_credit(None if recorded is None else recorded.amount)
        is_here = settings.is_on_this_machine
        poller.prober = Prober(market, outside.clock, asyncio.create_task, may_be_local=is_here)
        return poller

    def _connect_orders(self, outside: Outside) -> None:
        """Connect the way from a decision to a market."""
        apis = {settings.name: outside.urls.get(settings.name, settings.url) for settings in self.config.markets}
        self._guards = GuardLaunches(self.ledger.fleet_id, guard_archive.packed, outside.credential, apis)
        of_rents = (self._denial, outside.credential, self._guards)
        self._journal = Journal(self.ledger, self.markets, outside.clock, outside.new_id, *of_rents)
        self._executor = Executor(self._journal)

    def _connect_guards(self, outside: Outside) -> None:
        """Connect the readers and writers of guards' buckets."""
        heard = (outside.clock, asyncio.create_task, outside.credential)
        self._guard_reader, self._orders, self._advice = GuardReader(*heard), GuardOrders(*heard), AdviceNotes(*heard)
        self._audit, self._runs = CheckpointAudit(*heard), RunSearch(self.ledger, *heard, is_dry=self._is_dry)
        self.signs = SignsOfLife(self.ledger, *heard, self._refusals, is_dry=self._is_dry)

    def _connect_beside(self, outside: Outside) -> None:
        """Connect the other parts that work beside the cycles or after them."""
        config, spawned = self.config, (outside.clock, asyncio.create_task)
        self.demand = DemandReader(*spawned)
        self.estimates = TaskEstimates(*spawned, self.ledger.place, self.markets)
        self.fronts = FrontWriter(*spawned, {each.name for each in config.markets if each.is_on_this_machine})
        place = (kept_log.folder_of(config.ledger), 0 if self._is_dry else config.log_bytes)
        self.logs = LogKeeper(place, self.markets, outside, asyncio.create_task, lambda: self.ledger.is_writable)
        self._journal.before_ending = self.logs.before_ending
        self.keys = KeyRegistration(self.ledger, self.markets, *spawned, outside.new_id, lambda: self._stopped_because)
        self.billing_watch = BillingWatch(self.ledger, self.pollers, self.clock)
        self._windows = WindowLog(self.ledger)

    def _new_cycle(self, clock: Clock, *, is_dry: bool) -> Cycle:
        guard_reader, orders = (None, None) if is_dry else (self._guard_reader, self._orders)
        audit, fronts = (None, None) if is_dry else (self._audit, self.fronts)
        demand, estimates = (None, None) if is_dry else (self.demand, self.estimates)
        told = guard_reader, orders, audit, fronts, demand, estimates, self._alerts_beside
        return Cycle(
            Parts(self.ledger, self.pollers, self._executor, clock, *told),
            self.stop_writing,
            is_dry=is_dry,
            witness=self._recorder.see if self._recorder is not None and not is_dry else lambda *_: None,
        )

    @classmethod
    async def open(cls, config: Config, tuned: Mapping[str, Tuned], outside: Outside, *, is_dry: bool = False) -> "App":
        """Open the ledger, settle the intents that a crash left in it, and read the accounts of the keys.

        Raises:
            LedgerError: it is locked, corrupt, newer than this program, of another account, or of a rehearsal.
        """
        path = config.ledger.with_name(config.ledger.name + ".dry-run") if is_dry else config.ledger
        clock = SteadyClock(outside.clock)
        place = storage.of(path, None if is_dry else config.ledger_server, outside.ledger_password)
        ledger = await Ledger.open(outside.ledger_place or place, clock=clock, fleet_id=outside.fleet_id)
        known = ledger.recollection(clock.now())
        # An open order may have made an instance, which is metered from its creation on.
        instants = (*(lease.accrued_until for lease in known.leases), *(each.recorded_at for each in known.intents))
        for recorded in instants:
            clock.recall(recorded)
        app = cls(config, tuned, replace(outside, clock=clock), clock, ledger, is_dry=is_dry)
        try:
            await (await ledger.reader()).refuse_rehearsed()
            await intents.settle_crash(ledger, clock.now())
            await simulated_market_reset.end_leases(ledger, outside.anew, clock.now())
            await app.billing_watch.read_bills()
            await app._accounts.know(patience=schedule.OPEN_PATIENCE_SECONDS)
        except BaseException:
            await app.close()
            raise
        return app

    @property
    def search_delay(self) -> float | None:
        """Seconds until a market takes a search that the last cycle left to a later one; None if it left none."""
        return min(
            (poller.searches.delay for poller in self.pollers if poller.searches.delay is not None), default=None
        )

    async def cycle(self) -> Pass:
        """Run one cycle.

        Raises:
            LedgerError: the ledger could not be written; nothing was paid for.
        """
        while (done := await self._one_cycle()) is None:
            """The order that interrupted the reading had the next turn."""
        unknown = self._accounts.unknown(poller.view for poller in self.pollers)
        if unknown:
            await self._accounts.know(unknown)
        return done

    async def _one_cycle(self) -> Pass | None:
        """Run one cycle, or return None if an order to end something interrupted it."""
        async with self._turn:
            # A reload during the turn counts from the next one on, when the leases have its names.
            rules = self.rules
            self.ledger.refuse_unled()
            await self._replicas.look()
            unwritten = await self._record_before(rules)
            try:
                done = await self._cycle.run(rules, unwritten)
                self.signs.note_pass()
            except ReadingInterrupted:
                return None
            finally:
                self._look_after(rules)
            self.seen = done
            if not self._is_dry:
                await self._look_beside(done, rules)
            self._endpoints = await endpoints.keep(self.ledger, done.fleet, self._endpoints)
            return done

    async def _record_before(self, rules: Rules) -> str:
        """Record what came between two cycles; return why the ledger could not be written, or an empty text."""
        try:
            await kill_order.settle(self.ledger, self.clock.now())
            await self._journal.unjournaled.settle(self.ledger, self.clock.now())
            await intents.settle_crash(self.ledger, self.clock.now(), self.keys.underway)
            await changed_workloads.record(self.ledger, rules.workloads, self.clock.now())
            await self._runs.keep(rules.workloads, [poller.view for poller in self.pollers])
            await self.signs.keep(rules.workloads)
        except LedgerError as error:
            # The cycle still ends what must end. A lease under its old name leaves a slot that only looks empty.
            log.error("ledger.unwritten", code=error.code.value, reason=error.sentence)
            return f"the ledger could not be written a moment ago: {error.sentence}"
        return ""

    def _look_after(self, rules: Rules) -> None:
        """Begin the work that follows each cycle, also a failed or an interrupted one."""
        self.billing_watch.look()
        if self._is_dry:
            return
        self.signs.look(rules.workloads)
        leases, spoken = self.ledger.recollection(self.clock.now()).leases, self._guard_reader.spoken
        self._guards.look(leases, rules.workloads, self.beside, self.clock.monotonic(), spoken)

    async def _look_beside(self, done: Pass, rules: Rules) -> None:
        """Begin the work beside the cycles that needs a good one."""
        known = self.ledger.recollection(self.clock.now())
        self.logs.look(known.leases, known.holds)
        await self._windows.keep(done.fleet)
        await self.keys.keep(done.fleet)
        self._advice.look(done.fleet, guard_targets(known, rules.workloads, self.ledger.fleet_id))
        self.demand.look(rules.workloads, rules.poll)
        self.estimates.look(rules.workloads, known, rules.tuned)
        self.fronts.see(self.config.fronts, known.leases, rules.workloads, done.plan.drained)

    def stop_writing(self, why: str) -> None:
        """Send nothing more that pays, until the program starts again."""
        log.error("writing.stopped", reason=why)
        self._stopped_because = self._stopped_because or why

    async def say(self, order: Order, who: str) -> tuple[str, list[Intent]]:
        """Record a person's order, carry it out at once, and return the result.

        Raises:
            OrderError: it cannot be understood or does not fit the fleet; nothing was changed.
            LedgerError: it could not be written down.
        """
        return await self._person_orders.give(order, who)

    async def order(self, wanted: Sequence[Release | Pause], who: str) -> list[Intent]:
        """Carry out a person's endings between two cycles; `who` goes into the ledger.

        Raises:
            LedgerError: it could not be written down that they were ordered; release and pause go on all the same.
        """
        return await self._person_orders.end(wanted, who)

    def findings(self, config: Config, *, is_start: bool = False) -> tuple[reload.Finding, ...]:
        """Return the effects of a configuration on the leases, with the findings that refuse it."""
        now = self.clock.now()
        held = reload_review.holdings(self.ledger.recollection(now), now)
        if is_start:
            return reload_review.at_start(config, held)
        return reload_review.findings(config, held, self.rules.caps, self.rules.workloads)

    def reload(self, config: Config, tuned: Mapping[str, Tuned]) -> None:
        """Swap workloads, strategies and limits as a whole; markets and the ledger stay until the next start.

        On a market that the files lack nothing is paid for, and no workload looks for capacity. Where `spend` is false
        now, nothing is paid for until a reload with true.
        """
        works = service_reach.on_kept_markets(self.config, config)
        self.rules = Rules(works, tuned, config.limits, config.poll)
        mine = self.config
        self.config = service_reach.in_force(mine, config)
        self._unpaid = {each.name: service_reach.why_unpaid(each, config) for each in mine.markets}
        for poller in self.pollers:
            poller.forbid(self._unpaid[poller.market.name])

    def billing(self) -> tuple[tuple[Lease, ...], money.UsdPerHour]:
        """Return the leases that go on billing when the program stops, and their rate per hour."""
        leases = tuple(lease for lease in self.ledger.recollection(self.clock.now()).leases if lease.is_open)
        return leases, money.total_rate(lease.billing_rate for lease in leases)

    def notices(self) -> tuple[notices.Notice, ...]:
        """Return the notices about the whole fleet as of the last cycle, such as why nothing is paid for."""
        views = self.seen.fleet.markets if self.seen is not None else {}
        stopped = self._stopped_because, self._replicas.notices()
        unpaid = notices.notices(views, *stopped, self.ledger.why_unwritable)
        return (*unpaid, *self.billing_watch.notices(), *self.fronts.notices(), *self.demand.notices())

    def doubts(self) -> list[Intent]:
        """Return the paying writes that no listing has settled: each may turn out to bill."""
        known = self.ledger.recollection(self.clock.now())
        return [intent for intent in known.intents if intent.is_open and intent.kind.is_paying]

    def most_rate(self) -> money.UsdPerHour:
        """Return the most that everything may cost an hour without another order from us."""
        return money.total_rate(lease.committed_rate for lease in self.billing()[0])

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a task beside the cycles until the program closes."""
        task = asyncio.create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def close(self) -> None:
        """Close connections and the ledger; leases go on."""
        beside = list(self._beside)
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
        if self._recorder is not None:
            self._recorder.close()
        for poller in self.pollers:
            if poller.prober is not None:
                await poller.prober.close()
        beside_pass = (self._guard_reader, self._audit, self._orders, self._advice, self.signs, self._runs)
        for part in (*beside_pass, self.logs, self.keys, self.fronts, self.demand, self.estimates):
            await part.close()
        for market in self.markets.values():
            await market.close()
        await self.ledger.close()

    def grounds(self) -> order_grounds.Grounds:
        """Return the state against which a person's order is read now."""
        now = self.clock.now()
        known = self.ledger.recollection(now)
        return order_grounds.Grounds(self.rules.workloads, tuple(self.markets), known, now)

    def _account_check(self, market: str) -> Callable[[str], str]:
        return lambda account_id: self._why_unpaid() or self._accounts.why_not(market, account_id)

    def _why_unpaid(self) -> str:
        return self._stopped_because or self._replicas.why_unpaid

    def _refusals(self) -> Mapping[str, Refusal]:
        return ending_refusals.longer(refusals(self.pollers), self._journal.ending_refusals.known())

    def _alerts_beside(self) -> tuple[Alert, ...]:
        first = (*self._replicas.alerts(), *self.signs.alerts(), *self._journal.guarded.alerts())
        return (*first, *self.fronts.alerts(), *self.demand.alerts(), *self.keys.alerts())

    def _denial(self, intent: Intent) -> str:
        if not intent.kind.begins_work:
            return ""
        if not self.ledger.is_writable:
            return self.ledger.why_unwritable
        now = self.clock.now()
        if operator_holds.kill_of_everything(self.ledger.recollection(now).holds, now) is not None:
            return "all spending was stopped by `gpubid kill` while this waited to be sent"
        return self._why_unpaid() or self._unpaid.get(intent.market, "")
