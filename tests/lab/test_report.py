"""The report: its plots are text and lines inside one file, describe themselves in words, and follow the scheme."""

import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from playwright.async_api import async_playwright
from typer.testing import CliRunner, Result

from agent.cli.main import app
from agent.decide.deadline import hazards
from agent.lab.bench import comparison
from agent.lab.page import predicted_changes

CHROMIUM = shutil.which("chromium")
HOSTILE = "</svg><script>document.title='taken'</script>"
JOB = ["--job-hours", "8", "--deadline-hours", "9,12", "--window-hours", "12", "--stride-hours", "6", "--workers", "1"]
PRICES = ["--spot-price", "1", "--on-demand-price", "3"]
PLOTS = ["What a run costs", "Where it is won and lost", "One run, tick by tick", "How long capacity lasts"]


def traces(tmp_path: Path, pool: str = "zone") -> Path:
    place = tmp_path / "traces"
    place.mkdir(exist_ok=True)
    for number in range(2):
        up = [int((tick * (number + 3)) % 17 < 9) for tick in range(400)]
        row = {"pool": f"{pool}{number}", "gap_seconds": 600, "start": "2026-01-01T00:00:00Z", "available": up}
        (place / f"{number}.json").write_text(json.dumps(row))
    return place


def lab(*words: str) -> Result:
    return CliRunner().invoke(app, ["lab", *words])


def run(tmp_path: Path, *words: str, pool: str = "zone") -> tuple[Result, Path]:
    file = tmp_path / "report.html"
    where = ["--problem", "deadline", "--traces", str(traces(tmp_path, pool))]
    return lab("report", str(file), *where, *JOB, *PRICES, *words), file


def test_it_has_each_plot_with_words_for_it_in_one_file(tmp_path: Path) -> None:
    result, file = run(tmp_path, "--strategies", "levi,uniform_progress,optimum")
    assert result.exit_code == 0, result.output
    text = file.read_text("utf-8")
    assert [title for title in PLOTS if f"<h2>{title}" not in text] == []
    assert text.count("<svg class") + len(PLOTS) <= text.count("<svg")
    for words in re.findall(r'role="img" aria-label="([^"]*)"', text):
        assert re.search(r"\d", words)
    assert "Not drawn: cost against lateness" in text
    assert not any(word in text.replace("http-equiv", "") for word in ("http", "<script", "@import", "#000001"))
    assert "<!DOCTYPE svg" not in text
    assert ">uniform_progress</text>" in text


def test_slots_kept_warm_are_told_look_by_look(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    words = ["--window-hours", "6", "--stride-hours", "30", "--strategies", "spothedge_1,hedged", "--workers", "1"]
    result = lab(
        "report",
        str(file),
        "--problem",
        "availability",
        "--traces",
        str(traces(tmp_path)),
        *["--spot-price", "1"],
        *words,
    )
    assert result.exit_code == 0, result.output
    text = file.read_text("utf-8")
    assert "<h2>One day, look by look</h2>" in text
    assert re.search(r"hedged: \d+\.\d+ dollars, \d+\.\d slot hours interruptible", text)
    assert "cannot show a run" not in text


def test_a_saved_table_is_enough_for_what_it_holds(tmp_path: Path) -> None:
    words = ["bench", "--problem", "deadline", "--traces", str(traces(tmp_path)), *JOB, *PRICES, "--json"]
    (tmp_path / "bench.json").write_text(lab(*words, "--strategies", "levi,greedy").stdout)
    file = tmp_path / "page.html"
    assert lab("report", str(file), "--from", str(tmp_path / "bench.json")).exit_code == 0
    text = file.read_text("utf-8")
    assert "<h2>What a run costs</h2>" in text
    assert "a saved table has no runs" in text


@pytest.mark.nightly
def test_a_study_is_drawn_by_its_name(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    words = ["--problem", "deadline", "--traces", str(traces(tmp_path)), *JOB, *PRICES, "--storage", storage]
    tuned = lab("tune", "levi", *words, "--trials", "2", "--folds", "1", "--study", "mine")
    assert tuned.exit_code == 0, tuned.output
    result, file = run(tmp_path, "--strategies", "levi", "--storage", storage, "--study", "mine")
    assert result.exit_code == 0, result.output
    assert "Study mine/all." in file.read_text("utf-8")
    result, _ = run(tmp_path, "--strategies", "levi", "--storage", storage, "--study", "min")
    assert (result.exit_code, "has no study 'min'" in result.stderr) == (1, True)
    result, _ = run(tmp_path, "--strategies", "levi", "--storage", f"sqlite:///{tmp_path}/none.db", "--study", "mine")
    assert (result.exit_code, (tmp_path / "none.db").exists()) == (1, False)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--problem", "deadline", "--from", "HERE"],
        ["--from", "HERE"],
        ["--from", "nowhere.json"],
        ["--problem", "deadline", "--traces", "TRACES", *JOB, *PRICES, "--strategies", "levi", "--case", "no/such"],
    ],
)
def test_bad_input_ends_with_two_and_a_sentence(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "empty.json").write_text('{"problem": "deadline", "strategies": []}')
    places = {"HERE": str(tmp_path / "empty.json"), "TRACES": str(traces(tmp_path))}
    result = lab("report", str(tmp_path / "page.html"), *[places.get(word, word) for word in words])
    assert result.exit_code == 2
    assert result.stderr.startswith("gpubid: ")
    assert not (tmp_path / "page.html").exists()


DEADLINE = ["--problem", "deadline", "--traces", "TRACES", *JOB, *PRICES]
BIDS = ["--problem", "bids", "--climates", "calm,bidding_war", "--seeds", "1-2", "--hours", "1"]


@pytest.mark.parametrize(
    ("verb", "words", "said"),
    [
        ("report", [*DEADLINE, "--case", "no/such"], "the 72 of them are called 'zone0/0/9/0.05' to"),
        ("report", [*BIDS, "--case", "calm/3"], "the 4 of them are called 'calm/1' to 'bidding_war/2'"),
        ("report", [*DEADLINE, "--strategies", "luck"], "knows no luck"),
        ("report", [*BIDS, "--baseline", "luck"], "knows no luck"),
        ("report", [*DEADLINE, "--stride-hours", "inf"], "--stride-hours: write a number below 1,000,000"),
        ("bench", [*DEADLINE, "--window-hours", "inf"], "--window-hours: write a number below 1,000,000"),
        ("bench", [*BIDS, "--climates", ","], "--climates: no climate named; known:"),
        ("bench", [*BIDS, "--page", "/proc/no.html"], "/proc/no.html cannot be written"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(
    verb: str, words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ran(*_: object) -> None:
        raise AssertionError("it ran")

    monkeypatch.setattr(comparison, "_score_all", ran)
    file = [str(tmp_path / "page.html")] if verb == "report" else []
    result = lab(verb, *file, *[str(traces(tmp_path)) if word == "TRACES" else word for word in words])
    assert (result.exit_code, said in result.stderr) == (2, True), result.output
    assert not (tmp_path / "page.html").exists()


def test_a_page_that_was_there_stays_as_it_was_where_nothing_is_run(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("before")
    result, file = run(tmp_path, "--case", "no/such")
    assert (result.exit_code, file.read_text()) == (2, "before")


@pytest.mark.parametrize("words", [["--case", "calm/1"], ["--strategies", "levi"], ["--baseline", "levi"]])
def test_a_saved_table_takes_nothing_that_it_would_not_heed(words: list[str], tmp_path: Path) -> None:
    result = lab("report", str(tmp_path / "page.html"), "--from", str(tmp_path / "bench.json"), *words)
    assert (result.exit_code, "a saved table has no runs" in result.stderr) == (2, True)


def test_a_folder_of_traces_is_nothing_to_a_problem_that_runs_on_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUBID_LAB_TRACES", "/nowhere")
    words = ["--problem", "bids", "--climates", "calm", "--seeds", "1", "--hours", "0.2", "--workers", "1"]
    result = lab("report", str(tmp_path / "page.html"), *words, "--strategies", "ladder")
    assert result.exit_code == 0, result.output
    assert "how long capacity lasts: this problem runs on no traces" in (tmp_path / "page.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("lacking", "words"),
    [("matplotlib", []), ("psycopg", ["--study", "mine", "--storage", "postgresql+psycopg://nobody@localhost:1/none"])],
)
def test_without_the_extra_it_says_what_to_install(
    lacking: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, lacking, None)
    result, file = run(tmp_path, *words)
    assert (result.exit_code, "pip install 'gpubid[lab]'" in result.stderr) == (2, True)
    assert not file.exists()


def test_shares_of_one_rate_are_exponential_and_models_count_by_the_spells_they_make() -> None:
    ages = np.array([0.0, 0.5, 3.0])
    plain = hazards.Hazards(edges=(0.0, 1.0), losses=(0.7, 0.7), returns=(0.2, 0.2))
    assert predicted_changes.shares(plain, ages, of_capacity=True).tolist() == pytest.approx(
        np.exp(-0.7 * ages).tolist()
    )
    assert predicted_changes.shares(plain, ages, of_capacity=False).tolist() == pytest.approx(
        np.exp(-0.2 * ages).tolist()
    )
    # Of the same time, the model of ten times the rates makes ten times the spells.
    mixed = hazards.Hazards((0.0,), (1.0,), (1.0,), ((1.0, 1.0), (10.0, 10.0)), (0.5, 0.5))
    expected = (np.exp(-ages) + 10 * np.exp(-10 * ages)) / 11
    assert predicted_changes.shares(mixed, ages, of_capacity=True).tolist() == pytest.approx(expected.tolist())


@pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not here")
@pytest.mark.nightly
async def test_one_picture_serves_both_schemes_and_names_of_others_are_text(tmp_path: Path) -> None:
    result, file = run(tmp_path, "--strategies", "levi,greedy", pool=HOSTILE[:60])
    assert result.exit_code == 0, result.output
    said: list[str] = []
    inks = []
    async with async_playwright() as tools:
        browser = await tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            tab = await browser.new_page(color_scheme=scheme, viewport={"width": 360, "height": 740})
            tab.on("console", lambda told: said.append(told.text))
            await tab.goto(file.as_uri())
            label = tab.locator("figure text", has_text="greedy").first
            inks.append(await label.evaluate("node => getComputedStyle(node).fill"))
            assert await tab.title() != "taken"
            assert await tab.evaluate("document.scrollingElement.scrollWidth <= window.innerWidth")
            assert await tab.evaluate("new Set([...document.querySelectorAll('[id]')].map(e => e.id)).size") == (
                await tab.locator("[id]").count()
            )
        await browser.close()
    assert inks == ["rgb(27, 31, 36)", "rgb(230, 237, 243)"]
    assert said == []
