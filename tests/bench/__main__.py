"""`make bench`: run every measurement; end with 1 when a bound does not hold."""

import asyncio
import sys

from tests.bench import cockpit, daemon, lab, page, planning, rehearsal, reports


def main() -> int:
    """Measure one thing after another, so that none disturbs the next."""
    verdicts = [
        planning.measure(),
        rehearsal.measure(),
        lab.measure(),
        asyncio.run(page.measure()),
        asyncio.run(reports.measure()),
        asyncio.run(daemon.measure()),
        asyncio.run(cockpit.measure()),
    ]
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
