"""The handbook is whole and current: its contents, its generated pages, its guesses, and MkDocs builds it."""

import ast
import json
import re
import subprocess
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
HANDBOOK = ROOT / "deploy/handbook"
PAGES = sorted((HANDBOOK / "pages").glob("*.md"))
GUESSES = 43
PARTS = ["Context", "Decision", "Consequences", "Measured"]


def test_every_page_is_in_the_table_of_contents() -> None:
    contents = (HANDBOOK / "mkdocs.yml").read_text().split("\nnav:\n")[1]
    assert {page.name for page in PAGES} <= set(re.findall(r": (\S+\.md)$", contents, re.MULTILINE))


def test_the_first_page_names_every_other() -> None:
    first = (HANDBOOK / "pages/index.md").read_text()
    assert [page.name for page in PAGES if page.name != "index.md" and f"({page.name})" not in first] == []


@pytest.mark.skipif(find_spec("mkdocs") is None, reason="mkdocs is not here: `make setup` installs it")
def test_the_handbook_is_built_without_a_warning(tmp_path: Path) -> None:
    config = str(HANDBOOK / "mkdocs.yml")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--config-file",
        config,
        "--site-dir",
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = [page.name for page in tmp_path.glob("*.html") if re.search(r'<script src="https?:', page.read_text())]
    assert loaded == [], "these pages load a script from elsewhere"
    assert {f"{page.stem}.html" for page in PAGES} <= {page.name for page in tmp_path.glob("*.html")}


def test_the_generated_pages_are_current() -> None:
    results = _script("results")
    texts = {**_script("write").pages(), results.PAGE: results.page()}
    due = [name for name, text in texts.items() if (HANDBOOK / "pages" / name).read_text() != text]
    assert due == [], "run `make handbook`"


def test_every_bench_of_the_handbook_was_measured_as_it_stands() -> None:
    results = _script("results")
    commands = {name: results.parts(name) for name in results.benches()}
    kept = {file: json.loads(file.read_text())["command"] for file in results.MEASURED.rglob("*.json")}
    now = {file: command for each in commands.values() for file, command in each.items()}
    assert kept == {file: now.get(file) for file in kept}, "run `make measure BENCH=NAME`"
    assert [name for name, files in commands.items() if not kept.keys() & files.keys()] == []


@pytest.mark.nightly
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no checkout: a part has no commit")
def test_a_part_of_a_bench_is_measured_once_on_the_same_program(tmp_path: Path) -> None:
    results, name = _script("results"), "parted"
    command = "gpubid lab bench --problem bids --climates calm,blackout --seeds 1 --hours 0.1 --strategies on_demand"
    results.benches = lambda: {name: {"command": command, "each": "--climates"}}
    results.MEASURED = tmp_path
    results.measure(name, tmp_path)
    calm, blackout = (tmp_path / name / f"{climate}.json" for climate in ("calm", "blackout"))
    assert [json.loads(file.read_text())["printed"]["climate"] for file in (calm, blackout)] == ["calm", "blackout"]
    calm.unlink()
    written = blackout.stat().st_mtime_ns
    results.measure(name, tmp_path)
    assert calm.exists()
    assert blackout.stat().st_mtime_ns == written
    blackout.write_text(json.dumps(json.loads(blackout.read_text()) | {"command": "another"}))
    results.measure(name, tmp_path)
    assert json.loads(blackout.read_text())["command"] == command.replace("calm,blackout", "blackout")


def test_the_figures_of_several_tables_are_in_one_with_their_intervals() -> None:
    results = _script("results")

    def table(value: str) -> dict[str, Any]:
        ours = {"strategy": "patient", "fitted_on": [], "figures": {"useful h": 20.0, "starts": 2.0}}
        gaps = {"useful h": {"difference": 1.0, "ci95": [0.5, 1.5]}}
        rule = ours | {"strategy": "on_demand", "fitted_on": ["3 of these seeds"], "figure_differences": gaps}
        return {"baseline": "patient", "value": value, "strategies": [ours, rule]}

    rows = results.figure_rows([table("0.5"), table("1")], ["useful h", "starts"], ["value"])
    assert rows[0] == ["value", "strategy", "useful h", "less patient, 95 %", "starts"]
    assert rows[2] == ["0.5", "on_demand *", "20", "+1.00 [+0.50, +1.50]", "2"]
    assert [row[:2] for row in rows[3:]] == [["1", "patient"], ["1", "on_demand *"]]


def test_a_row_that_is_compared_with_another_rule_names_it() -> None:
    row = {"strategy": "hedged_as_round_robin", "fitted_on": [], "mean_cost": 58.87, "against": "round_robin"}
    row |= {"difference_vs_baseline": -0.8, "ci95_vs_baseline": [-1.4, -0.32]}
    _, cells = _script("results").figure_rows([{"baseline": "spothedge_1", "strategies": [row]}], ["mean $"], [])
    assert cells[1:] == ["58.87", "-0.80 [-1.40, -0.32] (less round_robin)"]


def test_an_unknown_bench_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPUBID_TRACES", raising=False)
    results = _script("results")
    assert "there is no bench deadlin in" in results.main(["deadlin"])
    assert "GPUBID_TRACES is not set" in results.main([next(iter(results.benches()))])


@pytest.mark.parametrize("recipe", sorted((HANDBOOK / "recipes").iterdir()), ids=lambda recipe: recipe.name)
def test_a_recipe_is_on_its_page_word_for_word(recipe: Path) -> None:
    kind = {".py": "python", ".toml": "toml"}[recipe.suffix]
    assert f"\n```{kind}\n{recipe.read_text()}```\n" in (HANDBOOK / "pages/recipes.md").read_text()


def test_every_guess_leads_to_the_function_that_it_names() -> None:
    page = (HANDBOOK / "pages/one-guess.md").read_text()
    guesses = re.findall(r"^\| .+ \| `(agent/\S+\.py)` \| `(\w+)` \|$", page, re.MULTILINE)
    assert len(guesses) == GUESSES
    assert [(file, name) for file, name in guesses if name not in _names_of(ROOT / file)] == []


def test_every_decision_is_a_record_of_its_own() -> None:
    rows = re.findall(
        r"^\| (\d+) \| \[(.+)\]\(decisions/(.+)\) \|$", (HANDBOOK / "pages/decisions.md").read_text(), re.MULTILINE
    )
    records = sorted((HANDBOOK / "pages/decisions").glob("*.md"))
    assert [name for _, _, name in rows] == [record.name for record in records]
    for place, ((number, title, name), record) in enumerate(zip(rows, records, strict=True), start=1):
        assert int(number) == place == int(name.split("-")[0])
        text = record.read_text()
        assert text.startswith(f"# {number}. {title}\n")
        assert re.findall(r"^\*\*(\w+)\.\*\* ", text, re.MULTILINE) == PARTS, name
        measured = text.split("**Measured.** ")[1]
        assert "`" in measured or measured == "Not measured.\n", f"{name}: no command, and not called unmeasured"


def _names_of(file: Path) -> set[str]:
    if not file.is_file():
        return set()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in ast.parse(file.read_text()).body if isinstance(node, kinds)}


def _script(name: str) -> Any:
    spec = spec_from_file_location(f"handbook_{name}", HANDBOOK / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
