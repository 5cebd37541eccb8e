"""`make bench`: run every measurement; end with 1 when a bound does not hold."""

import asyncio
import logging
import sys

import structlog

from tests.bench import (
    cockpit,
    daemon,
    dask_pace,
    guard_upload,
    lab,
    ledgers,
    page,
    planning,
    rehearsal,
    reports,
    several_pools,
    three_markets,
    unused_market,
)


def main() -> int:
    """Measure one thing after another, so that none disturbs the next."""
    # A fleet of a thousand slots logs a thousand decisions a cycle, and the figures would be lost among them.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    verdicts = [
        planning.measure(),
        three_markets.measure(),
        rehearsal.measure(),
        lab.measure(),
        several_pools.measure(),
        dask_pace.measure(),
        asyncio.run(page.measure()),
        asyncio.run(reports.measure()),
        asyncio.run(daemon.measure()),
        asyncio.run(cockpit.measure()),
        unused_market.measure(),
        ledgers.measure(),
        guard_upload.measure(),
    ]
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
