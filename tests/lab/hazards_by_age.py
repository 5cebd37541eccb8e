"""`python -m tests.lab.hazards_by_age FOLDER`: losses an hour by age, seen and expected by regimes of other records.

FOLDER has one folder of trace files for each record, as for `gpubid lab cross-validate`. As where `gpubid lab fit`
judges regimes, a belief follows each pool for three days and then begins again.
"""

import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from agent.decide.deadline import regimes
from agent.decide.deadline.regimes import Array, Regimes
from agent.lab.cross_validation import pools_rounds, trace_records
from agent.lab.deadline.hazard_fitting import Sight
from agent.lab.pools import regime_fitting

SINCE = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""The ages in hours at which the columns begin."""
SLACK = 1e-9
"""An age is a sum of gaps, so it may be a little less than it should be."""


def counted(known: Regimes, sights: Sequence[Sight]) -> Array:
    """Return losses seen, losses expected and hours with capacity, (3, columns), by hours since capacity came."""
    found = np.zeros((3, len(SINCE)))
    for sight in sights:
        length = max(int(regime_fitting.SCORED_HOURS / sight.gap_hours), 2)
        for first in range(0, len(sight.is_up) - 1, length):
            _follow(known, sight.is_up[first : first + length].tolist(), sight.gap_hours, found)
    return found


def of_records(root: Path) -> Array:
    """Return the counts over all records below a folder, each with regimes of the others."""
    total = np.zeros((3, len(SINCE)))
    for judged, others in trace_records.left_out(trace_records.read(root), ()):
        known = regime_fitting.fit(_sights(others))
        total += counted(known, _sights([judged]))
    return total


def lines(found: Array) -> list[str]:
    """Return the rows of the table."""
    seen, expected, hours = found
    ages = [*(f"{low:g} to {high:g}" for low, high in pairwise(SINCE)), f"over {SINCE[-1]:g}"]
    rows = {"hours since capacity came": ages}
    for name, losses in {"expected": expected, "seen": seen}.items():
        rows[name] = [f"{lost / over:.3f}" if over else "-" for lost, over in zip(losses, hours, strict=True)]
    return [f"| {' | '.join([name, *cells])} |" for name, cells in rows.items()]


def _sights(records: Sequence[trace_records.Record]) -> list[Sight]:
    return regime_fitting.sights([each.folder for each in records], pools_rounds.MOST_INSTANCES)


def _follow(known: Regimes, looks: Sequence[bool], gap: float, found: Array) -> None:
    belief = regimes.first(known, is_up=looks[0])
    for is_up in looks[1:]:
        if belief.is_up:
            column = int(np.searchsorted(SINCE, belief.age + SLACK, side="right")) - 1
            found[:, column] += not is_up, belief.rate(known) * gap, gap
        belief = regimes.observe(known, belief, is_up=is_up, hours=gap)


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in lines(of_records(Path(sys.argv[1]))))
