"""A table of strategies: as JSON, as CSV, and as rows for a terminal."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agent.lab.bench import figure_gaps, interval

PERCENTILES = (0, 5, 25, 50, 75, 95, 100)
NESTED = {"ci95_vs_baseline", "cost_percentiles", "figures", "figure_differences"}
"""Parts of a document that do not fit into a line of CSV."""


@dataclass(frozen=True, slots=True)
class Row:
    """One strategy: mean dollars, late runs, the mean paired difference to the baseline and its 95 % interval.

    `costs` are the dollars of each case, in the order of the cases. `digest` is of the strategy's numbers. `against` is
    the baseline of the difference, for most rows the table's own. `fitted_on` names the records of the cases that were
    used to fit the numbers. A row with such records proves nothing.
    """

    strategy: str
    mean_cost: float
    ratio_to_optimum: float
    late: int
    difference: float
    interval: tuple[float, float]
    wall_seconds: float
    digest: str
    costs: tuple[float, ...]
    figures: Mapping[str, float]
    against: str = ""
    fitted_on: tuple[str, ...] = ()
    gaps: Mapping[str, figure_gaps.Gap] = field(default_factory=dict)
    """The paired differences of further figures to those of `against`."""

    @property
    def percentiles(self) -> dict[str, float]:
        """The dollars below which each percentage of the feasible runs stayed."""
        costs = np.array([cost for cost in self.costs if math.isfinite(cost)])
        return {f"{share}": float(np.percentile(costs, share)) for share in PERCENTILES} if len(costs) else {}


@dataclass(frozen=True, slots=True)
class Table:
    """A bench's result, with everything that is needed to repeat it. `blocks` counts the clusters of the intervals."""

    problem: str
    runs: int
    baseline: str
    seed: int
    draws: int
    about: Mapping[str, object]
    rows: tuple[Row, ...]
    blocks: int = 0

    def document(self) -> dict[str, Any]:
        """Return the table for JSON."""
        return {
            "problem": self.problem,
            **self.about,
            "runs": self.runs,
            "baseline": self.baseline,
            "seed": self.seed,
            "bootstrap_draws": self.draws,
            "blocks": self.blocks,
            "strategies": [_document(row) for row in self.rows],
        }

    def lines(self) -> list[list[str]]:
        """Return the cells as text, the heading first."""
        figures = list(dict.fromkeys(key for row in self.rows for key in row.figures))
        gaps = list(dict.fromkeys(key for row in self.rows for key in row.gaps))
        compared = [f"{key} less {self.baseline}, 95 %" for key in gaps]
        heading = [
            "strategy",
            "mean $",
            "/ optimum",
            "late",
            f"less {self.baseline}",
            "95 %",
            *figures,
            *compared,
            "wall s",
        ]
        return [
            heading,
            *(
                [
                    *self._cells(row),
                    *(_figure(row, key) for key in figures),
                    *(row.gaps[key].text if key in row.gaps else "" for key in gaps),
                    _wall(row),
                ]
                for row in self.rows
            ),
        ]

    def notes(self) -> list[str]:
        """Return the notes on the table's limits as proof."""
        found = []
        if self.blocks < interval.FEWEST:
            few = f"{self.blocks} independent block{'s' if self.blocks != 1 else ''}"
            found.append(f"95 % not known: these runs are of {few}, and an interval needs {interval.FEWEST}")
        fitted = {row.strategy: ", ".join(row.fitted_on) for row in self.rows if row.fitted_on}
        if fitted:
            names = "; ".join(f"{name} on {records}" for name, records in fitted.items())
            found.append(f"* numbers fitted on these very data, so no proof: {names}")
        return found

    def _cells(self, row: Row) -> list[str]:
        ratio, difference = f"{row.ratio_to_optimum:.3f}", f"{row.difference:+.3f}"
        if row.against not in {"", self.baseline}:
            difference += f" (less {row.against})"
        name = f"{row.strategy} *" if row.fitted_on else row.strategy
        return [name, f"{row.mean_cost:.3f}", ratio, str(row.late), difference, interval.as_text(row.interval)]


def csv_text(tables: Sequence[Table]) -> str:
    """Return tables as one CSV, with a line for each strategy. The columns that differ between tables come first."""
    apart = [key for key in tables[0].about if len({str(table.about.get(key)) for table in tables}) > 1]
    rows = [{**{key: table.about.get(key) for key in apart}, **_flat(row)} for table in tables for row in table.rows]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(key for row in rows for key in row)), restval="")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _document(row: Row) -> dict[str, Any]:
    figures = {key: _finite(value) for key, value in row.figures.items()}
    return {
        "strategy": row.strategy,
        "mean_cost": _finite(row.mean_cost),
        "ratio_to_optimum": _finite(row.ratio_to_optimum),
        "late": row.late,
        "difference_vs_baseline": _finite(row.difference),
        "ci95_vs_baseline": interval.plain(row.interval),
        "wall_seconds": row.wall_seconds,
        "digest": row.digest,
        "against": row.against,
        "fitted_on": list(row.fitted_on),
        "cost_percentiles": row.percentiles,
        **({"figures": figures} if figures else {}),
        **({"figure_differences": {key: gap.document() for key, gap in row.gaps.items()}} if row.gaps else {}),
    }


def _finite(value: float) -> float | None:
    """Return a number for JSON, or None for an infinite one, which no price reaches."""
    return value if math.isfinite(value) else None


def _flat(row: Row) -> dict[str, Any]:
    kept = {key: value for key, value in _document(row).items() if key not in NESTED}
    kept["fitted_on"] = "; ".join(row.fitted_on)
    low, high = interval.plain(row.interval)
    return kept | {"ci95_low": low, "ci95_high": high, **row.figures}


def _figure(row: Row, key: str) -> str:
    return f"{row.figures[key]:.4g}" if key in row.figures else ""


def _wall(row: Row) -> str:
    return f"{row.wall_seconds:.2f}"
