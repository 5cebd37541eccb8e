"""The timeline of a day of bidding, lease by lease, is the scored day; its picture and its table agree, escaped."""

import json
import re
import shutil
from dataclasses import replace
from datetime import timedelta
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from playwright.async_api import async_playwright
from typer.testing import CliRunner, Result

from agent import strategy_files
from agent.cli.main import app
from agent.domain.market.tenure import Tenure
from agent.lab.bids import bid_baselines, bids_problem, bids_report, day
from agent.lab.engine import run_timeline
from agent.lab.page import bidding_day, html, saved_table
from agent.simulator.climate import Climate, Demand
from agent.simulator.vast.world import World

CHROMIUM = shutil.which("chromium")
HOSTILE = "</svg></td><script>document.title='taken'</script>"
TUNED = strategy_files.load() | bid_baselines.tuned()
STILL = Climate(
    name="still",
    demand=Demand(arrivals=0.0, taken=0.0, fight_back=0.0),
    price_walks_per_day=0.0,
    failures=0.0,
    pull_failure_probability=0.0,
)
GIVEN = ["--problem", "bids", "--climates", "bidding_war", "--seeds", "3", "--hours", "3", "--workers", "1"]
NAMED = ["--strategies", "hedged,floor_relaunch,hindsight"]


class Beaten(day.Day):
    """A day on which nothing happens but that somebody outbids our first lease by two cents after forty minutes."""

    def step(self) -> None:
        super().step()
        contracts = list(self.world.contracts.values())
        if len(contracts) == 1 and self.clock.now() >= day.START + timedelta(minutes=40):
            held = contracts[0]
            self.world.add_rival(held.host.machine_id, 1, (held.bid or 0.0) + 0.02)


def lab(*words: str) -> Result:
    done = CliRunner().invoke(app, ["lab", *words])
    assert done.exit_code == 0, done.output
    return done


@pytest.mark.parametrize(("climate", "seed", "ours"), [("bidding_war", 3, "hedged"), ("price_spike", 405, "patient")])
def test_what_is_told_is_what_was_scored(climate: str, seed: int, ours: str) -> None:
    made = bids_problem.BidsProblem((climate,), (seed,), hours=4.0)
    (case,) = made.cases()
    told = made.timeline([ours, "on_demand", "hindsight"], case)
    assert [bidder.strategy for bidder in told.bidders] == [ours, "on_demand"]
    assert {lease.tenure for lease in told.bidders[0].leases} == {Tenure.INTERRUPTIBLE, Tenure.ON_DEMAND}
    for bidder in told.bidders:
        scored = made.score(bidder.strategy, case)
        assert told.per * bidder.dollars / bidder.work == pytest.approx(scored.cost)
        for kind in told.kinds:
            paid = sum(lease.dollars(kind) for lease in bidder.leases)
            assert paid == pytest.approx(scored.figures[f"{kind} $"])
        assert sum(lease.hours("useful") for lease in bidder.leases) == pytest.approx(scored.figures["useful h"])
        assert sum(len(lease.lost) for lease in bidder.leases) == scored.figures["losses"]
        # Nobody gets more for his dollars than who knew the whole day before.
        dollars, work = bidding_day.course(bidder)
        assert (dollars[-1], work[-1]) == pytest.approx((bidder.dollars, bidder.work))
        most = np.interp(dollars, [point[0] for point in told.bound], [point[1] for point in told.bound])
        assert (work <= most + 1e-6).all()


def test_looking_on_changes_nothing_that_is_decided() -> None:
    lived = [day.Day(day.Setting("bidding_war", 3, 3.0), "hedged", TUNED) for _ in range(2)]
    lived[0].live()
    bids_report.bidder("hedged", lived[1])
    decisions = [[f"{at} {each}" for at, each in one.engine.decisions] for one in lived]
    assert len(decisions[0]) > 5
    assert decisions[0] == decisions[1]


def test_prices_are_those_of_the_host_that_is_held_reckoned_by_hand() -> None:
    world = World(STILL, seed=3, start=day.START.timestamp(), hosts=80)
    lived = Beaten(day.Setting("calm", 3, 2.0), "floor_relaunch", TUNED, world=world)
    first, second = bids_report.bidder("floor_relaunch", lived).leases
    slices = [each.slice for each in world.contracts.values()]
    bid, floor, ask = first.quotes[0].bid, world.host_floor(slices[0]), world.ask(slices[0])
    assert bid == pytest.approx(floor, abs=1e-4)
    assert [quote.bid for quote in first.quotes] == [bid, bid]
    assert [quote.lowest for quote in first.quotes] == pytest.approx([floor, bid + 0.0201], abs=1e-6)
    assert [quote.ask for quote in first.quotes] == pytest.approx([ask, ask])
    ((at, cause),) = first.lost
    assert at == pytest.approx(40 / 60, abs=0.02)
    assert cause == "outbid"
    assert first.quotes[1].hour == pytest.approx(40 / 60, abs=0.02)
    # It loads, restores, works to a checkpoint, and loses what came after it.
    order = dict.fromkeys(part.kind for part in first.parts if part.kind != "traffic")
    assert list(order)[:3] == ["loading", "useful", "lost"]
    assert first.hours("useful") == 0.5
    assert (first.host, second.host) == tuple(str(each.machine_id) for each in slices)
    assert first.end <= second.start + 0.01
    assert second.end == 2.0
    assert {first.tenure, second.tenure} == {Tenure.INTERRUPTIBLE}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("lab") / "report.html"
    lab("report", str(file), *GIVEN, *NAMED)
    return file


def cells(text: str) -> list[dict[str, str]]:
    """Return the rows of the table of leases by their heading."""
    table = text[text.index("<caption>") :]
    table = table[: table.index("</table>")]
    heading = re.findall(r'<th scope="col"[^>]*>([^<]*)</th>', table)
    rows = re.findall(r"<tr[^>]*>(<th scope=\"row\">.*?)</tr>", table)
    return [
        dict(zip(heading, map(unescape, re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", row)), strict=True)) for row in rows
    ]


@pytest.mark.nightly
def test_the_lines_of_the_table_add_up_to_the_row_of_the_bench(page: Path) -> None:
    rows = {row["strategy"]: row for row in json.loads(lab("bench", *GIVEN, *NAMED, "--json").stdout)["strategies"]}
    told = cells(page.read_text("utf-8"))
    for strategy in ("hedged", "floor_relaunch"):
        figures = rows[strategy]["figures"]
        leases = [row for row in told if row["strategy"] == strategy and row["lease"] != "together"]
        (together,) = [row for row in told if row["strategy"] == strategy and row["lease"] == "together"]
        assert len(leases) > 3
        for key in ("useful $", "lost $", "loading $", "paused $", "traffic $", "idle $", "$", "useful h"):
            rounding = 0.5e-3 if key == "useful h" else 0.5e-4
            assert float(together[key]) == pytest.approx(figures[key], abs=1.01 * rounding)
            assert sum(float(row[key]) for row in leases) == pytest.approx(figures[key], abs=rounding * len(leases))
        work = sum(float(row["useful DLPerf-h"]) for row in leases)
        assert 1000 * float(together["$"]) / work == pytest.approx(rows[strategy]["mean_cost"], rel=1e-3)
        causes = sum(row["interrupted"].count(" at ") for row in leases)
        assert (causes, float(together["interrupted"])) == (figures["losses"], figures["losses"])


@pytest.mark.nightly
def test_the_page_holds_the_day_in_words_and_says_that_its_market_is_rehearsed(page: Path) -> None:
    text = page.read_text("utf-8")
    assert "<h2>One day of bidding, lease by lease: bidding_war/3</h2>" in text
    assert "Day bidding_war/3, semi-synthetic: rehearsed" in text
    assert '<p class="note">semi-synthetic: rehearsed' in text
    assert re.search(r"hedged: \$\d+\.\d\d, \d\.\d useful h, \$\d\.\d\d for 1,000 DLPerf-hours; \d+ leases", text)
    for words in ("our bid", "lowest bid that runs", "the host&#x27;s ask", "work lost", "paused: disk alone"):
        assert re.search(rf">{re.escape(unescape(words))}</text>", unescape(text)), words
    assert "cannot show a run" not in text
    assert "#000001" not in text


def test_a_case_names_the_day_and_other_climates_say_that_it_is_not_theirs(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    given = ["--climates", "calm,bidding_war", "--seeds", "1-2", "--hours", "0.5", "--workers", "1"]
    lab("report", str(file), "--problem", "bids", *given, "--strategies", "ladder", "--case", "calm/2")
    text = file.read_text("utf-8")
    assert re.findall(r"lease by lease: (\S+)</h2>", text) == ["calm/2"]
    assert "one run's timeline of bidding_war: the run that was named, calm/2, is of another table" in unescape(text)


def hostile() -> run_timeline.Auction:
    """Return a day whose names are attacks, under one strategy that rented and one that never did."""
    made = bids_problem.BidsProblem(("bidding_war",), (3,), hours=1.0)
    told = made.timeline(["floor_relaunch"], made.cases()[0])
    leases = tuple(replace(lease, host=HOSTILE, card=HOSTILE) for lease in told.bidders[0].leases)
    bidders = (run_timeline.Bidder("<b>bold</b>", leases), run_timeline.Bidder("nothing", ()))
    return replace(told, case=HOSTILE, market=HOSTILE, bidders=bidders)


def test_names_are_text_and_who_rents_nothing_has_a_lane_too() -> None:
    row = {"strategy": "x", "mean_cost": 1.0, "ratio_to_optimum": 1.0, "late": 0, "difference_vs_baseline": 0.0}
    head = {"problem": "bids", "runs": 1, "baseline": "x", "seed": 0, "bootstrap_draws": 1}
    table = saved_table.table({**head, "strategies": [row | {"ci95_vs_baseline": [0.0, 0.0]}]})
    text = html.page([table], [bidding_day.plot(hostile(), "run-0")])
    assert (text.count("<script"), text.count("<b>"), text.count("</svg>")) == (0, 0, 1)
    assert "nothing: $0.00, 0.0 useful h, no useful work" in text


@pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not here")
@pytest.mark.nightly
async def test_it_follows_the_scheme_and_its_table_opens_on_a_phone(page: Path) -> None:
    inks, said = [], []
    async with async_playwright() as tools:
        browser = await tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            tab = await browser.new_page(color_scheme=scheme, viewport={"width": 360, "height": 740})
            tab.on("console", lambda told: said.append(told.text))
            await tab.goto(page.as_uri())
            label = tab.locator("figure text", has_text="lowest bid that runs").first
            inks.append(await label.evaluate("node => getComputedStyle(node).fill"))
            await tab.locator("summary").click()
            assert await tab.locator("details tr.sum").count() == 2
            assert await tab.locator("details tr.sum").first.is_visible()
            assert await tab.evaluate("document.scrollingElement.scrollWidth <= window.innerWidth")
        await browser.close()
    assert inks == ["rgb(27, 31, 36)", "rgb(230, 237, 243)"]
    assert said == []
