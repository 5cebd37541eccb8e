"""The records of a folder: each of its folders with trace files is one record of pools."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.config.problems import ConfigError, Problem
from agent.lab.traces import trace_files

FEWEST = 2
"""The fewest records: one to judge on, and one to fit on."""


@dataclass(frozen=True, slots=True)
class Record:
    """A folder of traces. Its name is the folder's."""

    folder: Path
    traces: tuple[trace_files.Trace, ...]

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name


def read(root: Path) -> tuple[Record, ...]:
    """Return the records below a folder, by name. A folder without trace files is not a record.

    Raises:
        ConfigError: a file is no trace, or there are fewer than two records.
    """
    folders = sorted({file.parent for file in root.glob("*/*.json")})
    if len(folders) < FEWEST:
        sentence = f"contains {len(folders)} folders of trace files; name a folder with one folder for each record"
        raise ConfigError([Problem(str(root), 1, "folder", "few_records", sentence)])
    return tuple(Record(folder, trace_files.folder(folder)) for folder in folders)


def left_out(records: Sequence[Record], named: Sequence[str]) -> Iterator[tuple[Record, tuple[Record, ...]]]:
    """Yield each named record with all other records; every record if none is named.

    Raises:
        ConfigError: a name is of no record.
    """
    unknown = sorted(set(named) - {record.name for record in records})
    if unknown:
        sentence = f"no record {', '.join(unknown)}; there is {', '.join(record.name for record in records)}"
        raise ConfigError([Problem(str(records[0].folder.parent), 1, "--judge", "no_record", sentence)])
    for record in records:
        if not named or record.name in named:
            yield record, tuple(other for other in records if other is not record)
