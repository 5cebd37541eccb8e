"""A daemon that stands by: it watches who leads, answers who that is, and ends when it leads itself.

1. It holds no pollers, sends nothing to a market, and writes nothing to the ledger.
2. A server that does not answer is waited for, at the start too: after a blackout a box is often up before it, and a
   service manager gives a program up that ends a few times.
"""

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING

import structlog
from prometheus_client import CollectorRegistry

from agent import systemd
from agent.clock import Clock
from agent.config.settings import Config
from agent.ledger.ledger_errors import Code, LedgerError
from agent.telemetry import metric_families
from agent.telemetry.health import Health
from agent.telemetry.lead_metrics import LeadFigures
from agent.web import operator_socket, standby_site
from agent.web.standby_site import LastLook

if TYPE_CHECKING:
    from agent.ledger.server.campaign import Campaign

log = structlog.get_logger("gpubid.standby")

LOOK_SECONDS = 1.0
LATE_SECONDS = 60.0
"""A look that has not ended after so long is stuck: its session has far shorter deadlines."""
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
    ) -> None:
        """Serve on the addresses of `config`; nothing starts before `run`."""
        self._config, self._campaign = config, campaign
        self._notifier, self._clock = notifier, clock
        self._registry = registry
        self._health = Health(clock.monotonic, "standby")
        self._health.expect("look", LATE_SECONDS)
        self._last_look = LastLook()
        self._is_told_again = False
        self._is_told = ""
        metric_families.show_version(registry)
        figures = LeadFigures(registry)
        figures.follow(lambda: 0.0, lambda: self._last_look.since_seconds, lambda: self._last_look.beat_seconds)

    async def run(self) -> bool:
        """Return True once this daemon leads, or False after a SIGHUP: then its files are to be read again.

        Raises:
            LedgerError: the machine's small files are of another fleet, or the ledger is damaged.
            ListenError: the address of [web] or the operators' socket cannot be served.
        """
        if await self._looked(0.0):
            return True
        async with contextlib.AsyncExitStack() as open_parts:
            open_parts.callback(self._campaign_over)
            await self._serve(open_parts)
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._read_again)
            open_parts.callback(signal.signal, signal.SIGHUP, signal.SIG_IGN)
            open_parts.callback(asyncio.get_running_loop().remove_signal_handler, signal.SIGHUP)
            self._notifier.ready(self._last_look.sentence)
            while not self._is_told_again:
                if await self._looked():
                    return True
            return False

    def _read_again(self) -> None:
        self._is_told_again = True
        self._campaign.wake()

    def _campaign_over(self) -> None:
        if not self._campaign.has_won:
            self._campaign.close()

    async def _serve(self, open_parts: contextlib.AsyncExitStack) -> None:
        config, monotonic = self._config, self._clock.monotonic
        server = standby_site.server(config.listen, self._registry, self._health, lambda: self._last_look, monotonic)
        await server.start()
        open_parts.push_async_callback(server.close)
        place = operator_socket.path_of(config.ledger, config.runtime)
        socket = standby_site.StandbySocket(place, config.operators, lambda: self._last_look, monotonic)
        await socket.start()
        open_parts.push_async_callback(socket.close)

    async def _looked(self, wait: float = LOOK_SECONDS) -> bool:
        """Look once after so many seconds, and return whether this daemon leads now."""
        frozen = self._campaign.frozen
        try:
            leader = await asyncio.get_running_loop().run_in_executor(None, self._campaign.look, wait)
            self._last_look = LastLook(leader)
        except asyncio.CancelledError:
            self._campaign.wake()
            raise
        except LedgerError as error:
            if error.code not in _WAITED_FOR:
                raise
            self._last_look = LastLook(None, error.sentence)
        if self._campaign.frozen is not frozen and self._campaign.frozen is not None:
            log.warning("leader.frozen", host=self._campaign.frozen.host, epoch=self._campaign.frozen.epoch)
        self._tell()
        self._health.progressed("look")
        self._notifier.watchdog()
        return self._campaign.has_won

    def _tell(self) -> None:
        """Log and report a change of the leader."""
        about = "this daemon leads" if self._campaign.has_won else self._last_look.about
        if about == self._is_told:
            return
        self._is_told = about
        (log.warning if self._last_look.trouble else log.info)("lead.seen", reason=about)
        self._notifier.status(about)
