"""`gpubid init`: a commented configuration that is right at once, a key that is checked, and nothing overwritten."""

# ruff: noqa: ASYNC240 - a test may wait for its own files

import asyncio
import json
import re
import resource
import tomllib
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import typer

from agent.cli.setup import init
from agent.simulator.vast.http.call_gate import DEFAULT_KEY
from tests.support import programs
from tests.support.programs import gpubid
from tests.support.terminal import typed

FLAGS = ("--image", "me/night:1", "--command", 'python "night".py', "--slots", "2", "--max-price", "0.3")

OTHER_CLOUDS = (
    'other clouds may be a fallback: [markets.dstack] and fallback_markets; handbook, "Other clouds, through dstack"'
)


def read(place: Path) -> dict[str, Any]:
    return tomllib.loads((place / "agent.toml").read_text())


async def test_what_is_written_is_right_and_explained(tmp_path: Path) -> None:
    said = await gpubid(tmp_path, "init", "--yes", "--workload", "night", *FLAGS, "--budget", "5", "--gpu", "H100 SXM")
    assert (said.code, said.err) == (0, ""), said
    assert (await gpubid(tmp_path, "check")).code == 0
    found = read(tmp_path)
    assert found["markets"] == {"vast": {"simulated": "calm"}}
    night = found["workloads"]["night"]
    assert (night["image"], night["command"], night["slots"]) == ("me/night:1", 'python "night".py', 2)
    assert (night["gpu"], night["max_price"], night["checkpoint"]["at"]) == (["H100 SXM"], 0.3, "none")
    assert (
        found["limits"].items()
        >= {
            "max_price_per_instance_hour": 0.3,
            "max_fleet_per_hour": 1.2,
            "max_per_day": 5.0,
            "max_per_month": 155.0,
            "max_instances": 4,
        }.items()
    )
    shipped = (Path(__file__).parents[2] / "agent.toml").read_text()
    comments = {line for line in shipped.splitlines() if line.startswith("#") and "train" not in line}
    kept = set((tmp_path / "agent.toml").read_text().splitlines())
    assert len(comments & kept) > 0.7 * len(comments), "the comments are what explains it"


@pytest.mark.parametrize("card", ["4090", "RTX 4O90"])
async def test_a_card_that_nobody_knows_is_told_as_check_tells_it(tmp_path: Path, card: str) -> None:
    said = await gpubid(tmp_path, "init", "--yes", "--gpu", card)
    assert said.code == 0, said
    (warning,) = said.err.splitlines()
    assert warning.endswith(f'workloads.train.gpu: gpubid knows no card "{card}"; did you mean "RTX 4090"?')
    (checked,) = json.loads((await gpubid(tmp_path, "check", "--json")).out)["warnings"]
    assert warning == f"gpubid: {checked}"


async def test_nothing_is_overwritten_but_what_nobody_wrote(tmp_path: Path) -> None:
    shipped = (Path(__file__).parents[2] / "agent.toml").read_text()
    (tmp_path / "agent.toml").write_text(shipped)
    assert (await gpubid(tmp_path, "init", "--yes", "--workload", "mine")).code == 0
    before = (tmp_path / "agent.toml").read_text()
    assert "[workloads.mine]" in before
    again = await gpubid(tmp_path, "init", "--yes")
    assert (again.code, "nothing is overwritten" in again.err) == (2, True)
    assert (tmp_path / "agent.toml").read_text() == before


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--market", "vats"), "none of simulated, "),
        (("--budget", "much"), "--budget: 'much' is not an amount"),
        (("--max-price", "-1"), "not an amount of dollars"),
        (("--checkpoint", "tape"), "none of none, remote, disk"),
        (("--workload", "a b"), "bad_name"),
        (("--image", "two words"), "--image: must be an image name without spaces"),
        (("--image", "two words"), "agent.toml is not written"),
        (("--gpu", ""), "--gpu: "),
        (("--key-file", "key"), "are for a live market"),
        (("--spend",), "are for a live market"),
        (("--market", "vast"), "there is no key named vast_api_key"),
    ],
)
async def test_bad_answers_write_nothing(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    said = await gpubid(tmp_path, "init", "--yes", *words, VAST_API_KEY=None)
    assert said.code == 2, said
    assert told.replace("bad_name", "is no name for a workload") in said.err
    assert list(tmp_path.iterdir()) == []


async def test_a_live_key_is_checked_by_reading_alone(tmp_path: Path) -> None:
    async with programs.market(tmp_path) as market:
        flags = ("init", "--yes", "--market", "vast", "--url", market.url)
        good = await gpubid(tmp_path, *flags)
        assert good.code == 0, good
        assert "the key is good: account " in good.out
        assert good.out.splitlines()[-3] == OTHER_CLOUDS
        assert await market.writes() == []
        live = read(tmp_path)["markets"]["vast"]
        assert live == {"url": market.url, "credential": "vast_api_key", "spend": False}
        bad = await gpubid(tmp_path, *flags, "--config", "other.toml", VAST_API_KEY="a-wrong-key")
        assert (bad.code, "refused" in bad.err, "a-wrong-key" in bad.err) == (2, True, False)
        assert not (tmp_path / "other.toml").exists()
        key = tmp_path / "the-key"
        key.write_text(DEFAULT_KEY)
        key.chmod(0o644)
        filed = await gpubid(
            tmp_path, *flags, "--config", "filed.toml", "--key-file", key, "--spend", VAST_API_KEY=None
        )
        assert filed.code == 0, filed
        open_key = f"{key} holds a key and is open to every user (mode 0644); chmod 600 {key}"
        assert filed.err == f"gpubid: {open_key}\n"
        assert f'credential_file = "{key}"' in (tmp_path / "filed.toml").read_text()
        planned = await gpubid(tmp_path, "plan", "--config", "filed.toml", VAST_API_KEY=None)
        assert planned.code == 0, planned
    gone = await gpubid(tmp_path, *flags, "--config", "third.toml")
    assert (gone.code, "vast could not be read, nothing was written" in gone.err) == (1, True)
    assert not (tmp_path / "third.toml").exists()


async def test_a_project_that_the_key_does_not_have_is_named_before_anything_is_written(tmp_path: Path) -> None:
    async with programs.market(tmp_path) as market:
        url, key = market.first_line["mithril_url"], market.first_line["mithril_key"]
        flags = ("init", "--yes", "--market", "mithril", "--url", url, "--set", "disk_per_gb_month=0.1")
        said = await gpubid(tmp_path, *flags, "--set", "project=proj_other", MITHRIL_API_KEY=key)
        assert (said.code, list(tmp_path.glob("agent.toml"))) == (1, []), said
        assert "does not know the project (HTTP 404: Project not found): set [markets.mithril] project to" in said.err
        headers = {"Authorization": f"Bearer {key}"}
        async with aiohttp.ClientSession(headers=headers) as client, client.get(f"{url}/v2/projects") as answer:
            (project,) = await answer.json()
        good = await gpubid(tmp_path, *flags, "--set", f"project={project['fid']}", MITHRIL_API_KEY=key)
        assert good.code == 0, good


async def test_a_first_configuration_of_dstack_says_that_its_prices_are_listed(tmp_path: Path) -> None:
    async with programs.market(tmp_path) as market:
        flags = ("init", "--yes", "--market", "dstack", "--url", market.first_line["dstack_url"])
        wants = ("--set", "fleet=gpubid", "--set", "backends=aws,cloudrift")
        said = await gpubid(tmp_path, *flags, *wants, DSTACK_API_KEY=DEFAULT_KEY)
        assert said.code == 0, said
        assert 'dstack takes no bids: its prices are listed, so the strategy is "ondemand"' in said.out
        assert OTHER_CLOUDS not in said.out
        planned = await gpubid(tmp_path, "plan", DSTACK_API_KEY=DEFAULT_KEY)
    assert "it would rent host pool/cloudrift/" in planned.out


def test_the_page_that_the_end_names_is_in_the_handbook_and_has_both_keys() -> None:
    pages = Path(__file__).parents[2] / "deploy" / "handbook" / "pages"
    (page,) = (
        text
        for text in map(Path.read_text, pages.glob("*.md"))
        if f'"{text[2:].partition(chr(10))[0]}"' in OTHER_CLOUDS
    )
    assert "\n[markets.dstack]\n" in page
    assert "\nfallback_markets = " in page


async def test_a_first_configuration_of_runpod_rents_what_runpod_sells_today(tmp_path: Path) -> None:
    async with programs.market(tmp_path) as market:
        url = market.first_line["runpod_url"]
        flags = ("init", "--yes", "--market", "runpod", "--url", url)
        said = await gpubid(tmp_path, *flags, RUNPOD_API_KEY=DEFAULT_KEY)
        assert said.code == 0, said
        assert 'runpod sells on-demand capacity only, so the strategy is "ondemand"' in said.out
        planned = await gpubid(tmp_path, "plan", RUNPOD_API_KEY=DEFAULT_KEY)
    assert planned.code == 0, planned
    assert "rent" in planned.out
    assert "no_view" not in planned.out


async def test_a_person_is_asked_and_the_key_is_not_shown(tmp_path: Path) -> None:
    async with programs.market(tmp_path) as market:
        answers = ["vast", "night", "me/night:1", "", "RTX 4090, H100", "1", "0.4", "9", "remote"]
        words = ("init", "--url", market.url)
        code, shown = await asyncio.to_thread(typed, words, tmp_path, answers, DEFAULT_KEY)
    assert code == 0, shown
    assert DEFAULT_KEY not in shown
    kept = tmp_path / "vast_api_key"
    assert kept.read_text() == f"{DEFAULT_KEY}\n"
    assert kept.stat().st_mode & 0o777 == 0o600
    found = read(tmp_path)
    assert found["markets"]["vast"]["credential_file"] == str(kept)
    assert found["workloads"]["night"]["gpu"] == ["RTX 4090", "H100"]


async def test_what_is_no_number_is_said(tmp_path: Path) -> None:
    answers = ["simulated", "night", "me/night:1", "", "RTX 4090", "two"]
    code, shown = await asyncio.to_thread(typed, ("init",), tmp_path, [*answers, "\x04"], "")
    assert (code, "--slots: 'two' is not a number" in shown) == (1, True), shown
    assert list(tmp_path.iterdir()) == []


async def test_a_wrong_answer_asks_again(tmp_path: Path) -> None:
    answers = [
        "moon",
        "simulated",
        "night",
        "me/night:1",
        "",
        "RTX 4090",
        "two",
        "2",
        "free",
        "0.4",
        "9",
        "here",
        "disk",
    ]
    code, shown = await asyncio.to_thread(typed, ("init",), tmp_path, answers, "")
    assert code == 0, shown
    for said in (
        "'moon' is none of simulated, ",
        "--slots: 'two'",
        "'free' is not an amount",
        "'here' is none",
    ):
        assert f"{said}" in shown
    assert shown.count("answer again") == 4
    night = read(tmp_path)["workloads"]["night"]
    assert (night["slots"], night["max_price"], night["checkpoint"]["at"]) == (2, 0.4, "disk")


async def test_the_file_says_what_to_do_next_and_how_to_go_live(tmp_path: Path) -> None:
    empty = await gpubid(tmp_path, "check")
    assert (empty.code, "`gpubid init`" in empty.err) == (2, True), empty
    made = await gpubid(tmp_path, "init", "--yes")
    said = made.out.splitlines()[-2:]
    assert [re.sub(r" +#.*", "", line) for line in said] == ["next: gpubid rehearse", "then: gpubid run"]
    text = (tmp_path / "agent.toml").read_text()
    schema = Path(text.partition("\n")[0].removeprefix("#:schema "))
    assert schema.is_absolute()
    assert json.loads(schema.read_text())["properties"]["workloads"]
    live = text.replace('\nsimulated = "calm"\n', "\n")
    for key in ("credential", "spend"):
        assert f"\n# {key} = " in live
        # The first one is the market's: a workload's tables have keys of that name too.
        live = live.replace(f"\n# {key} = ", f"\n{key} = ", 1)
    (tmp_path / "agent.toml").write_text(live)
    checked = await gpubid(tmp_path, "check")
    assert (checked.code, "market vast: live, reads only (spend = false)" in checked.out) == (0, True), checked
    assert [line for line in made.out.splitlines() if "other clouds" in line] == [OTHER_CLOUDS]
    other = await gpubid(tmp_path, "init", "--yes", "--config", "other.toml")
    assert "next: gpubid rehearse --config other.toml" in other.out


def test_a_file_that_its_disk_does_not_hold_is_not_left_in_half(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    least, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    file = tmp_path / "agent.toml"
    resource.setrlimit(resource.RLIMIT_FSIZE, (4 * 2**20, most))
    try:
        with pytest.raises(typer.Exit):
            init._write_new(file, "#" * 5 * 2**20, 0o644)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (least, most))
    assert f"{file} cannot be written (File too large)" in capsys.readouterr().err
    assert not file.exists()
