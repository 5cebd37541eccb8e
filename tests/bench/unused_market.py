"""What the market of other clouds costs a daemon that does not use it: CPU seconds of `gpubid plan`.

`plan` starts, reads the configuration and runs one cycle. It runs in three kinds of processes by turns: as installed,
with the folders of this market taken out of the program, and with its table in agent.toml, before a simulated server of
it. The least CPU time of each counts. A fourth kind is the first once more: its distance is what the machine adds.
"""

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from agent.simulator.vast.http import call_gate
from tests.bench import report
from tests.support import programs

MARKET = "dstack"
ROUNDS, CYCLES = 7, 4
MOST = 1.10
TAKEN_OUT = f"""
import sys
from agent.markets import registered_markets
from agent.simulator import registered_simulators
class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("agent.markets.{MARKET}", "agent.simulator.{MARKET}")):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Refusing())
for each in (registered_markets, registered_simulators):
    del each._entries()["{MARKET}"]
"""
PLANS = f"""
import sys, time
from typer.testing import CliRunner
from agent.cli.main import app
def plan():
    ran = CliRunner().invoke(app, ["plan"])
    assert ran.exit_code == 0, ran.output
plan()
first = time.process_time()
for _ in range({CYCLES}):
    plan()
each = (time.process_time() - first) / {CYCLES}
print(first, each, len([name for name in sys.modules if ".{MARKET}" in name]))
"""
CONFIG = """
[markets.vast]
url = "{vast}"
credential_file = "key"
{table}
[limits]
max_price_per_instance_hour = 1.00
max_fleet_per_hour = 5.00
max_per_day = 50.00
max_per_month = 500.00
max_instances = 5
[ledger]
path = "ledger.sqlite"
[workloads.train]
image = "ubuntu:22.04"
command = "sleep infinity"
max_price = 1.00
strategy = "patient"
"""
TABLE = """
[markets.dstack]
url = "{url}"
credential_file = "key"
fleet = "gpubid"
backends = ["aws", "lambda"]
"""


def measure() -> bool:
    """Print the ratios; return whether they are within the bound."""
    return asyncio.run(_measure())


async def _measure() -> bool:
    with tempfile.TemporaryDirectory(prefix="gpubid-bench-") as made:
        async with programs.market(Path(made), "--speed", "1") as simulated:
            without, with_table = _configured(Path(made), simulated.first_line)
            kinds = {
                "as installed": ("", without),
                "once more": ("", without),
                "taken out": (TAKEN_OUT, without),
                "with its table": ("", with_table),
            }
            tries: dict[str, list[tuple[float, float, int]]] = {kind: [] for kind in kinds}
            for _ in range(ROUNDS):
                for kind, (before, folder) in kinds.items():
                    tries[kind].append(await asyncio.to_thread(_planned, before, folder))
    return _told(tries)


def _told(tries: dict[str, list[tuple[float, float, int]]]) -> bool:
    print(f"`gpubid plan` on Vast.ai alone, CPU seconds, beside the program without the folders of {MARKET}")
    firsts = {kind: min(first for first, _, _ in each) for kind, each in tries.items()}
    laters = {kind: min(later for _, later, _ in each) for kind, each in tries.items()}
    modules = {kind: each[0][2] for kind, each in tries.items()}
    verdicts = []
    for name, seconds in (("start and first cycle", firsts), ("each later cycle, configuration included", laters)):
        for kind in ("as installed", "once more", "with its table"):
            ours, theirs = seconds[kind], seconds["taken out"]
            holds = ours <= MOST * theirs if kind == "as installed" else None
            figure = f"{ours:.3f} s; without the folders {theirs:.3f} s"
            bound = f", at most {MOST:.2f}" if holds is not None else ""
            compared = f"ratio {ours / theirs:.3f}{bound}; {modules[kind]} modules of it"
            verdicts.append(report.line(f"{name}, {kind}", figure, compared, holds=holds))
    return all(verdicts)


def _planned(before: str, folder: Path) -> tuple[float, float, int]:
    command = [sys.executable, "-c", before + PLANS]
    told = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.split()
    return float(told[0]), float(told[1]), int(told[2])


def _configured(place: Path, told: Mapping[str, str]) -> tuple[Path, Path]:
    """Write two folders with the same configuration, the second with the table."""
    folders = (place / "without", place / "with")
    for folder, table in zip(folders, ("", TABLE.format(url=told[f"{MARKET}_url"])), strict=True):
        folder.mkdir()
        (folder / "agent.toml").write_text(CONFIG.format(vast=told["vast_url"], table=table))
        (folder / "key").write_text(call_gate.DEFAULT_KEY)
        (folder / "key").chmod(0o600)
    return folders
