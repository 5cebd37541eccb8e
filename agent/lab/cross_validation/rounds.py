"""The rounds of a leave-one-record-out run: the table of each judged record, and how long it took."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.lab.bench.result_table import Table


@dataclass(frozen=True, slots=True)
class Round:
    """The table of one judged record, the records of its fit, further figures by name, and wall seconds."""

    record: str
    fitted_on: tuple[str, ...]
    table: Table
    seconds: float
    figures: Mapping[str, float] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return the round for JSON."""
        return {
            "record": self.record,
            "fitted_on": list(self.fitted_on),
            "seconds": self.seconds,
            **self.figures,
            "table": self.table.document(),
        }
