"""Checks before a run: a message for every job that cannot run, with the option to change."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from agent.config.problems import ConfigError, Problem
from agent.lab.bench.comparison import NotComparable
from agent.lab.deadline.deadline_jobs import Setting
from agent.lab.jobs.trace_windows import Prices
from agent.lab.traces.trace_files import Trace


def check_settings(settings: Iterable[Setting], hours: float) -> None:
    """Raise if a job cannot be done at all, or is cut off by the end of its window.

    Raises:
        NotComparable: its message says which option to change.
    """
    for each in settings:
        work, allowed, overhead = (seconds / 3600 for seconds in (each.work, each.allowed, each.overhead))
        if allowed > hours:
            sentence = f"a deadline of {allowed:g} h is longer than --window-hours {hours:g}; name longer windows"
            raise NotComparable("short_window", sentence)
        if each.work + each.overhead > each.allowed:
            sentence = f"{work:g} h of work and a start of {overhead:g} h do not fit into {allowed:g} h; allow more"
            raise NotComparable("impossible", sentence)


def check_trace(folder: Path, trace: Trace, stride_hours: float, prices: Prices) -> None:
    """Raise if a pool's ticks have no price, or are longer than the stride.

    Raises:
        ConfigError: a price is not known.
        NotComparable: windows would begin within the same tick.
    """
    if stride_hours * 3600 < trace.gap_seconds:
        least = f"a tick of {trace.pool} has {trace.gap_seconds / 3600:.3g} h"
        raise NotComparable("short_stride", f"--stride-hours {stride_hours:g} is too short: {least}; name as much")
    for given, own, word in (
        (prices.spot, trace.spot_prices, "spot"),
        (prices.on_demand, trace.on_demand_prices, "on-demand"),
    ):
        missing = int(np.isnan(own).sum()) if given is None else 0
        if missing:
            how_many = "all" if missing == trace.ticks else f"{missing:,}"
            sentence = f"{how_many} of its {trace.ticks:,} ticks have no {word} price; name one with --{word}-price"
            raise ConfigError([Problem(str(folder), 1, trace.pool, "no_price", sentence)])
