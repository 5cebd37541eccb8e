"""Two Dask workers beside two processes of this machine, on the same lab problem by turns: the pace of `--on`.

The cluster runs on loopback and is up before, as an operator's is. Each turn has everything else: the connection and
its checks on one side, the start of two processes on the other. The pools are drawn here; nothing is recorded.
"""

import json
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from agent.lab.bench import comparison
from agent.lab.deadline.deadline_jobs import Setting
from agent.lab.deadline.deadline_problem import DeadlineProblem
from agent.lab.jobs.trace_windows import Prices
from agent.lab.workers import dask_workers
from agent.lab.workers.lab_workers import LocalWorkers, Workers
from tests.bench import report
from tests.support import dask_boxes

SEED = 6
POOLS, DAYS, GAP_SECONDS = 4, 14, 195
LOSS, RETURN = 0.4, 0.3
"""Chances an hour."""
STRATEGIES = ("uniform_progress", "levi")
PROCESSES, ROUNDS = 2, 3
LEAST_PACE = 0.9


def drawn(folder: Path) -> DeadlineProblem:
    """Return jobs of 48 h over pools that come and go, whose traces are in a folder."""
    lots = np.random.default_rng(SEED)
    for pool in range(POOLS):
        is_up = [True]
        for lot in lots.random(DAYS * 86_400 // GAP_SECONDS - 1):
            changes = bool(lot < (LOSS if is_up[-1] else RETURN) * GAP_SECONDS / 3600)
            is_up.append(is_up[-1] is not changes)
        row = {"pool": f"drawn-{pool}", "gap_seconds": GAP_SECONDS, "start": "2026-01-01T00:00:00Z"}
        (folder / f"{pool}.json").write_text(json.dumps({**row, "available": [int(each) for each in is_up]}))
    settings = tuple(Setting.of_hours(48, allowed, 0.2) for allowed in (52, 70))
    problem = DeadlineProblem(folder, 70, 12, settings, Prices(0.9731, 3.06))
    problem.cases()  # read here, as the verbs do
    return problem


def seconds(problem: DeadlineProblem, workers: Workers) -> tuple[float, list[tuple[float, ...]]]:
    """Return the seconds of a comparison, and the costs of its runs."""
    began = time.perf_counter()
    table = comparison.run(problem, list(STRATEGIES), workers=workers)
    return time.perf_counter() - began, [row.costs for row in table.rows]


def on_cluster(problem: DeadlineProblem, address: str) -> tuple[float, list[tuple[float, ...]]]:
    """Return the same of a comparison on a cluster, with the connection to it."""
    began = time.perf_counter()
    with dask_workers.connected(address) as workers:
        _, costs = seconds(problem, workers)
    return time.perf_counter() - began, costs


def measure() -> bool:
    """Print the pace of the Dask workers; return whether it is high enough and every cost is the same."""
    with tempfile.TemporaryDirectory(prefix="gpubid-bench-") as place, dask_boxes.forking() as forker:
        traces = Path(place, "traces")
        traces.mkdir()
        problem = drawn(traces)
        with dask_boxes.boxes(forker, Path(place), "left", "right") as boxes:
            # Both sides have imported what they need: a cluster runs for days.
            on_cluster(problem, boxes.address)
            turns = [
                (seconds(problem, LocalWorkers(PROCESSES)), on_cluster(problem, boxes.address)) for _ in range(ROUNDS)
            ]
    paces = [local[0] / there[0] for local, there in turns]
    middle = statistics.median(paces)
    shown = ", ".join(f"{there[0]:.1f} s : {local[0]:.1f} s" for local, there in turns)
    name = f"a lab problem of {len(problem.cases())} cases: {PROCESSES} Dask workers beside {PROCESSES} processes"
    is_fast = report.line(
        name, f"{middle:.2f} times the pace", f"{shown}; at least {LEAST_PACE}", holds=middle >= LEAST_PACE
    )
    is_same = all(local[1] == there[1] for local, there in turns)
    return (
        report.line("the costs of both", "the same" if is_same else "DIFFERENT", "the same", holds=is_same) and is_fast
    )


if __name__ == "__main__":
    measure()
