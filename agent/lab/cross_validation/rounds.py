"""The rounds of a leave-one-record-out run: the table of each judged record, and how long it took."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.lab.bench.result_table import Table


@dataclass(frozen=True, slots=True)
class Round:
    """The table of one judged record, the records of its fit, wall seconds, and further figures for JSON."""

    record: str
    fitted_on: tuple[str, ...]
    table: Table
    seconds: float
    figures: Mapping[str, Any]

    def document(self) -> dict[str, Any]:
        """Return the round for JSON."""
        return {
            "record": self.record,
            "fitted_on": list(self.fitted_on),
            "seconds": self.seconds,
            **self.figures,
            "table": self.table.document(),
        }


@dataclass(frozen=True, slots=True)
class Report:
    """The rounds of a run for people: tables of cells, each with its heading first, and notes."""

    tables: tuple[Sequence[Sequence[str]], ...]
    notes: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """Return the report for JSON: its cells as text, the heading of each table first."""
        return {"tables": [[list(row) for row in table] for table in self.tables], "notes": list(self.notes)}
