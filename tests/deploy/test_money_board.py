"""The figures that open Grafana's money board, asked by promtool of series that the daemon writes in rare states."""

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

MONEY = Path(__file__).parents[2] / "deploy/grafana/money.json"
DAY_CAP = 'gpubid_budget_dollars{window="day"}'
DAY_SPENT = 'gpubid_spent_dollars{window="day"}'
CREDIT = 'gpubid_credit_lasts_seconds{market="vast"}'
FRESH = 'gpubid_market_available{market="vast"}'
HOURS = 24
"""Each series has a sample an hour, and is asked at the end of so many."""

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool of Debian's prometheus is not here"
)


def panel(title: str) -> dict[str, Any]:
    """The first panel of a title."""
    found: dict[str, Any] = next(each for each in json.loads(MONEY.read_text())["panels"] if each["title"] == title)
    return found


def queries(title: str) -> list[str]:
    return [each["expr"].replace("$workload", ".*").replace("$market", ".*") for each in panel(title)["targets"]]


def check(place: Path, series: Mapping[str, str], answers: Mapping[str, list[float]]) -> None:
    """Fail unless each query has this value, or none, after a day of these series, which are in promtool's notation."""
    tests = [
        {
            "expr": f"max({query})",
            "eval_time": f"{HOURS}h",
            "exp_samples": [{"labels": "{}", "value": value} for value in values],
        }
        for query, values in answers.items()
    ]
    given = [{"series": name, "values": values} for name, values in series.items()]
    case = {"interval": "1h", "input_series": given, "promql_expr_test": tests}
    (place / "case.yml").write_text(json.dumps({"rule_files": [], "tests": [case]}))
    done = subprocess.run(
        ["promtool", "test", "rules", str(place / "case.yml")], capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 0, (done.stdout + done.stderr).decode()


@needs_promtool
@pytest.mark.parametrize(
    ("cap", "answers"),
    [
        ("0", [[], [], [], [0.0], []]),
        ("10", [[0.0], [], [], [], [10.0]]),
    ],
    ids=["without a cap", "with a cap"],
)
def test_a_cap_that_is_not_set_is_no_limit(tmp_path: Path, cap: str, answers: list[list[float]]) -> None:
    series = {DAY_SPENT: "0x24", DAY_CAP: f"{cap}x24"}
    check(tmp_path, series, dict(zip(queries("Today"), answers, strict=True)))


@needs_promtool
@pytest.mark.parametrize(
    ("credit", "lasts", "colour"),
    [("0x24", 0.0, "red"), ("86399x24", 86_399.0, "red"), ("90000x24", 90_000.0, "orange"), (None, -1.0, "text")],
    ids=["used up", "under a day", "under two days", "no estimate"],
)
def test_credit_that_is_used_up_is_red_and_an_unknown_one_is_not(
    tmp_path: Path, credit: str | None, lasts: float, colour: str
) -> None:
    (query,) = queries("Runway")
    check(tmp_path, {FRESH: "1x24"} | ({CREDIT: credit} if credit else {}), {query: [lasts]})
    defaults = panel("Runway")["fieldConfig"]["defaults"]
    steps = [each for each in defaults["thresholds"]["steps"] if each["value"] is None or each["value"] <= lasts]
    assert steps[-1]["color"] == colour
    (mapping,) = defaults["mappings"]
    assert (mapping["options"].get(f"{lasts:.0f}", {}).get("text") == "no estimate") == (colour == "text")


@needs_promtool
@pytest.mark.parametrize("is_priced", [True, False], ids=["one has a price", "none has a price"])
def test_a_useful_hour_is_compared_over_the_workloads_with_a_price(tmp_path: Path, *, is_priced: bool) -> None:
    # An hour of each costs: of `cheap` $0.5, with a price of $1 on demand; of `dear` $4, with no such price.
    series = {
        'gpubid_spend_dollars_total{workload="cheap", market="vast"}': "0+0.5x24",
        'gpubid_useful_seconds_total{workload="cheap"}': "0+3600x24",
        'gpubid_spend_dollars_total{workload="dear", market="vast"}': "0+4x24",
        'gpubid_useful_seconds_total{workload="dear"}': "0+3600x24",
    }
    if is_priced:
        series['gpubid_on_demand_worth_dollars_total{workload="cheap"}'] = "0+1x24"
    answers = [[0.5], [], [], [], [1.0]] if is_priced else [[], [], [], [2.25], []]
    check(tmp_path, series, dict(zip(queries("Dollars per useful hour"), answers, strict=True)))
