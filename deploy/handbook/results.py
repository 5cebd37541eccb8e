"""Write the handbook's page "What the lab measured" from saved benches; `results.py NAME...` runs these benches first.

A bench is a command in benches.toml. It runs on the traces below GPUBID_TRACES, on a committed program alone. What it
printed is kept in measured/NAME.json with its command, date and commit, so that no figure of the page is typed by hand.

A bench with `each` runs once for each value of that option, and keeps each part in measured/NAME/VALUE.json. If it was
broken off, the next run continues: it leaves out the parts that were measured on the same program.
"""

import json
import os
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MEASURED = HERE / "measured"
PAGE = "lab-results.md"
PROGRAM = ("agent", "strategies")
"""The folders whose content decides what a bench prints."""
MEAN = "mean $"
"""The name by which `figures` of a bench asks for the mean cost."""
APART = ("climate", "machine", "value")
"""The facts in which the tables of one bench may differ."""
INTRODUCTION = """\
# What the lab measured

<!-- Written by deploy/handbook/results.py (`make handbook`) from deploy/handbook/measured: change no figure here. -->

Each table is what its command printed, with the date and the commit of the program. The data are recorded availability
of clouds, or rehearsed markets where the bench says so. No record has bids. [The lab](lab.md) explains the figures,
and [Problems of the lab](lab-problems.md) the problems and the rules. A row with `*` was fitted on these very data,
and proves nothing, unless the bench says what else its `*` means. "Of the gap" is the share of the difference between
the baseline and the optimum that a row saves. One number of `deadline`, how much waiting with little slack must save,
was chosen on windows of all five records ([decision 61](decisions/061-short-slack.md)): these rows do not prove its
gain.

`make measure BENCH=NAME` runs a bench again, with `GPUBID_TRACES` set to the folder of the records.
"""


def benches() -> dict[str, dict[str, Any]]:
    """Return the benches by name, in the order of the page."""
    return tomllib.loads((HERE / "benches.toml").read_text())


def measure(name: str, traces: Path) -> None:
    """Run a bench, and keep what it printed. Parts that were measured on this very program stay."""
    files = parts(name)
    for file, command in files.items():
        if len(files) == 1 or not _is_measured(file, command):
            _run(file, command, traces)


def parts(name: str) -> dict[Path, str]:
    """Return the command of each part of a bench, by the file that keeps what it printed."""
    bench = benches()[name]
    command, option = bench["command"], bench.get("each")
    if option is None:
        return {MEASURED / f"{name}.json": command}
    words = shlex.split(command)
    place = words.index(option) + 1
    return {
        MEASURED / name / f"{value}.json": shlex.join([*words[:place], value, *words[place + 1 :]])
        for value in words[place].split(",")
    }


def _is_measured(file: Path, command: str) -> bool:
    """Return whether a part was measured by this command on a program with the same content."""
    if not file.exists():
        return False
    kept = json.loads(file.read_text())
    same = subprocess.run(("git", "diff", "--quiet", kept["commit"], "HEAD", "--", *PROGRAM), cwd=ROOT, check=False)
    return kept["command"] == command and same.returncode == 0


def _run(file: Path, command: str, traces: Path) -> None:
    _, *arguments = shlex.split(command)
    if "--traces" in arguments:
        place = arguments.index("--traces") + 1
        arguments[place] = str(traces / arguments[place])
    began, commit = datetime.now(UTC), _git("rev-parse", "--short=8", "HEAD").strip()
    gpubid = Path(sys.executable).with_name("gpubid")
    done = subprocess.run((gpubid, *arguments, "--json"), stdout=subprocess.PIPE, check=True)
    kept = {"command": command, "date": f"{began:%Y-%m-%d}", "commit": commit}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({**kept, "printed": json.loads(done.stdout)}, indent=1) + "\n")


def page() -> str:
    """Return the text of the page."""
    return "\n".join([INTRODUCTION, *(line for name, bench in benches().items() for line in _part(name, bench))])


def _part(name: str, bench: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of a bench: its heading, how it was measured, and its tables; nothing if it was not measured."""
    kept = {file.stem: json.loads(file.read_text()) for file in parts(name) if file.exists()}
    if not kept:
        return
    yield f"## {bench['title']}\n\n{bench['about']}\n\n```sh\n{_wrapped(bench['command'])}\n```\n"
    yield f"{_measured(kept)} (`{name}`).\n"
    missing = [file.stem for file in parts(name) if file.stem not in kept]
    if missing:
        yield f"Not measured: {', '.join(missing)}.\n"
    printed = [each["printed"] for each in kept.values()]
    if all("report" in each for each in printed):
        yield from _reports([each["report"] for each in printed])
        return
    for each in printed:
        yield from _tables(each.get("tables", [each]), bench.get("figures", ()))


def _measured(kept: dict[str, dict[str, Any]]) -> str:
    """Return when and on which commit the parts were measured, one phrase for those of the same run."""
    runs: dict[tuple[str, str], list[str]] = {}
    for part, each in kept.items():
        runs.setdefault((each["date"], each["commit"]), []).append(part)
    if len(runs) == 1:
        ((date, commit),) = runs
        return f"Measured on {date} on commit {commit}"
    named = (f"{', '.join(each)} on {date} on commit {commit}" for (date, commit), each in runs.items())
    return f"Measured: {'; '.join(named)}"


def _reports(reports: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the tables of a cross-validation, with the rows of all parts, and its notes once."""
    for tables in zip(*(each["tables"] for each in reports), strict=True):
        yield f"{_grid([tables[0][0], *(row for _, *rows in tables for row in rows)])}\n"
    for note in dict.fromkeys(note for each in reports for note in each["notes"]):
        yield f"- {note}"
    yield ""


def _tables(tables: Sequence[dict[str, Any]], figures: Sequence[str]) -> Iterator[str]:
    """Yield the tables of a bench: each alone, or the named figures of all in one, with what they differ in."""
    if not figures:
        for table in tables:
            yield f"{_about(table)}\n\n{_grid(_rows(table))}\n"
        return
    yield f"{_about(tables[0])}\n"
    differing = [key for key in APART if len({str(table.get(key)) for table in tables}) > 1]
    yield f"{_grid(figure_rows(tables, figures, differing))}\n"


def figure_rows(
    tables: Sequence[dict[str, Any]], figures: Sequence[str], differing: Sequence[str]
) -> Sequence[Sequence[str]]:
    """Return a row for each strategy of each table: each figure, and its difference to the baseline with interval."""
    baseline = tables[0]["baseline"]
    heading = [*differing, "strategy", *(cell for each in figures for cell in (each, f"less {baseline}, 95 %"))]
    rows = [
        [
            *(str(table[key]) for key in differing),
            f"{row['strategy']} *" if row["fitted_on"] else row["strategy"],
            *(cell for each in figures for cell in _figure(row, each, baseline)),
        ]
        for table in tables
        for row in table["strategies"]
    ]
    empty = [place for place in range(len(heading)) if all(row[place] == "" for row in rows)]
    return [[cell for place, cell in enumerate(row) if place not in empty] for row in (heading, *rows)]


def _figure(row: dict[str, Any], name: str, baseline: str) -> tuple[str, str]:
    """Return a figure of a strategy, and its difference with the interval; empty where there is none."""
    if name == MEAN:
        less = _difference(row["difference_vs_baseline"], row["ci95_vs_baseline"])
        against = "" if row["against"] in {"", baseline} else f" (less {row['against']})"
        return f"{row['mean_cost']:.2f}", f"{less}{against}"
    value = row.get("figures", {}).get(name)
    gap = row.get("figure_differences", {}).get(name)
    return "" if value is None else f"{value:.4g}", "" if gap is None else _difference(gap["difference"], gap["ci95"])


def _difference(value: float | None, interval: Sequence[float | None]) -> str:
    if value is None:
        return ""
    low, high = interval
    return f"{value:+.2f} {_between(low, high)}"


def _between(low: float | None, high: float | None) -> str:
    return "not known" if low is None or high is None else f"[{low:+.2f}, {high:+.2f}]"


def _wrapped(command: str) -> str:
    """Return a command with one line for every two options."""
    words = command.split(" --")
    lines = [" --".join(words[:2]), *(" --".join(("", *words[at : at + 2])) for at in range(2, len(words), 2))]
    return " \\\n ".join(lines)


def _about(table: dict[str, Any]) -> str:
    """Return a sentence on the data of a bench's table."""
    counted = f"{table['runs']} runs, {table['blocks']} independent blocks"
    if "span" not in table:
        return f"Climate `{table['climate']}`, seeds {table['seeds']}, days of {table['hours']:g} h: {counted}."
    first, last = (moment[:10] for moment in table["span"])
    pools = f", {len(table['pools'])} pools" if "pools" in table else ""
    hazards = f" Hazards {table['hazards']}." if "hazards" in table else ""
    return f"{table['traces']}{pools}, {first} to {last}: {counted}.{hazards}"


def _rows(table: dict[str, Any]) -> list[list[str]]:
    """Return the cells of a bench's table, the heading first."""
    baseline = table["baseline"]
    costs = {row["strategy"]: row["mean_cost"] for row in table["strategies"]}
    heading = [
        "strategy",
        "mean $",
        "/ optimum",
        "late",
        f"less {baseline}",
        "95 %",
        "of the gap",
    ]
    gap = costs[baseline] - costs["optimum"]
    return [heading, *(_row(row, (costs[baseline] - row["mean_cost"]) / gap) for row in table["strategies"])]


def _row(row: dict[str, Any], share: float) -> list[str]:
    low, high = row["ci95_vs_baseline"]
    name = f"{row['strategy']} *" if row["fitted_on"] else row["strategy"]
    return [
        name,
        f"{row['mean_cost']:.2f}",
        f"{row['ratio_to_optimum']:.3f}",
        str(row["late"]),
        f"{row['difference_vs_baseline']:+.2f}",
        _between(low, high),
        f"{share:.0%}" if 0 < share < 1 else "",
    ]


def _grid(rows: Sequence[Sequence[str]]) -> str:
    """Return cells as a table of Markdown, the heading first."""
    heading, *others = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    rule = ["---"] * len(heading)
    return "\n".join(f"| {' | '.join(row)} |" for row in (heading, rule, *others))


def _git(*arguments: str) -> str:
    return subprocess.run(("git", *arguments), cwd=ROOT, check=True, capture_output=True, text=True).stdout


def main(names: Sequence[str]) -> str | None:
    """Measure the named benches, and write the page. Return what was wrong."""
    unknown = [name for name in names if name not in benches()]
    if unknown:
        return f"there is no bench {', '.join(unknown)} in {HERE / 'benches.toml'}; there is {', '.join(benches())}"
    traces = os.environ.get("GPUBID_TRACES")
    if names and not traces:
        return "GPUBID_TRACES is not set: name the folder of the records, GPUBID_TRACES=DIR make measure BENCH=NAME"
    if names and _git("status", "--porcelain", "--", *PROGRAM):
        return f"{' and '.join(PROGRAM)} differ from the last commit: commit first, so that the figures have a commit"
    for name in names:
        measure(name, Path(traces or ""))
    (HERE / "pages" / PAGE).write_text(page())
    return None


if __name__ == "__main__":
    if problem := main(sys.argv[1:]):
        print(problem, file=sys.stderr)
        sys.exit(2)
