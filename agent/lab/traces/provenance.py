"""The public records on which shipped numbers were fitted, and whether traces are of the same days.

A trace has its pool and its span, and is of a record if both overlap. The name of its folder does not matter.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from agent.lab.traces.trace_files import Trace


@dataclass(frozen=True, slots=True)
class Record:
    """Days of a public record on which numbers were fitted: its zones from `begins` to `ends`."""

    name: str
    begins: datetime
    ends: datetime
    zones: frozenset[str]

    def holds(self, trace: Trace) -> bool:
        """Return whether a trace shows one of these zones within these days."""
        zone = trace.pool.split("_")[0]
        return zone in self.zones and trace.start < self.ends and self.begins < trace.end


def _zones(*regions: str) -> frozenset[str]:
    """Return the zones of "us-west-2:ab" and "europe-west1-:c"."""
    return frozenset(region + letter for region, letters in (one.split(":") for one in regions) for letter in letters)


AWS_2022 = Record(
    "AWS from 2022-10-26",
    datetime(2022, 10, 26, 22, 5, tzinfo=UTC),
    datetime(2022, 11, 8, 5, tzinfo=UTC),
    _zones("us-west-2:ab"),
)
AWS_2023 = Record(
    "AWS from 2023-02-15",
    datetime(2023, 2, 15, 22, 8, tzinfo=UTC),
    datetime(2023, 2, 27, 2, 10, tzinfo=UTC),
    _zones("us-east-1:acdf", "us-east-2:ab", "us-west-2:abc"),
)
GCP_2025 = Record(
    "GCP H100 from 2025-10-03",
    datetime(2025, 10, 4, 0, 10, tzinfo=UTC),
    datetime(2025, 10, 11, 7, 30, tzinfo=UTC),
    _zones(
        *("asia-south2-:b", "asia-southeast1-:bc", "europe-west1-:c", "europe-west3-:c", "us-central1-:abc"),
        *("us-east4-:ab", "us-east5-:a", "us-west1-:ab"),
    ),
)
HAZARDS = (AWS_2022, AWS_2023)
"""The data behind `decide.deadline.hazards.SHIPPED`."""
REGIMES = (AWS_2022, AWS_2023, GCP_2025)
"""The data behind `decide.deadline.regimes.SHIPPED`."""
LOOKED_AT = frozenset({*range(1, 21), *range(101, 149), *range(301, 333), *range(501, 507)})
"""Seeds of rehearsed days that were used while numbers of `patient` and `hedged` were chosen."""
WARM = (AWS_2022, AWS_2023, GCP_2025)
"""The data behind `short_worth` in `hedged.toml`, and behind the shape and kinship of losses in `capacity_choice`."""


def among(records: Sequence[Record], traces: Iterable[Trace]) -> tuple[str, ...]:
    """Return the names of the records of which a trace is a part."""
    listed = tuple(traces)
    return tuple(record.name for record in records if any(record.holds(trace) for trace in listed))
