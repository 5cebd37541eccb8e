"""Simulated hours per second of a rehearsal, beside the second that real time takes for one."""

import json
import subprocess
import sys

from tests.bench import report

HOURS = 24


def measure() -> bool:
    """Print the speed of a rehearsed day in the hardest climate."""
    options = ["--climate", "bidding_war", "--hours", str(HOURS), "--seed", "7", "--json"]
    command = [sys.executable, "-m", "agent", "rehearse", *options]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    speed = told["simulated_hours"] / told["wall_seconds"]
    print(f"a rehearsal of {told['simulated_hours']:.0f} hours, bidding_war, seed 7")
    compared = f"real time 1 h in 3600 s: {speed * 3600:,.0f} times as fast"
    return report.line("simulated hours a second", f"{speed:.2f} in {told['wall_seconds']:.1f} s", compared)
