"""A table as `gpubid lab bench --json` printed it. It is checked when it is read, because it may come from anywhere."""

import json
from pathlib import Path
from typing import Annotated, Any

import msgspec

from agent.config.problems import ConfigError, Problem

MAX_BYTES = 16 << 20
MOST_TABLES = 64
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]


class Strategy(msgspec.Struct, kw_only=True):
    """One row: mean dollars, ratio to the bound (None without a bound), paired difference and its interval.

    `against` is the baseline of the difference; empty means the table's baseline. `fitted_on` names the records of the
    table that were used to fit the numbers.
    """

    strategy: _Name
    mean_cost: float | None
    ratio_to_optimum: float | None
    late: int
    difference_vs_baseline: float | None
    ci95_vs_baseline: tuple[float | None, float | None]
    wall_seconds: float = 0.0
    digest: Annotated[str, msgspec.Meta(max_length=128)] = ""
    against: Annotated[str, msgspec.Meta(max_length=128)] = ""
    fitted_on: Annotated[list[_Name], msgspec.Meta(max_length=64)] = msgspec.field(default_factory=list)
    cost_percentiles: dict[str, float | None] = msgspec.field(default_factory=dict)
    figures: dict[_Name, float | None] = msgspec.field(default_factory=dict)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval, or None."""
        low, high = self.ci95_vs_baseline
        return None if low is None or high is None else (low, high)


class Table(msgspec.Struct, kw_only=True):
    """A bench: the facts of its data (`about`: all further keys), and a row for each strategy."""

    problem: _Name
    runs: Annotated[int, msgspec.Meta(ge=1)]
    baseline: _Name
    seed: int
    bootstrap_draws: int
    strategies: Annotated[list[Strategy], msgspec.Meta(min_length=1, max_length=64)]
    blocks: int | None = None
    about: dict[str, Any] = msgspec.field(default_factory=dict)


def table(document: dict[str, Any]) -> Table:
    """Return the table of a document.

    Raises:
        msgspec.ValidationError: the document is no table.
    """
    own = set(Table.__struct_fields__)
    about = {key: value for key, value in document.items() if key not in own}
    return msgspec.convert({**document, "about": about}, Table)


def read(path: Path) -> list[Table]:
    """Return the tables of a file.

    Raises:
        ConfigError: the file cannot be read, or is no table of a bench.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise _wrong(path, "file", "too_large", f"is larger than {MAX_BYTES >> 20} MiB")
        return _tables(json.loads(path.read_bytes(), parse_constant=lambda _: None))
    except OSError as error:
        raise _wrong(path, "file", "unreadable", f"cannot be read ({error.strerror})") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise _wrong(path, "file", "not_json", "is no JSON; write it with gpubid lab bench --json") from error
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `")
        sentence = f"{what}; write it with gpubid lab bench --json"
        raise _wrong(path, where.rstrip("`").removeprefix("$.") or "file", "no_table", sentence) from error


def _tables(document: object) -> list[Table]:
    """Return the tables of a document: one, or those of a problem in parts."""
    whole = document if isinstance(document, dict) else {}
    parts = whole.get("tables")
    if not isinstance(parts, list) or not parts:
        return [table(whole)]
    return [table(part if isinstance(part, dict) else {}) for part in parts[:MOST_TABLES]]


def _wrong(path: Path, key: str, code: str, sentence: str) -> ConfigError:
    return ConfigError([Problem(str(path), 1, key, code, sentence)])
