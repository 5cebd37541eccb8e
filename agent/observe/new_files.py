"""New files as the reload judges them against the leases (rule 9)."""

from collections.abc import Mapping
from datetime import datetime

from agent.config.run_times import run_calendar
from agent.config.settings import Config
from agent.decide.operators import reload


def after(config: Config, ran_micros: Mapping[str, int], now: datetime) -> reload.After:
    """Return a configuration, as far as it concerns leases, with the ledger's running time of ended leases."""
    markets, works = frozenset(market.name for market in config.markets), config.workloads
    windows = {work.name: run_calendar.now(work.windows, now) for work in works if work.windows}
    return reload.After(works, markets, config.limits, ran_micros, windows)
