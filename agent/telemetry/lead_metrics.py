"""The metrics of the lead: whether this daemon leads, and the start and the last beat of the present leader."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Gauge

from agent import __version__


class LeadFigures:
    """Three gauges, read at each scrape: a cycle that hangs must not keep an old answer."""

    def __init__(self, target: CollectorRegistry) -> None:
        """Register the gauges. A daemon whose ledger is a file always leads."""
        self._leads = Gauge(
            "gpubid_leads",
            "Whether this daemon can show that it leads its fleet; 1 where the ledger is a file.",
            ("fleet",),
            registry=target,
        )
        self._fleet, self._shown = "", lambda: 1.0
        self._since = Gauge(
            "gpubid_leader_since_timestamp_seconds",
            "Since when the present leader leads; 0 where the ledger is a file, or if no leader is seen.",
            registry=target,
        )
        self._beat = Gauge(
            "gpubid_leader_beat_timestamp_seconds",
            "When the leader wrote the last beat that is known; 0 where the ledger is a file, or if no leader is seen.",
            registry=target,
        )
        self.of("")

    def of(self, fleet: str) -> None:
        """Name the fleet whose lead it is. A standby knows it once it has seen its ledger; until then it is empty."""
        self._leads.clear()
        self._fleet = fleet
        self._leads.labels(fleet).set_function(self._shown)

    def follow(self, leads: Callable[[], float], since: Callable[[], float], beat: Callable[[], float]) -> None:
        """Read the figures from now on from these functions; the last two return seconds since 1970."""
        self._shown = leads
        self.of(self._fleet)
        self._since.set_function(since)
        self._beat.set_function(beat)


def show_version(target: CollectorRegistry) -> None:
    """Register the running version for a standby, which has none of the other metrics of the program."""
    Gauge("gpubid_build_info", "The running version.", ("version",), registry=target).labels(__version__).set(1)
