"""SIGHUP to a real process: good files are taken whole, broken ones change nothing, nothing is released by either."""

import os
import re
from collections.abc import Callable
from pathlib import Path

from tests.support import programs
from tests.support.configs import added
from tests.support.programs import LIVE, until

GOOD_METRIC = "gpubid_config_last_reload_successful"
STRATEGY = 'strategy = "patient"\nheadroom = 0.2\n'
MINE = LIVE.replace('"patient"', '"mine"') + '[strategies]\ndirectory = "mine"\n'


def _instead(make: Callable[[Path], object]) -> Callable[[Path], None]:
    """Put something that is no file in the configuration's place."""

    def put(file: Path) -> None:
        file.unlink()
        make(file)

    return put


SAMPLE: dict[str, Callable[[Path], object]] = {
    "unknown key": lambda file: file.write_text(added("max_prise = 1")),
    "negative price": lambda file: file.write_text(added("min_inet_down = -1")),
    "bad query": lambda file: file.write_text(added("query = 'gpu_nam = x'")),
    "unknown strategy": lambda file: file.write_text(added().replace('"patient"', '"pateint"')),
    "no TOML": lambda file: file.write_text("limits:\n  max: 1\n"),
    "not UTF-8": lambda file: file.write_bytes(b"# caf\xe9\n"),
    "huge": lambda file: file.write_text("#" * (1 << 21)),
    "empty": lambda file: file.write_text(""),
    "missing": lambda file: file.unlink(),
    "symlink loop": _instead(lambda file: file.symlink_to(file)),
    "directory": _instead(lambda file: file.mkdir()),
    "named pipe": _instead(os.mkfifo),
}


async def test_good_files_swap_limits_and_strategy_whole(tmp_path: Path) -> None:
    config = LIVE.replace("max_instances = 4", "max_instances = 0")
    async with programs.running(tmp_path, config=config) as (market, daemon):
        assert await daemon.figure(GOOD_METRIC) == 1
        assert not await market.billing()
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "mine.toml").write_text(STRATEGY)
        (tmp_path / "agent.toml").write_text(MINE.format(url=market.url))
        await daemon.reload()
        assert await until(market.billing, "a rent under the new limits")
        await daemon.until_logged("config.reloaded")
        assert not daemon.logs("config.refused")
        said = await programs.gpubid(tmp_path, "explain", "--json")
        assert said.json["last"][0]["strategy"] == "mine"


async def test_a_reload_reads_included_files_and_scripts_again(tmp_path: Path) -> None:
    head, train = LIVE.split("[workloads.train]")
    config = 'include = ["conf.d/*.toml"]\n' + head
    more = f'[workloads.train]{train.format()}onstart_file = "start.sh"\n'
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "train.toml").write_text(more.replace("slots = 1", "slots = 0"))
    (tmp_path / "start.sh").write_text("echo one\n")
    async with programs.running(tmp_path, config=config) as (market, daemon):
        (tmp_path / "start.sh").write_bytes(b"\x00")
        await daemon.reload()
        (told,) = await daemon.until_logged("config.refused")
        assert told["problem"].startswith("conf.d/train.toml:")
        assert "workloads.train.onstart_file: start.sh holds the control character U+0000" in told["problem"]
        assert not await market.billing()
        (tmp_path / "start.sh").write_text("echo two\n")
        (tmp_path / "conf.d" / "train.toml").write_text(more)
        await daemon.reload()
        assert await until(market.billing, "a rent of the slot that the included file now has")


async def test_broken_files_keep_what_runs_and_are_told(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    strategy = tmp_path / "mine" / "mine.toml"
    strategy.write_text(STRATEGY)
    async with programs.running(tmp_path, config=MINE) as (market, daemon):
        billing = await until(market.billing, "a rent")
        file = tmp_path / "agent.toml"
        good = file.read_text()
        refused = 0
        for what, broken in SAMPLE.items():
            broken(file)
            await daemon.reload()
            told = await daemon.until_logged("config.refused", times=refused + 1)
            for line in told[refused:]:
                assert line["problem"].startswith(f"{file.name}:"), line
                assert "; " in line["problem"] or "Did you mean" in line["problem"], line
            assert await daemon.figure(GOOD_METRIC) == 0, what
            refused = len(told)
            (file.rmdir if file.is_dir() and not file.is_symlink() else lambda: file.unlink(missing_ok=True))()
            file.write_text(good)
        strategy.write_text("strategy = 'patient'\nheadrom = 1\n")
        await daemon.reload()
        await daemon.until_logged("config.refused", times=refused + 1)
        assert "headrom: is not a key here; did you mean headroom?" in daemon.logs("config.refused")[-1]["problem"]
        assert await daemon.figure(GOOD_METRIC) == 0
        assert not daemon.logs("config.reloaded")
        assert await market.billing() == billing
        assert daemon.process.returncode is None

        strategy.write_text(STRATEGY)
        await daemon.reload()
        assert await daemon.figure(GOOD_METRIC) == 1
        await daemon.until_logged("config.reloaded")


async def test_what_would_orphan_a_lease_is_refused_with_the_command_that_makes_it_legal(tmp_path: Path) -> None:
    async with programs.running(tmp_path, config=LIVE.replace("slots = 1", "slots = 2")) as (market, daemon):
        # An instance is at the market a moment before its answer is recorded.
        await until(lambda: _has_leases(tmp_path, 2), "two leases")
        writes = await market.writes()
        fewer = LIVE.format(url=market.url)
        (tmp_path / "agent.toml").write_text(fewer)
        await daemon.reload()
        (told,) = daemon.logs("config.refused")
        line = next(at for at, text in enumerate(fewer.splitlines(), 1) if text == "slots = 1")
        assert f"agent.toml:{line}: workloads.train.slots: " in told["problem"]
        assert "first `gpubid drain train/1`, then `gpubid release train/1`" in told["problem"]
        (tmp_path / "agent.toml").write_text(fewer.replace("workloads.train", "workloads.other"))
        await daemon.reload()
        assert len(await daemon.until_logged("config.refused", times=3)) == 3
        assert 'was = "train"' in daemon.logs("config.refused")[-1]["problem"]
        assert not daemon.logs("config.reloaded")
        assert await market.writes() == writes
        assert (await programs.gpubid(tmp_path, "fleet", "--json")).json["leases"][0]["slot"].startswith("train/")

        (tmp_path / "agent.toml").write_text(LIVE.replace("slots = 1", "slots = 2").format(url=market.url))
        named = re.findall("`gpubid (drain|release) ([^`]+)`", told["problem"])
        assert named == [("drain", "train/1"), ("release", "train/1")]
        for verb in named:
            assert (await programs.gpubid(tmp_path, *verb)).code == 0
        await until(lambda: _count(market, 1), "the release")
        (tmp_path / "agent.toml").write_text(fewer)
        await daemon.reload()
        assert len(daemon.logs("config.reloaded")) == 1
        assert sum("/asks/" in path for _, path in await market.writes()) == 2, "the released slot was not filled again"

        none = fewer.replace("slots = 1", "slots = 0")
        (tmp_path / "agent.toml").write_text(none)
        refusals = len(daemon.logs("config.refused"))
        await daemon.reload()
        refused = await daemon.until_logged("config.refused", times=refusals + 1)
        assert "first `gpubid drain train/0`, then `gpubid release train/0`" in refused[-1]["problem"]
        (tmp_path / "agent.toml").write_text(fewer)
        for verb in (("drain", "train"), ("release", "train/0"), ("resume", "train")):
            if verb[0] == "resume":
                (tmp_path / "agent.toml").write_text(none)
                await until(lambda: _count(market, 0), "the release of the last")
                await daemon.reload()
                assert len(await daemon.until_logged("config.reloaded", times=2)) == 2
            assert (await programs.gpubid(tmp_path, *verb)).code == 0
        seen = len((await market.truth())["calls"])
        await until(lambda: _has_calls(market, seen + 3), "three more looks")
        assert not await market.billing(), "a workload without slots rents nothing"


async def test_a_reload_looks_up_the_keys_that_it_names_anew_and_refuses_the_file_without_them(tmp_path: Path) -> None:
    async with programs.running(tmp_path) as (market, daemon):
        billing = await until(market.billing, "a rent")
        file, keyed = tmp_path / "agent.toml", '[workloads.train.env_from]\nHF_TOKEN = "hf_token_of_nobody"\n'
        good = file.read_text()
        file.write_text(good + keyed)
        ran = await programs.gpubid(tmp_path, "reload")
        line = next(at for at, text in enumerate(file.read_text().splitlines(), 1) if text.startswith("HF_TOKEN"))
        where = f"agent.toml:{line}: workloads.train.env_from.HF_TOKEN: there is no key named hf_token_of_nobody"
        assert ran.code != 0
        assert where in ran.out + ran.err
        assert where in daemon.logs("config.refused")[0]["problem"]
        assert not daemon.logs("config.reloaded")

        file.write_text(good + keyed.replace("hf_token_of_nobody", "vast_api_key"))
        ran = await programs.gpubid(tmp_path, "reload")
        assert (ran.code, len(daemon.logs("config.reloaded"))) == (0, 1), "a key that the daemon can read"
        assert await market.billing() == billing


async def _has_leases(place: Path, count: int) -> bool:
    shown = await programs.gpubid(place, "fleet", "--json")
    return shown.code == 0 and len(shown.json["leases"]) == count


async def _count(market: programs.Market, count: int) -> bool:
    return len(await market.billing()) == count


async def test_what_waits_for_the_next_start_is_told_and_withdrawn_spend_holds_until_it_is_given_again(
    tmp_path: Path,
) -> None:
    config = LIVE.replace("max_instances = 4", "max_instances = 0")
    async with programs.running(tmp_path, config=config) as (market, daemon):
        changed = LIVE.replace("spend = true", "spend = false").replace("ledger.sqlite", "other.sqlite")
        changed = changed.replace('"5s"', '"7s"').replace(":0", ":1") + "[lab]\nrecord = true\n"
        (tmp_path / "agent.toml").write_text(changed.format(url=market.url))
        await daemon.reload()
        told = {line["about"] for line in await daemon.until_logged("config.deferred", times=3)}
        assert told == {"ledger.path", "lab.record", "web.listen"}
        (noted,) = daemon.logs("config.noted")
        assert (noted["about"], noted["reason"][:32]) == ("markets.vast.spend", "is false: nothing is paid for th")
        seen = len((await market.truth())["calls"])
        await until(lambda: _has_calls(market, seen + 3), "three more looks")
        assert not await market.writes()
        # The verbs find the daemon by the ledger's path in the file.
        (tmp_path / "agent.toml").write_text(LIVE.replace("spend = true", "spend = false").format(url=market.url))
        status = (await programs.gpubid(tmp_path, "status", "--json")).json
        (note,) = [each for each in status["notes"] if each["about"] == "vast"]
        assert "spend = false in [markets.vast] since a reload: set spend = true and reload to let it pay" in str(note)
        assert not [each for each in status["troubles"] if each["about"] in {"vast", "daemon"}]

        (tmp_path / "agent.toml").write_text(LIVE.format(url=market.url))
        await daemon.reload()
        assert await until(market.billing, "a rent, since spend is true again")


async def _has_calls(market: programs.Market, count: int) -> bool:
    return len((await market.truth())["calls"]) >= count
