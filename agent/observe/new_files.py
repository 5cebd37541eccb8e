"""New files as the reload judges them against the leases (rule 9)."""

from collections.abc import Mapping

from agent.config.settings import Config
from agent.decide.operators import reload


def after(config: Config, ran_micros: Mapping[str, int]) -> reload.After:
    """Return a configuration, as far as it concerns leases, with the ledger's running time of ended leases."""
    markets = frozenset(market.name for market in config.markets)
    return reload.After(config.workloads, markets, config.limits, ran_micros)
