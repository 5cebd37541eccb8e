"""The App on a schedule: wakes, signals, reload, health, metrics, the service manager. It stops without releasing."""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import structlog
from prometheus_client import CollectorRegistry

from agent import pass_metrics, schedule, systemd
from agent.act import bill_check, rent_terms
from agent.app import App
from agent.config import service_reach
from agent.config.files import layers
from agent.config.notify_settings import Notify
from agent.config.problems import ConfigError
from agent.config.settings import Config
from agent.cycle import Pass
from agent.decide.operators.notices import Notice
from agent.decide.strategy import Tuned
from agent.domain.record.event_kind import LoggedKind
from agent.ledger.ledger_errors import Code, LedgerError
from agent.notify import channels
from agent.notify.dispatcher import Dispatcher
from agent.telemetry.health import Health
from agent.telemetry.metric_updates import Metrics
from agent.web import operator_socket
from agent.web.feed import feed_routes
from agent.web.feed.live_feed import LiveFeed
from agent.web.reading import reload_json
from agent.web.reading.reload_json import Reloaded
from agent.web.site import site

log = structlog.get_logger("gpubid.daemon")

SOON_SECONDS = 2.0
"""After a write the next cycle follows soon, because its effect is worth seeing."""
LAST_ROUND_SECONDS = 5.0
"""How long the last notifications of a daemon may delay its end."""


@dataclass(slots=True)
class Parts:
    """The parts of a daemon besides the App."""

    metrics: Metrics
    registry: CollectorRegistry
    notifier: systemd.Notifier
    read: Callable[[], tuple[Config, Mapping[str, Tuned]]]
    on_ready: Callable[[str], None] = lambda _: None
    credential: Callable[[str], str] = rent_terms.none
    """Returns a credential by its name, for the channels of [notify]."""
    webhook_secret: Callable[[], str] | None = None
    """Returns the secret with which the market signs its webhooks; None refuses all webhooks."""
    token: Callable[[], str] | None = None
    """Returns the token that allows orders through the page; None allows nobody."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    stop: asyncio.Event = field(default_factory=asyncio.Event)


_WAITED_FOR = frozenset({Code.UNWRITABLE, Code.UNLED})
"""Errors of a cycle that a restart would meet too. It would also end what this process still owes the ledger."""


def seconds_to_next(done: Pass, search_delay: float | None) -> float | None:
    """Return after how many seconds the next cycle should begin, or None if the pace of the poll suffices.

    `search_delay` has the seconds until a market takes a search that this cycle left.
    """
    if done.is_busy:
        return SOON_SECONDS
    return None if search_delay is None else max(search_delay, SOON_SECONDS)


class Daemon:
    """Runs cycles until it is stopped."""

    def __init__(self, app: App, parts: Parts) -> None:
        """Run `app`; nothing starts before `run`."""
        self._app = app
        self._parts = parts
        self._health = Health(app.clock.monotonic, "" if app.ledger.leader() is None else "leader")
        self._must_tidy = False
        self._is_ready = False
        self._figures = pass_metrics.Figures(parts.metrics)
        if self._health.role:
            parts.metrics.lead.follow(*pass_metrics.lead_of(app))
        notify = app.config.notify
        ways, see = self._channels(notify), parts.metrics.see_notification
        self._dispatcher = Dispatcher(app.ledger, app.clock, notify, ways, see, self._is_time_known)
        self._patience: asyncio.Timeout | None = None
        token, secret = parts.token, parts.webhook_secret
        self._feed = LiveFeed(app, self)
        wake = parts.wake.set
        self._server = site(
            app, parts.registry, self._health, wake, token=token, webhook_secret=secret, feed=self._feed
        )
        place = operator_socket.path_of(app.ledger.path, app.config.runtime)
        self._reloaded = Reloaded(str(app.config.file), app.config.digest)
        routes = feed_routes.routes(self._feed)
        self._socket = operator_socket.OperatorSocket(place, app, wake, app.config.operators, self, routes)
        poll, patience = app.config.poll, parts.notifier.watchdog_seconds
        self._clockwork = schedule.Clockwork(poll, wake, self._tidy_soon, self._beat, patience)
        self._expect_cycles()

    async def run(self) -> None:
        """Serve, cycle, and stop on SIGTERM or SIGINT; SIGHUP reloads.

        Raises:
            ListenError: the address of [web] or the operator's socket cannot be served.
            LedgerError: the key turned out to be of another account; nothing more is done with it.
        """
        parts = self._parts
        # Before the page is served: a zero would say that the files were refused, or that the ledger's disk is full.
        parts.metrics.see_reload(self._app.clock.now(), is_good=True)
        self._show(lambda: self._figures.see_ledger(self._app))
        async with contextlib.AsyncExitStack() as open_parts:
            host, port = await self._server.start()
            open_parts.push_async_callback(self._server.close)
            await self._socket.start()
            open_parts.push_async_callback(self._socket.close)
            self._listen_to_signals()
            self._clockwork.start()
            open_parts.callback(self._clockwork.shutdown)
            parts.wake.set()
            self._app.beside(self._dispatcher.run())
            try:
                await self._loop(f"http://{host}:{port}")
            except LedgerError as error:
                # A deposed daemon leaves them to its successor, which would send them a second time.
                if error.code is not Code.DEPOSED:
                    await self._dispatcher.finish(LAST_ROUND_SECONDS)
                raise
            finally:
                self.stop()

    def stop(self) -> None:
        """Stop after the present cycle; a cycle that only reads is interrupted soon, and sent writes are resolved."""
        if not self._parts.stop.is_set():
            self._stopping()
        self._parts.stop.set()
        self._parts.wake.set()
        if self._patience is not None:
            self._patience.reschedule(asyncio.get_running_loop().time() + schedule.STOP_PATIENCE_SECONDS)

    @property
    def refused(self) -> Sequence[str]:
        """Why the last reload was refused; empty where it was applied."""
        return [str(problem) for problem in self._reloaded.problems]

    def late(self) -> Sequence[str]:
        """Return the jobs that are past their deadline, as sentences."""
        return [str(late) for late in self._health.late()]

    def reload(self) -> Reloaded:
        """Read the files again; take them as a whole, or keep the last good ones. Return the result."""
        parts, app = self._parts, self._app
        parts.notifier.reloading(app.clock.monotonic())
        file = str(app.config.file)
        try:
            notes = self._take(*parts.read())
            self._reloaded = Reloaded(file, app.config.digest, notes=tuple(notes))
        except ConfigError as error:
            for problem in error.problems:
                log.error(LoggedKind.CONFIG_REFUSED, problem=str(problem))
            self._reloaded = Reloaded(file, app.config.digest, error.problems)
        except Exception:
            # Whatever the reading raises, the daemon continues with its present numbers.
            log.exception(LoggedKind.CONFIG_REFUSED, problem="a defect of gpubid itself")
            self._reloaded = Reloaded(file, app.config.digest, (reload_json.defect(file),))
        parts.metrics.see_reload(app.clock.now(), is_good=self._reloaded.is_applied)
        parts.notifier.ready("running")
        self._feed.changed()
        parts.wake.set()
        return self._reloaded

    def _take(self, config: Config, tuned: Mapping[str, Tuned]) -> list[Notice]:
        """Run on these files from now on, and return what a person should know about the changes."""
        app, before = self._app, self._app.config
        findings = app.findings(config)
        refused = [each for each in findings if each.is_refusal]
        if refused:
            read = layers.read(config.file)
            raise ConfigError(read.problem(tuple(each.key.split(".")), each.code, each.sentence) for each in refused)
        for each in findings:
            log.warning(LoggedKind.CONFIG_NOTED, about=each.key, code=each.code, reason=each.sentence)
        shortfalls = list(service_reach.shortfalls(before, config))
        for short in shortfalls:
            log.warning(short.event, about=short.about, reason=short.sentence)
        app.reload(config, tuned)
        if config.notify != before.notify:
            self._dispatcher.use(config.notify, self._channels(config.notify))
        if config.poll != before.poll:
            self._clockwork.repoll(config.poll)
            self._expect_cycles()
        # A whole digest would look like a key and be removed from the log.
        log.info(LoggedKind.CONFIG_RELOADED, digest=config.digest[:16])
        noted = [Notice(each.key, each.code, each.sentence) for each in findings]
        return [*noted, *(Notice(short.about, short.event, short.sentence) for short in shortfalls)]

    def _is_time_known(self) -> bool:
        seen = self._app.seen
        return seen is None or not seen.fleet.is_clock_doubted

    def _channels(self, notify: Notify) -> dict[str, channels.Channel]:
        return channels.channels(notify, self._parts.credential, self._app.clock)

    def _expect_cycles(self) -> None:
        self._health.expect("cycle", self._app.config.poll.total_seconds() * schedule.CYCLE_DEADLINE_POLLS)

    def _be_ready(self, url: str) -> None:
        """Report once that the daemon listens; /readyz says whether it has seen the market."""
        if self._is_ready or self._parts.stop.is_set():
            return
        self._is_ready = True
        self._parts.notifier.ready("running")
        self._parts.on_ready(url)

    def _stopping(self) -> None:
        self._health.stopping()
        self._feed.close()
        self._parts.notifier.stopping("stopping; leases go on billing")

    async def _loop(self, url: str) -> None:
        parts = self._parts
        soon = asyncio.get_running_loop().call_later(schedule.READY_AFTER_SECONDS, self._be_ready, url)
        while True:
            await parts.wake.wait()
            parts.wake.clear()
            if parts.stop.is_set():
                soon.cancel()
                return
            done = await self._cycle()
            # A cycle that failed may have recorded events too.
            self._dispatcher.wake()
            self._health.started()
            self._be_ready(url)
            after = None if done is None else seconds_to_next(done, self._app.search_delay)
            if after is not None:
                asyncio.get_running_loop().call_later(after, parts.wake.set)
            if self._must_tidy:
                self._must_tidy = False
                await self._tidy()
                self._app.beside(self._compare_bills())

    async def _cycle(self) -> Pass | None:
        clock, metrics = self._app.clock, self._parts.metrics
        began = clock.monotonic()
        try:
            async with asyncio.timeout(None) as self._patience:
                done = await self._app.cycle()
        except LedgerError as error:
            log.error("cycle.failed", code=error.code.value, reason=error.sentence)
            if error.code in {Code.WRONG_ACCOUNT, Code.DEPOSED}:
                raise
            if error.code in _WAITED_FOR:
                self._health.went_on("cycle")
            metrics.see_cycle(clock.monotonic() - began, clock.now(), is_good=False)
            self._show(lambda: self._figures.see_ledger(self._app))
            return None
        except Exception as error:
            if isinstance(error, TimeoutError) and self._parts.stop.is_set():
                log.warning("cycle.interrupted", reason="stopped while it waited for the market")
                return None
            # A defect in one cycle must not end the daemon: leases still need watching; the health shows the defect.
            log.exception("cycle.failed", code="bug")
            metrics.see_cycle(clock.monotonic() - began, clock.now(), is_good=False)
            self._show(lambda: self._figures.see_ledger(self._app))
            return None
        finally:
            self._patience = None
            self._feed.changed()
        self._health.progressed("cycle")
        metrics.see_cycle(clock.monotonic() - began, clock.now(), is_good=True)
        self._show(lambda: self._figures.see(self._app, done))
        return done

    def _show(self, write: Callable[[], None]) -> None:
        """Write metrics. A defect in them must not end the daemon: leases still need watching."""
        try:
            write()
        except Exception:
            log.exception("metrics.failed")

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(signal.SIGHUP, self.reload)

    async def _tidy(self) -> None:
        """Delete old rows. What cannot be deleted now is left to the next night: leases still need watching."""
        try:
            await self._app.ledger.tidy()
        except LedgerError as error:
            log.error("ledger.untidied", code=error.code.value, reason=error.sentence)

    async def _compare_bills(self) -> None:
        """Compare past days with the markets' bills, beside the cycles: a bill may take time."""
        app = self._app
        try:
            await bill_check.reconcile(app.ledger, app.markets, app.clock.now())
            await app.billing_watch.read_bills()
        except LedgerError as error:
            log.error("bills.uncompared", code=error.code.value, reason=error.sentence)

    def _tidy_soon(self) -> None:
        self._must_tidy = True

    def _beat(self) -> None:
        if self._health.is_alive:
            self._parts.notifier.watchdog()
