"""A row whose numbers were fitted on the very days it runs on says so; other days of the same zones do not."""

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent.cli.main import app
from agent.lab.availability.availability_problem import AvailabilityProblem
from agent.lab.bench import comparison
from agent.lab.bids.bids_problem import BidsProblem
from agent.lab.deadline import deadline_jobs, deadline_problem
from agent.lab.deadline.cross_fit import CrossFit
from agent.lab.jobs import trace_windows
from agent.lab.page import html, saved_table
from agent.lab.pools import pools_jobs
from agent.lab.pools.pools_problem import PoolsProblem
from agent.lab.traces import provenance, trace_files

RECORDED = os.environ.get("GPUBID_TRACES")
FITTED, LATER = "2022-10-27T00:00:00Z", "2022-11-28T22:23:37Z"
"""A day of the record that the shipped numbers were fitted on, and one a month later."""


def folder(tmp_path: Path, start: str) -> Path:
    for number, zone in enumerate(("us-west-2a_v100_1", "us-west-2b_v100_1")):
        up = [int((tick * (number + 3)) % 11 < 6) for tick in range(400)]
        row = {"pool": zone, "gap_seconds": 600, "start": start, "available": up, "spot_price": 1, "on_demand_price": 3}
        (tmp_path / f"{number}.json").write_text(json.dumps(row))
    return tmp_path


def deadline(path: Path, cross_fit: CrossFit = CrossFit.NONE) -> deadline_problem.DeadlineProblem:
    settings = (deadline_jobs.Setting.of_hours(8, 12, 0.05),)
    return deadline_problem.DeadlineProblem(path, 12, 24, settings, trace_windows.OWN, cross_fit=cross_fit)


def pools(path: Path) -> PoolsProblem:
    return PoolsProblem(path, ((),), (pools_jobs.Job(8, 12, 0.05),), pools_jobs.Windows(12, 24))


@pytest.mark.parametrize(("start", "is_marked"), [(FITTED, True), (LATER, False)])
def test_ours_is_marked_on_the_days_it_was_fitted_on_alone(tmp_path: Path, start: str, *, is_marked: bool) -> None:
    path, records = folder(tmp_path, start), ("AWS from 2022-10-26",) if is_marked else ()
    assert deadline(path).fitted_on("deadline") == records
    assert pools(path).fitted_on("hedged") == records
    assert AvailabilityProblem(path).fitted_on("hedged_as_spothedge_1") == records
    for published, built in (
        ("levi", deadline(path)),
        ("rate", pools(path)),
        ("spothedge_1", AvailabilityProblem(path)),
    ):
        assert built.fitted_on(published) == ()


def test_what_is_fitted_anew_without_the_window_is_not_marked(tmp_path: Path) -> None:
    path = folder(tmp_path, FITTED)
    assert deadline(path, CrossFit.POOL).fitted_on("deadline") == ()


def test_seeds_that_were_looked_at_mark_ours() -> None:
    assert BidsProblem(("calm",), (401, 402)).fitted_on("patient") == ()
    assert BidsProblem(("calm",), (332, 401)).fitted_on("patient") == ("1 of these seeds",)
    assert BidsProblem(("calm",), (1, 2)).fitted_on("ladder") == ()


def test_table_document_and_page_say_what_is_fitted_and_that_blocks_are_few(tmp_path: Path) -> None:
    made = comparison.run(pools(folder(tmp_path, FITTED)), ["eager", "hedged"], workers=1)
    document = made.document()
    rows = {row["strategy"]: row for row in document["strategies"]}
    assert rows["hedged"]["fitted_on"] == ["AWS from 2022-10-26"]
    assert (rows["eager"]["fitted_on"], document["blocks"], rows["hedged"]["ci95_vs_baseline"]) == ([], 3, [None, None])
    assert [line[0] for line in made.lines()[1:]] == ["eager", "hedged *"]
    assert any("fitted on these very data" in note for note in made.notes())
    assert any(note.startswith("95 % not known: these runs are of 3 independent blocks,") for note in made.notes())
    page = html.page([saved_table.table(document)])
    assert "fitted on these data" in page
    assert "not known" in page
    assert "(here 3)" in page


def test_the_command_prints_the_mark(tmp_path: Path) -> None:
    words = ["lab", "bench", "--problem", "deadline-pools", "--traces", str(folder(tmp_path, FITTED)), "--workers", "1"]
    job = ["--job-hours", "8", "--deadline-hours", "12", "--window-hours", "12", "--strategies", "eager,hedged"]
    said = CliRunner().invoke(app, [*words, *job, "--overhead-hours", "0.05"]).stdout
    assert "hedged *" in said
    assert "fitted on these very data" in " ".join(said.split())


@pytest.mark.skipif(RECORDED is None, reason="GPUBID_TRACES names no folder of recorded traces")
@pytest.mark.parametrize(
    ("name", "records"),
    [
        ("aws-2022", ("AWS from 2022-10-26",)),
        ("aws-2023", ("AWS from 2023-02-15",)),
        ("gcp-h100-2025", ("GCP H100 from 2025-10-03",)),
        ("aws-2022-11-28", ()),
        ("aws-2023-02-27", ()),
    ],
)
def test_every_trace_of_a_fitted_record_is_known_as_one(name: str, records: tuple[str, ...]) -> None:
    found = trace_files.folder(Path(RECORDED or "") / name)
    assert {provenance.among(provenance.REGIMES, [trace]) for trace in found} == {records}
