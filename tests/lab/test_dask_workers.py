"""The lab on a Dask cluster: the same bytes whoever dies, and nothing from a worker that is not like this machine.

Schedulers and workers are Dask's own commands in processes on loopback.
"""

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer
from typer.testing import CliRunner

from agent import strategy_files
from agent.cli.lab import cluster
from agent.cli.main import app
from agent.lab.bench import comparison
from agent.lab.deadline import deadline_jobs, deadline_problem
from agent.lab.engine import lookahead_check
from agent.lab.jobs import tick_engine, trace_windows
from agent.lab.workers import cluster_address
from agent.lab.workers.cluster_error import ClusterError
from agent.lab.workers.lab_workers import LocalWorkers
from tests.support import dask_boxes, ports
from tests.support.dask_boxes import Boxes, Forker

if TYPE_CHECKING:
    from agent.lab.bench.result_table import Table

STRATEGIES = ["greedy", "uniform_progress", "levi"]
SHORT = ("--job-hours", "8", "--deadline-hours", "9,12", "--overhead-hours", "0.05", "--window-hours", "12")
PRICED = ("--stride-hours", "6", "--spot-price", "1", "--on-demand-price", "3")


@pytest.fixture(scope="module")
def forker() -> Iterator[Forker]:
    with dask_boxes.forking() as found:
        yield found


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    place = tmp_path / "zones"
    place.mkdir()
    for number in range(2):
        up = [int((tick * (number + 3)) % 11 < 6) for tick in range(400)]
        row = {"pool": f"zone-{number}", "gap_seconds": 600, "start": "2026-01-01T00:00:00Z", "available": up}
        (place / f"{number}.json").write_text(json.dumps(row))
    return place


def problem(traces: Path) -> deadline_problem.DeadlineProblem:
    settings = tuple(deadline_jobs.Setting.of_hours(8, allowed, 0.05) for allowed in (9, 12))
    built = deadline_problem.DeadlineProblem(traces, 12, 4, settings, trace_windows.Prices(1.0, 3.0))
    built.cases()  # read here, as the verbs do
    return built


def told(table: "Table") -> str:
    """Return a table's JSON without the seconds that it took."""
    document = table.document()
    for row in document["strategies"]:
        del row["wall_seconds"]
    return json.dumps(document)


def ran(built: comparison.Problem, boxes: Boxes, kills: int) -> tuple[str, Any]:
    """Return the table of a cluster of which so many workers were killed at seeded moments, and the cluster."""
    from agent.lab.workers import dask_workers

    runs = len(built.cases()) * (len(STRATEGIES) + 1)
    lots = random.Random(kills)
    moments = sorted(lots.randrange(runs) for _ in range(kills))

    def kill(done: int, _: int) -> None:
        while moments and done > moments[0]:
            moments.pop(0)
            boxes.kill(lots.choice([name for name in boxes.alive if name != "scheduler"]))

    with dask_workers.connected(boxes.address) as workers:
        table = comparison.run(built, STRATEGIES, workers=workers, on_progress=kill)
        workers.lost()
    assert not moments
    return told(table), workers


def test_killed_workers_change_no_byte(forker: Forker, traces: Path, tmp_path: Path) -> None:
    built = problem(traces)
    alone = told(comparison.run(built, STRATEGIES, workers=1))
    shutil.rmtree(traces)  # nobody else reads it: the problem takes its data along
    with dask_boxes.boxes(forker, tmp_path, "a", "b", "c", "d", "e") as boxes:
        for kills in (0, 1, 3):
            table, workers = ran(built, boxes, kills)
            assert table == alone, f"{kills} killed"
            assert {share.name for share in workers.shares.values()} <= set("abcde")
            chunks = -(-len(built.cases()) // comparison.CHUNK) * (len(STRATEGIES) + 1)
            assert sum(share.parts for share in workers.shares.values()) == chunks
        assert len(boxes.alive) == 2, "the scheduler, and the last of five workers"


@pytest.mark.nightly
def test_a_bench_prints_the_same_and_says_who_computed_what(forker: Forker, traces: Path, tmp_path: Path) -> None:
    words = ["lab", "bench", "--problem", "deadline", "--traces", str(traces), *SHORT, *PRICED, "--json"]
    with dask_boxes.boxes(forker, tmp_path, "left", "right") as boxes:
        assert_same([*words, "--strategies", "greedy,levi"], boxes)


@pytest.mark.nightly
def test_a_check_and_a_report_are_the_same(forker: Forker, traces: Path, tmp_path: Path) -> None:
    page = ["lab", "report", "--problem", "deadline", "--traces", str(traces), *SHORT, *PRICED, "--workers", "1"]
    with dask_boxes.boxes(forker, tmp_path, "left", "right") as boxes:
        assert_same(["lab", "check", "patient", "--traces", str(traces), "--json"], boxes)
        there = CliRunner().invoke(app, [*page, str(tmp_path / "page.html"), "--on", boxes.address])
        assert there.exit_code == 0, there.output
        assert "left (tcp://127.0.0.1:" in there.stderr
    assert "uniform_progress" in (tmp_path / "page.html").read_text()


def assert_same(command: list[str], boxes: Boxes) -> None:
    """Run a command here and on a cluster: the same bytes but for the times, and who computed what."""
    here, there = (CliRunner().invoke(app, [*command, *on]) for on in (["--workers", "1"], ["--on", boxes.address]))
    assert (here.exit_code, there.exit_code) == (0, 0), there.output
    assert _timeless(here.stdout) == _timeless(there.stdout)
    assert any(f"{name} (tcp://127.0.0.1:" in there.stderr for name in ("left", "right"))


def _timeless(text: str) -> Any:
    found = json.loads(text)
    for row in found.get("strategies", ()):
        del row["wall_seconds"]
    return found


@pytest.mark.nightly
def test_a_dead_scheduler_is_a_sentence_and_an_exit_code(
    forker: Forker, traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with dask_boxes.boxes(forker, tmp_path, "one") as boxes:
        with pytest.raises(typer.Exit) as ended, cluster.workers(boxes.address, 1) as workers:
            comparison.run(
                problem(traces), STRATEGIES, workers=workers, on_progress=lambda _done, _total: _kill_once(boxes)
            )
        assert ended.value.exit_code == 1
        said = capsys.readouterr().err
        assert "the scheduler at tcp://127.0.0.1" in said
        assert "run the same command again" in said
        again = CliRunner().invoke(app, ["lab", "check", "patient", "--traces", str(traces), "--on", boxes.address])
        assert (again.exit_code, "no scheduler answers" in again.stderr) == (1, True)
        assert "Traceback" not in said + again.stderr


def _kill_once(boxes: Boxes) -> None:
    if "scheduler" in boxes.alive:
        boxes.kill("scheduler")


class Echo:
    """A work whose result is its part."""

    def done(self, _problem: Path, part: int) -> int:
        return part

    def is_true(self, _problem: Path, part: int, result: int) -> bool:
        return part == result


def other_tree(place: Path) -> Path:
    """Return a copy of the program with one other strategy file, and whose own check would call itself alike."""
    for name in ("agent", "strategies", "migrations"):
        shutil.copytree(dask_boxes.ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    file = place / "strategies" / "patient.toml"
    file.write_text(file.read_text() + "# another\n")
    lying = place / "agent" / "lab" / "workers" / "sent_functions.py"
    lying.write_text(f"{lying.read_text()}\n\n{LIE.format(root=str(dask_boxes.ROOT))}")
    return place


LIE = """
def _files(package):
    folder = Path({root!r}) / package
    return sorted((f"{{package}}/{{each.relative_to(folder).as_posix()}}", each) for each in folder.rglob("*")
        if each.is_file() and "__pycache__" not in each.parts)
"""


@pytest.mark.nightly
def test_another_build_is_refused_before_anything_is_computed_and_whenever_it_joins(
    forker: Forker, traces: Path, tmp_path: Path
) -> None:
    from agent.lab.workers import dask_workers

    tree = other_tree(tmp_path / "tree")
    with dask_boxes.boxes(forker, tmp_path, "good") as boxes:
        with dask_workers.connected(boxes.address) as workers:
            assert list(workers.map(Echo(), tmp_path, [0])) == [0]
            boxes.cold("bad", tree)
            boxes.await_workers(2)
            boxes.kill("good")
            with pytest.raises(ClusterError, match=r"\(bad\) would compute with something else") as late:
                list(workers.map(Echo(), tmp_path, [1]))
        assert {share.name for share in workers.shares.values()} == {"good"}
        with (
            pytest.raises(ClusterError, match=r"strategies/patient\.toml") as first,
            dask_workers.connected(boxes.address),
        ):
            pytest.fail("it was accepted")
        assert (first.value.code, late.value.code) == ("other_build", "other_build")
        words = ["lab", "bench", "--problem", "deadline", "--traces", str(traces), *SHORT, *PRICED]
        refused = CliRunner().invoke(app, [*words, "--on", boxes.address])
        assert (refused.exit_code, refused.stdout) == (2, "")


def of_another_release() -> None:
    """Let a worker show another version of gpubid."""
    import importlib.metadata

    honest = importlib.metadata.version
    importlib.metadata.version = lambda name: "0.0.1" if name == "gpubid" else honest(name)  # type: ignore[assignment]


def test_a_worker_that_comes_back_with_another_build_at_its_address_is_refused(forker: Forker, tmp_path: Path) -> None:
    """None was taken for its result."""
    from agent.lab.workers import dask_workers

    with dask_boxes.boxes(forker, tmp_path) as boxes:
        port = ports.free()
        boxes.worker("before", port=port)
        boxes.await_workers(1)
        with dask_workers.connected(boxes.address) as workers:
            assert list(workers.map(Echo(), tmp_path, [1])) == [1]
            boxes.kill("before")
            boxes.worker("upgraded", before=f"{__name__}:of_another_release", port=port)
            with pytest.raises(
                ClusterError, match=r"\(upgraded\) would compute with something else.* gpubid is 0\.0\.1"
            ):
                list(workers.map(Echo(), tmp_path, [2]))
        assert {share.parts for share in workers.shares.values()} == {1}


def cheaper() -> None:
    """Let a worker compute each run a cent too cheap."""
    import dataclasses

    honest = tick_engine.play

    def play(*given: Any) -> tick_engine.Run:
        run = honest(*given)
        return dataclasses.replace(run, cost=run.cost - 0.01)

    tick_engine.play = play  # type: ignore[assignment]


@pytest.mark.nightly
def test_a_worker_that_computes_something_else_with_the_same_files_is_found(
    forker: Forker, traces: Path, tmp_path: Path
) -> None:
    from agent.lab.workers import dask_workers

    with dask_boxes.boxes(forker, tmp_path) as boxes:
        boxes.worker("liar", before=f"{__name__}:cheaper")
        boxes.await_workers(1)
        with (
            pytest.raises(ClusterError, match=r"\(liar\) computed another result") as found,
            dask_workers.connected(boxes.address) as workers,
        ):
            comparison.run(problem(traces), STRATEGIES, workers=workers)
        assert found.value.code == "wrong_result"
        assert workers.shares == {}
        boxes.kill("liar")
        boxes.worker("wide", threads=2)
        boxes.await_workers(1)
        with pytest.raises(ClusterError, match="--nthreads 1"), dask_workers.connected(boxes.address):
            pytest.fail("it was accepted")


def certificates(folder: Path) -> dict[str, str]:
    """Write an authority of its own and a certificate, and return Dask's settings for every role."""
    import distributed

    made = distributed.Security.temporary()
    texts = {"ca": made.tls_ca_file, "cert": made.tls_client_cert, "key": made.tls_client_key}
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text)
    roles = {
        f"{role}.{name}": str(folder / name) for role in ("scheduler", "worker", "client") for name in ("cert", "key")
    }
    return {f"distributed.comm.tls.{key}": value for key, value in {"ca-file": str(folder / "ca"), **roles}.items()}


@pytest.mark.nightly
def test_over_tls_both_sides_show_certificates_of_one_authority(traces: Path, tmp_path: Path) -> None:
    import dask

    ours, others = certificates(tmp_path / "ours"), certificates(tmp_path / "others")
    environment = {f"DASK_{key.upper().replace('.', '__').replace('-', '_')}": value for key, value in ours.items()}
    words = [
        "lab",
        "bench",
        "--problem",
        "deadline",
        "--traces",
        str(traces),
        *SHORT,
        *PRICED,
        "--strategies",
        "greedy",
    ]
    with (
        dask_boxes.forking(**environment) as forker,
        dask_boxes.boxes(forker, tmp_path, "one", protocol="tls") as boxes,
    ):
        command = [*words, "--on", boxes.address]
        none = CliRunner().invoke(app, command)
        assert (none.exit_code, "needs certificates" in none.stderr) == (2, True)
        with dask.config.set(ours):
            boxes.await_workers(1)
            done = CliRunner().invoke(app, command)
            assert done.exit_code == 0, done.output
            assert "one (tls://127.0.0.1:" in done.stderr
        with dask.config.set(others):
            foreign = CliRunner().invoke(app, command)
        assert (foreign.exit_code, "no scheduler answers" in foreign.stderr) == (1, True)


@pytest.mark.nightly
def test_a_part_that_fails_by_itself_fails_the_bench(forker: Forker, traces: Path, tmp_path: Path) -> None:
    from agent.lab.workers import dask_workers

    with dask_boxes.boxes(forker, tmp_path, "one") as boxes, dask_workers.connected(boxes.address) as workers:
        allowed = workers._client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.allowed_failures)
        assert allowed == dask_workers.ALLOWED_FAILURES
        with pytest.raises(ClusterError, match="KeyError") as found:
            list(workers.map(comparison._Scoring(), problem(traces), [comparison._Chunk("nobody", range(1))]))
        assert found.value.code == "part_failed"


@pytest.mark.nightly
def test_a_check_finds_the_same_on_workers_of_this_machine() -> None:
    chosen, over = strategy_files.load()["patient"], lookahead_check.drawn(1)
    assert lookahead_check.check(chosen, over) == lookahead_check.check(chosen, over, LocalWorkers(2))


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("tls://lab.example:8786", "tls://lab.example:8786"),
        ("tls://10.0.0.5", "tls://10.0.0.5:8786"),
        ("tcp://127.0.0.1:9000", "tcp://127.0.0.1:9000"),
        ("tcp://localhost", "tcp://localhost:8786"),
        ("tcp://[::1]:9000", "tcp://[::1]:9000"),
    ],
)
def test_an_address_has_tls_or_stays_on_this_machine(given: str, address: str) -> None:
    assert cluster_address.scheduler(given) == address


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("tcp://10.0.0.5:8786", "no_tls"),
        ("tcp://lab.example", "no_tls"),
        ("tcp://localhost.example", "no_tls"),
        ("tcp://0.0.0.0:8786", "no_tls"),
        ("127.0.0.1:8786", "bad_address"),
        ("ws://127.0.0.1:8786", "bad_address"),
        ("tls://lab:port", "bad_address"),
        ("tls://user@lab:8786", "bad_address"),
        ("tls://", "bad_address"),
        ("tls://lab/other", "bad_address"),
    ],
)
def test_any_other_address_is_refused_with_what_to_write(given: str, code: str) -> None:
    with pytest.raises(ClusterError) as found:
        cluster_address.scheduler(given)
    assert found.value.code == code
    assert "tls://HOST:8786" in found.value.sentence
    refused = CliRunner().invoke(app, ["lab", "check", "patient", "--on", given])
    assert (refused.exit_code, given in refused.stderr) == (2, True)
