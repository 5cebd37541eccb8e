"""The page of a bench: whole in one file, escaped, readable in both schemes and on a phone, and made from JSON too."""

import json
import shutil
from pathlib import Path

import pytest
from playwright.async_api import async_playwright
from typer.testing import CliRunner

from agent.cli.main import app
from agent.lab.page import html, saved_table

CHROMIUM = shutil.which("chromium")
HOSTILE = '<img src=x onerror="alert(1)"></style><script>alert(1)</script>'


def document(name: str = "levi", **changes: object) -> dict[str, object]:
    row = {"mean_cost": 99.5, "ratio_to_optimum": 1.1, "late": 0, "difference_vs_baseline": 0.0, "digest": "abc"}
    rows = [row | {"strategy": name, "ci95_vs_baseline": [0, 0]}]
    rows += [row | {"strategy": "other", "ci95_vs_baseline": [1.5, 3.25], "difference_vs_baseline": 2.0, "late": 3}]
    made = {"problem": "deadline", "traces": "set", "runs": 8, "baseline": name, "seed": 3, "bootstrap_draws": 2000}
    return {**made, "market": "recorded", "spot_price": None, "strategies": rows, **changes}


def bench(tmp_path: Path, *words: str) -> object:
    up = [int(tick % 11 < 6) for tick in range(400)]
    row = {"pool": "zone", "gap_seconds": 600, "start": "2026-01-01T00:00:00Z", "available": up}
    (tmp_path / "traces").mkdir(exist_ok=True)
    (tmp_path / "traces/zone.json").write_text(json.dumps(row))
    given = ["--job-hours", "8", "--deadline-hours", "9", "--window-hours", "12", "--stride-hours", "12"]
    given += ["--workers", "1", "--spot-price", "1", "--on-demand-price", "3", "--strategies", "levi,optimum"]
    where = ["--problem", "deadline", "--traces", str(tmp_path / "traces")]
    return CliRunner().invoke(app, ["lab", "bench", *where, *given, *words])


def test_the_command_writes_a_page_beside_what_it_prints(tmp_path: Path) -> None:
    file = tmp_path / "bench.html"
    result = bench(tmp_path, "--json", "--page", str(file))
    found = json.loads(result.stdout)  # type: ignore[attr-defined]
    text = file.read_text("utf-8")
    for row in found["strategies"]:
        assert f'<th scope="row">{row["strategy"]}</th><td class="number">{row["mean_cost"]:,.3f}</td>' in text
    assert found["market"] in text
    assert not any(word in text.replace("http-equiv", "") for word in ("http", "<script", "@import", "url("))


def test_a_page_that_could_not_be_written_is_said_before_anything_runs(tmp_path: Path) -> None:
    result = bench(tmp_path, "--page", str(tmp_path / "no/where.html"))
    assert result.exit_code == 2  # type: ignore[attr-defined]
    assert "--page" in result.stderr or "cannot be written" in result.stderr  # type: ignore[attr-defined]


def test_names_of_others_are_text() -> None:
    text = html.page([saved_table.table(document(HOSTILE, traces=HOSTILE, market=HOSTILE))])
    assert HOSTILE not in text
    assert text.count("<script") == 0
    assert text.count("</style>") == 1


def test_what_is_semi_synthetic_or_late_or_digested_is_said() -> None:
    text = html.page([saved_table.table(document(semi_synthetic=True, market="an auction drawn from records"))])
    assert "<strong>Semi-synthetic:</strong> an auction drawn from records." in text
    assert '<td class="number late">3</td>' in text
    assert "<dt>numbers of other</dt><dd><code>abc</code></dd>" in text
    assert "<dt>spot price</dt><dd>the data's own</dd>" in text


def test_several_tables_stand_on_one_page_under_their_names() -> None:
    text = html.page([saved_table.table(document(climate=climate, unit="$ a share")) for climate in ("calm", "war")])
    assert "<h2>calm</h2>" in text
    assert "<h2>What it ran on: war</h2>" in text
    assert text.count("<table>") == 2
    assert "Mean $" not in text


def test_a_cost_that_is_not_finite_is_a_dash() -> None:
    made = document()
    made["strategies"][0] |= {"mean_cost": None, "ratio_to_optimum": None, "ci95_vs_baseline": [None, None]}  # type: ignore[index]
    assert f'<td class="number">{html.NONE}</td>' in html.page([saved_table.table(made)])


@pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not here")
@pytest.mark.nightly
async def test_it_shows_itself_without_script_in_both_schemes_and_on_a_phone(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(html.page([saved_table.table(document(HOSTILE))]), "utf-8")
    grounds, asked, said = [], [], []
    async with async_playwright() as tools:
        browser = await tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            context = await browser.new_context(
                color_scheme=scheme, java_script_enabled=True, viewport={"width": 360, "height": 740}
            )
            tab = await context.new_page()
            tab.on("request", lambda request: asked.append(request.url))
            tab.on("console", lambda message: said.append(message.text))
            await tab.goto(file.as_uri())
            grounds.append(await tab.evaluate("getComputedStyle(document.body).backgroundColor"))
            assert await tab.evaluate("document.scrollingElement.scrollWidth <= window.innerWidth")
            assert await tab.locator("tbody img, script").count() == 0
        await browser.close()
    assert grounds == ["rgb(255, 255, 255)", "rgb(13, 17, 23)"]
    assert (asked, said) == ([file.as_uri()] * 2, [])
