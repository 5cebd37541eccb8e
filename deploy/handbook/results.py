"""Write the handbook's page "What the lab measured" from saved benches; `results.py NAME...` runs these benches first.

A bench is a command in benches.toml. It runs on the traces below GPUBID_TRACES, on a committed program alone. What it
printed is kept in measured/NAME.json with its command, date and commit, so that no figure of the page is typed by hand.
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
INTRODUCTION = """\
# What the lab measured

<!-- Written by deploy/handbook/results.py (`make handbook`) from deploy/handbook/measured: change no figure here. -->

Each table is what its command printed, with the date and the commit of the program. The data are recorded availability
of clouds. None of these records has bids. [The lab](lab.md) explains the problems, the rules and the figures. A row
with `*` was fitted on these very data, and proves nothing. "Of the gap" is the share of the difference between the
baseline and the optimum that a row saves. One number of `deadline`, how much waiting with little slack must save, was
chosen on windows of all five records ([decision 61](decisions/061-short-slack.md)): these rows do not prove its gain.

`make measure BENCH=NAME` runs a bench again, with `GPUBID_TRACES` set to the folder of the records.
"""


def benches() -> dict[str, dict[str, str]]:
    """Return the benches by name, in the order of the page."""
    return tomllib.loads((HERE / "benches.toml").read_text())


def measure(name: str, traces: Path) -> None:
    """Run a bench, and keep what it printed."""
    command = benches()[name]["command"]
    _, *arguments = shlex.split(command)
    place = arguments.index("--traces") + 1
    arguments[place] = str(traces / arguments[place])
    began = datetime.now(UTC)
    gpubid = Path(sys.executable).with_name("gpubid")
    done = subprocess.run((gpubid, *arguments, "--json"), stdout=subprocess.PIPE, check=True)
    kept = {"command": command, "date": f"{began:%Y-%m-%d}", "commit": _git("rev-parse", "--short=8", "HEAD").strip()}
    MEASURED.mkdir(exist_ok=True)
    _file(name).write_text(json.dumps({**kept, "printed": json.loads(done.stdout)}, indent=1) + "\n")


def page() -> str:
    """Return the text of the page."""
    kept = {name: bench for name, bench in benches().items() if _file(name).exists()}
    return "\n".join([INTRODUCTION, *(line for name, bench in kept.items() for line in _part(name, bench))])


def _file(name: str) -> Path:
    return MEASURED / f"{name}.json"


def _part(name: str, bench: dict[str, str]) -> Iterator[str]:
    """Yield the lines of a bench: its heading, how it was measured, and its tables."""
    kept = json.loads(_file(name).read_text())
    yield f"## {bench['title']}\n\n{bench['about']}\n\n```sh\n{_wrapped(kept['command'])}\n```\n"
    yield f"Measured on {kept['date']} on commit {kept['commit']} (`{name}`).\n"
    printed = kept["printed"]
    report = printed.get("report")
    if report is None:
        for table in printed.get("tables", [printed]):
            yield f"{_about(table)}\n\n{_grid(_rows(table))}\n"
        return
    for rows in report["tables"]:
        yield f"{_grid(rows)}\n"
    for note in report["notes"]:
        yield f"- {note}"
    yield ""


def _wrapped(command: str) -> str:
    """Return a command with one line for every two options."""
    words = command.split(" --")
    lines = [" --".join(words[:2]), *(" --".join(("", *words[at : at + 2])) for at in range(2, len(words), 2))]
    return " \\\n ".join(lines)


def _about(table: dict[str, Any]) -> str:
    """Return a sentence on the data of a bench's table."""
    first, last = (moment[:10] for moment in table["span"])
    sentences = [f"{table['traces']}, {len(table['pools'])} pools, {first} to {last}: {table['runs']} runs"]
    sentences.append(f"{table['blocks']} independent blocks")
    return ", ".join(sentences) + "." + (f" Hazards {table['hazards']}." if "hazards" in table else "")


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
        "not known" if low is None else f"[{low:+.2f}, {high:+.2f}]",
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
