"""Dashboards: current, right by Grafana's own schema, and every panel answered by a real Prometheus with a week in it.

The week is a rehearsed day of our own simulator, seven times over; no Grafana server was at hand.
"""

import asyncio
import dataclasses
import json
import re
import shutil
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml  # type: ignore[import-untyped]
from prometheus_client import CollectorRegistry
from prometheus_client.samples import Sample

from agent.app import App
from agent.cli.rehearsing.rehearsal import Scene, rehearse
from agent.cli.shared import session
from agent.cycle import Pass
from agent.pass_metrics import Figures
from agent.telemetry import metric_families
from agent.telemetry.metric_updates import Metrics
from tests.support import ports
from tests.support.once import made_once

ROOT = Path(__file__).parents[2]
GRAFANA = ROOT / "deploy/grafana"
BOARDS = ("fleet", "interruptions", "money", "markets")
DAY = 86_400.0
DAYS = 7
SAMPLE_SECONDS = 1200.0
PATIENCE_SECONDS = 60.0
COLOURS = ("green", "orange", "red", "text")
"""Of a figure under its limit, near it, over it, and without one."""

Key = tuple[str, tuple[tuple[str, str], ...]]

needs_prometheus = pytest.mark.skipif(shutil.which("prometheus") is None, reason="Debian's prometheus is not here")


def boards() -> dict[str, dict[str, Any]]:
    return {name: json.loads((GRAFANA / f"{name}.json").read_text()) for name in BOARDS}


def panels() -> Iterator[tuple[str, str, str]]:
    for name, board in boards().items():
        for panel in board["panels"]:
            for target in panel.get("targets", ()):
                yield name, panel["title"], target["expr"]


def marks() -> Iterator[str]:
    for board in boards().values():
        yield from (mark["expr"] for mark in board["annotations"]["list"])


class Week:
    """Samples of one rehearsed day, repeated as seven days."""

    def __init__(self) -> None:
        self.registry = metric_families.registry()
        self._metrics = Metrics(self.registry, ["vast"], ["train"])
        self._figures = Figures(self._metrics)
        self._taken: list[tuple[float, dict[str, tuple[str, list[Sample]]]]] = []

    def see(self, app: App, done: Pass) -> None:
        self._figures.see(app, done)
        at = done.fleet.now.timestamp()
        if not self._taken or at >= self._taken[-1][0] + SAMPLE_SECONDS:
            self._metrics.see_cycle(0.01, done.fleet.now, is_good=True)
            self._taken.append((at, {each.name: (each.type, each.samples) for each in self.registry.collect()}))

    def told(self) -> tuple[str, float]:
        """Return the week in OpenMetrics, and its last instant."""
        kinds = {name: kind for _, taken in self._taken for name, (kind, _) in taken.items()}
        lines: dict[str, list[str]] = defaultdict(list)
        last: dict[Key, float] = {}
        end = 0.0
        for day in range(DAYS):
            carried = dict(last)
            for at, taken in self._taken:
                end = at + day * DAY
                for name, (kind, samples) in taken.items():
                    for sample in samples:
                        key = (sample.name, tuple(sorted(sample.labels.items())))
                        rises = kind in {"counter", "histogram"}
                        value = sample.value + (carried.get(key, 0.0) if rises else 0.0)
                        last[key] = value
                        lines[name].append(f"{sample.name}{_labels(sample)} {value!r} {end:.3f}")
        text = "".join(f"# TYPE {name} {kinds[name]}\n" + "\n".join(lines[name]) + "\n" for name in lines)
        return text + "# EOF\n", end


def _labels(sample: Sample) -> str:
    inner = ",".join(f"{key}={json.dumps(str(text))}" for key, text in sorted(sample.labels.items()))
    return f'{{job="gpubid",instance="box"{"," if inner else ""}{inner}}}'


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, float]]:
    """A real Prometheus with the week in it, and the instant at which it ends."""
    folder = made_once(tmp_path_factory, "prometheus", _record)
    end = float((folder / "end").read_text())
    (folder / "prometheus.yml").write_text("{}")
    address = f"127.0.0.1:{ports.free()}"
    words = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    words += ["--storage.tsdb.retention.time=10y", f"--web.listen-address={address}"]
    with (folder / "log").open("wb") as told:
        process = subprocess.Popen(["prometheus", *words], stdout=told, stderr=told)
        try:
            _wait(f"http://{address}/-/ready")
            yield f"http://{address}", end
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)


def _record(folder: Path) -> None:
    week = Week()
    config, tuned = session.read(ROOT / "agent.toml")
    config = dataclasses.replace(config, poll=timedelta(minutes=1))
    asyncio.run(rehearse(config, tuned, Scene("bidding_war", 24.0, 27, on_pass=week.see)))
    text, end = week.told()
    (folder / "week.txt").write_text(text)
    (folder / "end").write_text(repr(end))
    # It reads the file once a block, which is two hours by default.
    made = ["promtool", "tsdb", "create-blocks-from", "--max-block-duration=168h", "openmetrics"]
    made += [str(folder / "week.txt"), str(folder / "data")]
    subprocess.run(made, check=True, capture_output=True, timeout=PATIENCE_SECONDS)


def _wait(url: str) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()  # noqa: S310 - our own server
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return


def asked(base: str, at: float, expression: str) -> list[dict[str, Any]]:
    query = expression.replace("$__rate_interval", "1h").replace("$__range", "7d").replace("[15m]", "[1h]")
    query = query.replace("$workload", ".*").replace("$market", ".*")
    words = urllib.parse.urlencode({"query": query, "time": f"{at:.3f}"})
    with urllib.request.urlopen(f"{base}/api/v1/query?{words}", timeout=PATIENCE_SECONDS) as answer:  # noqa: S310 - our own server
        told = json.load(answer)
    assert told["status"] == "success", told
    found: list[dict[str, Any]] = told["data"]["result"]
    return found


def test_the_committed_dashboards_are_those_of_the_source(tmp_path: Path) -> None:
    for file in GRAFANA.glob("*.py"):
        shutil.copy(file, tmp_path)
    subprocess.run([sys.executable, str(tmp_path / "dashboards.py")], check=True, timeout=PATIENCE_SECONDS)
    for name in BOARDS:
        assert (tmp_path / f"{name}.json").read_text() == (GRAFANA / f"{name}.json").read_text()


def test_dashboards_are_right_by_grafanas_own_schema() -> None:
    schema = json.loads((Path(__file__).parent / "grafana.schema.json").read_text())
    for board in boards().values():
        for mark in board["annotations"]["list"]:
            # A data source reads its own fields of an annotation: the schema of the dashboard has no place for them.
            assert mark.pop("expr")
        jsonschema.Draft7Validator(schema).validate(board)
    broken = boards()["fleet"]
    broken["panels"][1]["gridPos"]["h"] = "tall"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(schema).validate(broken)


def test_every_panel_has_a_unit_a_link_and_a_word_on_what_it_tells() -> None:
    for board in boards().values():
        for panel in board["panels"]:
            if panel["type"] != "row":
                assert panel["description"], panel["title"]
                assert panel["links"], panel["title"]
                assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]


def test_panels_ask_for_figures_that_exist() -> None:
    registry = CollectorRegistry()
    Metrics(registry, ["vast"], ["train"])
    known = {family.name for family in registry.collect()}
    for _, title, expression in (*panels(), *(("", "annotations", mark) for mark in marks())):
        for name in re.findall(r"\bgpubid_\w+", expression):
            assert {name, re.sub(r"_(total|bucket|count|sum)$", "", name)} & known, f"{name} in {title}"


@pytest.mark.long(15)
@needs_prometheus
@pytest.mark.nightly
def test_every_panel_is_answered_from_a_week_of_history(prometheus: tuple[str, float]) -> None:
    base, end = prometheus
    # What names a lease or a cooldown has no series at an instant without one. No bill is compared in a rehearsal.
    hours = [end - hour * 3600 for hour in range(24)]
    empty = [
        (name, title) for name, title, expression in panels() if not any(asked(base, at, expression) for at in hours)
    ]
    compared = compared_panels()
    assert set(empty) <= {
        ("money", title) for title in ("Charged over reckoned", *(each["title"] for each in compared))
    }
    for at in hours[::6]:
        for panel in compared:
            colour, reference = answering(base, at, panel, {})
            assert (colour in COLOURS, reference) == (True, "reference")


def test_every_panel_has_a_place_of_its_own() -> None:
    for board in boards().values():
        taken: set[tuple[int, int]] = set()
        for panel in board["panels"]:
            place = panel["gridPos"]
            mine = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
            assert max(x for x, _ in mine) < 24, panel["title"]
            assert not mine & taken, panel["title"]
            taken |= mine


def test_each_figure_that_opens_the_money_board_has_its_colours() -> None:
    first = [panel for panel in boards()["money"]["panels"] if panel["gridPos"]["y"] == 1]
    compared = {panel["title"] for panel in compared_panels()}
    assert compared == {"Today", "This month", "Dollars per useful hour"}
    for panel in first:
        steps = panel["fieldConfig"]["defaults"].get("thresholds", {}).get("steps", [])
        assert {"green", "orange", "red"} <= {step["color"] for step in steps} | set(colours(panel).values()), panel


@needs_prometheus
def test_a_figure_has_one_colour_by_its_share_of_what_it_is_compared_to(prometheus: tuple[str, float]) -> None:
    base, end = prometheus
    for panel in compared_panels():
        figure, reference = (panel["targets"][number]["expr"].partition(" unless ")[0] for number in (3, 4))
        (spent,), (limit,) = asked(base, end, figure), asked(base, end, reference)
        share = float(spent["value"][1]) / float(limit["value"][1])
        for wanted, colour in ((0.5, "green"), (0.79, "green"), (0.81, "orange"), (0.99, "orange"), (1.01, "red")):
            scaled = f"({wanted / share} * {figure})"
            assert answering(base, end, panel, {figure: scaled}) == [colour, "reference"]
        assert answering(base, end, panel, {reference: "(vector(1) < 0)"}) == ["text"]


def compared_panels() -> list[dict[str, Any]]:
    """The panels whose limit is a figure: each colour has a query of its own, and the last one asks for the limit."""
    return [panel for panel in boards()["money"]["panels"] if panel.get("fieldConfig", {}).get("overrides")]


def colours(panel: dict[str, Any]) -> dict[str, str]:
    """The colour of each query of a panel."""
    found = {}
    for each in panel["fieldConfig"]["overrides"]:
        (held,) = each["properties"]
        assert (each["matcher"]["id"], held["id"]) == ("byFrameRefID", "color")
        found[each["matcher"]["options"]] = held["value"]["fixedColor"]
    return found


def answering(base: str, at: float, panel: dict[str, Any], replaced: dict[str, str]) -> list[str]:
    """The colours of the queries that answer, with parts of them replaced; "reference" for the last one."""
    *shades, reference = panel["targets"]
    told = []
    for target in (*shades, reference):
        expression = target["expr"]
        for old, new in replaced.items():
            assert target is reference or old in expression
            expression = expression.replace(old, new)
        if asked(base, at, expression):
            told.append("reference" if target is reference else colours(panel)[target["refId"]])
    return told


@needs_prometheus
def test_interruptions_are_marked_with_workload_market_and_cause(prometheus: tuple[str, float]) -> None:
    base, end = prometheus
    for mark in set(marks()):
        found = asked(base, end, mark.replace("[1m]", "[7d]"))
        assert found
        assert set(found[0]["metric"]) == {"workload", "market", "cause"}


@needs_prometheus
def test_the_history_is_a_week_long(prometheus: tuple[str, float]) -> None:
    base, end = prometheus
    found = asked(base, end, "sum(increase(gpubid_spend_dollars_total[6d]))")
    assert float(found[0]["value"][1]) > 0
    assert asked(base, end - 6 * DAY, "sum(gpubid_leases)")


@needs_prometheus
def test_recording_rules_are_answered_too(prometheus: tuple[str, float]) -> None:
    base, end = prometheus
    (group,) = yaml.safe_load((ROOT / "deploy/prometheus/recording.yml").read_text())["groups"]
    recorded = {rule["record"] for rule in group["rules"]}
    plain = [rule for rule in group["rules"] if not any(name in rule["expr"] for name in recorded)]
    assert plain
    for rule in plain:
        assert asked(base, end, rule["expr"]), rule
