"""Alerts: each fires and stays silent in its case, asks for figures that exist, and has its heading in the runbook."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]
from prometheus_client import CollectorRegistry, generate_latest

from agent.telemetry.metric_updates import Metrics

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus"
CASES = sorted(file.name for file in RULES.glob("*_test.yml"))
SUFFIXES = ("_total", "_count", "_sum", "_bucket")
OF_OTHERS = {"up", "process_start_time_seconds"}

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool of Debian's prometheus is not here"
)


def promtool(*words: str, given: bytes = b"") -> str:
    done = subprocess.run(["promtool", *words], cwd=RULES, input=given, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    return done.stdout.decode()


def alerts() -> list[dict[str, str]]:
    groups = yaml.safe_load((RULES / "alerts.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def recorded() -> list[dict[str, str]]:
    groups = yaml.safe_load((RULES / "recording.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


@needs_promtool
def test_rules_are_sound_and_every_case_holds() -> None:
    assert "FAILED" not in promtool("check", "rules", "--lint=all", "recording.yml", "alerts.yml")
    assert "FAILED" not in promtool("test", "rules", *CASES)


@needs_promtool
def test_the_scrape_configuration_is_sound(tmp_path: Path) -> None:
    for name in ("scrape.yml", "recording.yml", "alerts.yml"):
        shutil.copy(RULES / name, tmp_path)
    assert "SUCCESS" in promtool("check", "config", str(tmp_path / "scrape.yml"))


@needs_promtool
def test_metrics_are_clean_of_lint_and_few() -> None:
    registry = CollectorRegistry()
    Metrics(registry, ["vast", "runpod"], ["train", "serve"])
    told = promtool("check", "metrics", "--extended", given=generate_latest(registry))
    assert "gpubid_" in told


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    tests = [test for name in CASES for test in yaml.safe_load((RULES / name).read_text())["tests"]]
    cases = [case for test in tests for case in test["alert_rule_test"]]
    fires = {case["alertname"] for case in cases if case.get("exp_alerts")}
    silent = {case["alertname"] for case in cases if not case.get("exp_alerts")}
    assert fires == silent == {rule["alert"] for rule in alerts()}


def test_the_runbook_has_one_heading_for_each_alert_in_order() -> None:
    headings = re.findall(r"^## (\w+)$", (DEPLOY / "runbook.md").read_text(), re.MULTILINE)
    assert headings == [rule["alert"] for rule in alerts()]


def test_every_part_of_the_runbook_says_meaning_first_look_and_mend() -> None:
    parts = re.split(r"^## ", (DEPLOY / "runbook.md").read_text(), flags=re.MULTILINE)[1:]
    for part in parts:
        assert re.findall(r"^\*\*(\w+)\*\*", part, re.MULTILINE) == ["Means", "Look", "Fix"], part


def test_rules_ask_for_figures_that_exist() -> None:
    registry = CollectorRegistry()
    Metrics(registry, ["vast"], ["train"])
    known = {family.name for family in registry.collect()} | OF_OTHERS | {rule["record"] for rule in recorded()}
    for rule in [*alerts(), *recorded()]:
        bare = re.sub(r'"[^"]*"|\{[^}]*\}|\[[^]]*\]|\b(by|on|group_left) \([^)]*\)', "", rule["expr"])
        asked = set(re.findall(r"[a-z_]+:[\w:]+|\bgpubid_\w+|\bup\b|\bprocess_\w+", bare))
        assert asked, rule
        for name in asked:
            plain = next((name.removesuffix(end) for end in SUFFIXES if name.endswith(end)), name)
            assert name in known or plain in known, f"{name} in {rule}"
