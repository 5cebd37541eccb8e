"""A daemon that stands by: it watches who leads, answers who that is, and ends when it leads itself.

1. It holds no pollers, sends nothing to a market, and writes nothing to the ledger.
2. It reads once a minute whether it could open the ledger, and whether its files would keep every open lease. If not,
   it says so before a failover.
3. A server that does not answer is waited for, at the start too: after a blackout a box is often up before it, and a
   service manager gives a program up that ends a few times.
"""

import asyncio
import contextlib
import math
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog
from prometheus_client import CollectorRegistry

from agent import systemd
from agent.clock import Clock
from agent.config.files import layers
from agent.config.problems import ConfigError
from agent.config.settings import Config
from agent.domain.record.event_kind import LoggedKind
from agent.ledger.file import sidecar
from agent.ledger.leader import Leader
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.reader import open_reader
from agent.ledger.storage_port import Storage
from agent.observe import reload_review
from agent.telemetry import lead_metrics
from agent.telemetry.health import Health
from agent.web import operator_socket, standby_site, web_server
from agent.web.reading.reload_json import Reloaded
from agent.web.standby_site import LastLook

if TYPE_CHECKING:
    from agent.ledger.server.campaign import Campaign

log = structlog.get_logger("gpubid.standby")

LOOK_SECONDS = 1.0
LATE_SECONDS = 60.0
"""A look that has not ended after so long is stuck: its session has far shorter deadlines."""
JUDGED_SECONDS = 60.0
"""How often the open leases are read: a failover is rare, and so is a change of slots."""
_COMPLETED = frozenset({Code.MISSING, Code.OLDER_SCHEMA})
"""Tables that whoever takes the lead creates or upgrades."""
_WAITED_FOR = frozenset({Code.UNREACHABLE, Code.UNWRITABLE})


class Standby:
    """Stands by for the ledger of a campaign."""

    def __init__(
        self,
        config: Config,
        campaign: "Campaign",
        registry: CollectorRegistry,
        notifier: systemd.Notifier,
        clock: Clock,
        read: Callable[[], Config],
    ) -> None:
        """Serve on the addresses of `config`; nothing starts before `run`.

        `read` reads the files of `config` again, or raises ConfigError.
        """
        self._config, self._campaign, self._read = config, campaign, read
        self._notifier, self._clock = notifier, clock
        self._registry = registry
        self._health = Health(clock.monotonic, "standby")
        self._health.expect("look", LATE_SECONDS)
        self._last_look = LastLook()
        self._unfit, self._judged_at = "", -math.inf
        self._is_told_again = self._has_looked = False
        self._is_told = ""
        lead_metrics.show_version(registry)
        self._figures = lead_metrics.LeadFigures(registry)
        self._figures.follow(lambda: 0.0, lambda: self._last_look.since_seconds, lambda: self._last_look.beat_seconds)

    async def run(self) -> bool:
        """Return True once this daemon leads, or False after a reload: then its files are to be read again.

        Raises:
            CredentialError: the password of the ledger is missing at the start.
            LedgerError: the machine's small files are of another fleet, or the ledger is damaged.
            ListenError: the address of [web] or the operators' socket cannot be served.
        """
        if await self._looked(0.0):
            return True
        async with contextlib.AsyncExitStack() as open_parts:
            open_parts.callback(self._campaign_over)
            await self._serve(open_parts)
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._reload)
            open_parts.callback(signal.signal, signal.SIGHUP, signal.SIG_IGN)
            open_parts.callback(asyncio.get_running_loop().remove_signal_handler, signal.SIGHUP)
            self._notifier.ready(self._last_look.sentence)
            while not self._is_told_again:
                if await self._looked():
                    return True
            return False

    def _reload(self) -> None:
        for problem in self._reloaded().problems:
            log.error(LoggedKind.CONFIG_REFUSED, problem=str(problem))

    def _reloaded(self) -> Reloaded:
        """Read the files, and begin anew with them if they are good."""
        file = str(self._config.file)
        try:
            config = self._read()
            self._refuse_unserved(config)
        except ConfigError as error:
            return Reloaded(file, self._config.digest, error.problems)
        self._is_told_again = True
        self._campaign.wake()
        return Reloaded(file, config.digest)

    def _refuse_unserved(self, config: Config) -> None:
        """Refuse a new address of the page that another program has: this standby would end."""
        mine, wanted = self._config.listen, config.listen
        if (wanted.host, wanted.port) == (mine.host, mine.port):
            return
        try:
            # This standby has its own port, on another of the machine's addresses.
            web_server.refuse_unserved(wanted.host, 0 if wanted.port == mine.port else wanted.port)
        except web_server.ListenError as error:
            problem = layers.read(config.file).problem(("web", "listen"), error.code, str(error))
            raise ConfigError([problem]) from None

    def _campaign_over(self) -> None:
        if not self._campaign.has_won:
            self._campaign.close()

    async def _serve(self, open_parts: contextlib.AsyncExitStack) -> None:
        config, monotonic = self._config, self._clock.monotonic
        server = standby_site.server(config.listen, self._registry, self._health, lambda: self._last_look, monotonic)
        await server.start()
        open_parts.push_async_callback(server.close)
        place = operator_socket.path_of(config.ledger, config.runtime)
        socket = standby_site.StandbySocket(place, config.operators, lambda: self._last_look, self._reloaded, monotonic)
        await socket.start()
        open_parts.push_async_callback(socket.close)

    async def _looked(self, wait: float = LOOK_SECONDS) -> bool:
        """Look once after so many seconds, and return whether this daemon leads now."""
        frozen = self._campaign.frozen
        self._figures.of(sidecar.read_fleet_id(self._config.ledger) or "")
        try:
            leader = await asyncio.get_running_loop().run_in_executor(None, self._campaign.look, wait)
            self._last_look = LastLook(leader, unfit=await self._judged(leader))
        except asyncio.CancelledError:
            self._campaign.wake()
            raise
        except (LedgerError, systemd.CredentialError) as error:
            if not self._is_waited_for(error):
                raise
            self._last_look = LastLook(None, str(error))
        self._has_looked = True
        if self._campaign.frozen is not frozen and self._campaign.frozen is not None:
            log.warning("leader.frozen", host=self._campaign.frozen.host, epoch=self._campaign.frozen.epoch)
        self._tell()
        self._health.progressed("look")
        self._notifier.watchdog()
        return self._campaign.has_won

    def _is_waited_for(self, error: LedgerError | systemd.CredentialError) -> bool:
        """Return whether an error may pass. A password that is missing at the start is a mistake, later a rotation."""
        return error.code in _WAITED_FOR if isinstance(error, LedgerError) else self._has_looked

    async def _judged(self, leader: Leader | None) -> str:
        """Return why this box could not take over; empty if it could, or nobody leads."""
        now = self._clock.monotonic()
        if leader is None or now - self._judged_at < JUDGED_SECONDS:
            return "" if leader is None else self._unfit
        self._judged_at = now
        try:
            self._unfit = await _unfit(self._config, self._campaign.storage, self._clock)
        except (LedgerError, systemd.CredentialError) as error:
            # The look before had its answer, so this is not a server that is away.
            self._unfit = str(error)
        return self._unfit

    def _tell(self) -> None:
        """Log and report a change of the leader."""
        about = "this daemon leads" if self._campaign.has_won else self._last_look.about
        if about == self._is_told:
            return
        self._is_told = about
        is_trouble = bool(self._last_look.trouble or self._last_look.unfit) and not self._campaign.has_won
        (log.warning if is_trouble else log.info)("lead.seen", reason=about)
        self._notifier.status(about)


async def _unfit(config: Config, place: Storage, clock: Clock) -> str:
    """Return why a daemon of this program with these files would not start on the ledger; empty if it would.

    Raises:
        LedgerError: the ledger cannot be opened.
    """
    try:
        reader = await open_reader(place)
    except LedgerError as error:
        if error.code in _COMPLETED:
            return ""
        raise
    try:
        now = clock.now()
        found = reload_review.at_start(config, reload_review.holdings(await reader.recollection(now), now))
    finally:
        await reader.close()
    # Each sentence ends with the order that would end a lease, which nobody should give for a failover.
    shown = [f"{config.file}: {each.key}: {each.sentence.partition('; ')[0]}" for each in found]
    more = f", and {len(shown) - 1} more" if len(shown) > 1 else ""
    return f"{shown[0]}{more}: give this box the leader's files and reload it" if shown else ""
