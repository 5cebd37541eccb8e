"""On recorded traces, where GPUBID_TRACES points at them: scarce pools, where a choice is worth most."""

import os
from pathlib import Path

import pytest

from agent.lab.bench import comparison
from agent.lab.pools import pools_jobs, pools_problem

TRACES = os.environ.get("GPUBID_TRACES")
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not TRACES, reason="set GPUBID_TRACES to a folder with aws-2022 and aws-2023"),
]


@pytest.mark.parametrize(
    ("folder", "pools"),
    [("aws-2023", ("us-east-1a", "us-east-1c")), ("aws-2022", ("us-west-2a_v100_1", "us-west-2b_v100_1"))],
)
def test_ours_is_cheaper_than_every_rule_and_on_time(folder: str, pools: tuple[str, ...]) -> None:
    job = pools_jobs.Job(work=48, allowed=52, overhead=0.2)
    asked = pools_problem.PoolsProblem(Path(TRACES or "") / folder, (pools,), (job,), pools_jobs.Windows(52, 24))
    rows = {row.strategy: row for row in comparison.run(asked, asked.strategies(), workers=1).rows}
    assert all(row.ratio_to_optimum >= 1.0 for row in rows.values())
    assert all(row.late == 0 for row in rows.values())
    assert rows["hedged"].mean_cost < min(rows[name].mean_cost for name in ("stay", "eager", "rate"))


def test_a_loose_deadline_is_no_reason_to_move_between_regions() -> None:
    job = pools_jobs.Job(work=48, allowed=72, overhead=0.2)
    asked = pools_problem.PoolsProblem(Path(TRACES or "") / "aws-2023", ((),), (job,), pools_jobs.Windows(72, 24))
    rows = {row.strategy: row for row in comparison.run(asked, ("hedged", "stay", "eager", "rate"), workers=1).rows}
    assert rows["hedged"].late == 0
    assert rows["hedged"].mean_cost < min(rows[name].mean_cost for name in ("stay", "eager", "rate"))
