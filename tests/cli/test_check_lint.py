"""`gpubid check` warns of odd settings, with the line and the fix; `--strict` ends with 1 then."""

import json
from pathlib import Path

from agent.clock import SystemClock
from agent.domain.market import gpu
from agent.ledger.store import Ledger
from tests.support import builders
from tests.support.configs import GOOD, added, live
from tests.support.programs import gpubid

ODD = added('gpu = ["RTX 4909"]')


async def test_what_is_odd_is_told_with_its_line_and_fails_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text(ODD)
    line = next(number for number, text in enumerate(ODD.splitlines(), 1) if "4909" in text)
    ran = await gpubid(tmp_path, "check")
    assert ran.code == 0, ran
    wanted = f'agent.toml:{line}: workloads.train.gpu: gpubid knows no card "RTX 4909"; did you mean "RTX 4090"?'
    assert wanted in ran.out.replace("\n", " ").replace("  ", " ")
    strict = await gpubid(tmp_path, "check", "--strict", "--json")
    assert strict.code == 1, strict
    (warning,) = json.loads(strict.out)["warnings"]
    assert warning.endswith(wanted)


async def test_a_sound_file_passes_strictly(tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text(GOOD)
    ran = await gpubid(tmp_path, "check", "--strict")
    assert ran.code == 0, ran
    assert "warning" not in ran.out


async def test_a_warning_names_the_included_file_that_holds_the_key(tmp_path: Path) -> None:
    head, train = ODD.split("[workloads.train]")
    (tmp_path / "agent.toml").write_text(f'include = ["train.toml"]\n{head}')
    (tmp_path / "train.toml").write_text(f"[workloads.train]{train}")
    ran = await gpubid(tmp_path, "check", "--json")
    (warning,) = json.loads(ran.out)["warnings"]
    assert warning.startswith('train.toml:5: workloads.train.gpu: gpubid knows no card "RTX 4909"')


async def test_a_key_file_that_is_not_there_draws_a_warning_and_one_that_is_there_none(tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text(live('url = "https://console.vast.ai"', 'credential_file = "key"'))
    ran = await gpubid(tmp_path, "check", "--json")
    (warning,) = json.loads(ran.out)["warnings"]
    assert ran.code == 0
    assert "markets.vast.credential_file: there is no file" in warning
    assert warning.endswith(f"{tmp_path / 'key'}; write the key into it, mode 600")
    (tmp_path / "key").mkdir()
    (warning,) = json.loads((await gpubid(tmp_path, "check", "--json")).out)["warnings"]
    assert "key is a directory and no file; " in warning
    (tmp_path / "key").rmdir()
    (tmp_path / "key").touch(0o600)
    (warning,) = json.loads((await gpubid(tmp_path, "check", "--json")).out)["warnings"]
    assert "key is empty; " in warning
    (tmp_path / "key").write_text("0" * 64)
    assert json.loads((await gpubid(tmp_path, "check", "--json")).out)["warnings"] == []


async def test_a_named_key_that_is_not_seen_draws_a_warning_and_fails_nothing(tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text(live('credential = "vast_api_key"', "spend = true"))
    ran = await gpubid(tmp_path, "check", "--strict", "--json", VAST_API_KEY=None)
    (warning,) = json.loads(ran.out)["warnings"]
    assert ran.code == 0, "the unit of the service may have it"
    assert warning.startswith("agent.toml:2: markets.vast.credential: this command sees no key named vast_api_key")
    assert "set the variable VAST_API_KEY or write /" in warning
    assert "unless the unit has LoadCredential=vast_api_key:FILE" in warning
    odd = await gpubid(tmp_path, "check", "--json", VAST_API_KEY="two words")
    (warning,) = json.loads(odd.out)["warnings"]
    assert warning.endswith("variable VAST_API_KEY: holds more than one word or odd characters; write the key alone")
    assert json.loads((await gpubid(tmp_path, "check", "--json")).out)["warnings"] == []


async def test_a_rule_for_idle_gpus_that_a_market_cannot_show_draws_a_warning(tmp_path: Path) -> None:
    text = GOOD.replace("[limits]", '[markets.dstack]\nsimulated = "calm"\n\n[limits]') + "may_lose_disk = true\n"
    (tmp_path / "agent.toml").write_text(text + '[workloads.train.idle]\nthen = "pause"\n')
    (warning,) = json.loads((await gpubid(tmp_path, "check", "--json")).out)["warnings"]
    assert "workloads.train.idle.then: dstack does not show how much GPUs are used" in warning
    (tmp_path / "agent.toml").write_text(text)
    assert json.loads((await gpubid(tmp_path, "check", "--json")).out)["warnings"] == []


async def test_a_region_that_no_offer_was_seen_in_draws_a_warning(tmp_path: Path) -> None:
    file = added('regions = ["Atlantis", "Bavaria"]') + "[ledger]\npath = 'ledger.sqlite'\n"
    (tmp_path / "agent.toml").write_text(file)
    ledger = await Ledger.open(tmp_path / "ledger.sqlite", clock=SystemClock())
    async with ledger.transaction() as tx:
        tx.observe_offers([builders.offer(1, region="Bavaria, DE"), builders.offer(2, region="")])
    await ledger.close()
    ran = await gpubid(tmp_path, "check", "--strict", "--json")
    assert ran.code == 1, ran
    (warning,) = json.loads(ran.out)["warnings"]
    assert warning.endswith(
        'workloads.train.regions: gpubid knows no country, state or data centre "Atlantis", and no offer was seen '
        'there; write the codes of countries, such as "US"'
    )


FALLBACK = added('gpu = ["RTX 4090"]', 'fallback_markets = ["mithril"]') + (
    '[markets.mithril]\nsimulated = "calm"\n[ledger]\npath = "ledger.sqlite"\n'
)


async def test_a_fallback_market_without_the_card_draws_a_warning_until_the_card_was_seen_there(tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text(FALLBACK)
    ran = await gpubid(tmp_path, "check", "--json")
    (warning,) = json.loads(ran.out)["warnings"]
    assert warning.endswith(
        'workloads.train.fallback_markets: mithril sells none of "RTX 4090", by its list of 2026-10; name a card that '
        "it sells in gpu, or remove mithril from fallback_markets"
    )
    ledger = await Ledger.open(tmp_path / "ledger.sqlite", clock=SystemClock())
    async with ledger.transaction() as tx:
        tx.observe_offers([builders.offer(1, market="mithril", gpu=gpu.model("RTX 4090"))])
    await ledger.close()
    assert json.loads((await gpubid(tmp_path, "check", "--json")).out)["warnings"] == []


async def test_a_strategy_that_waits_for_a_deadline_draws_a_warning_without_one(tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text(GOOD.replace('strategy = "patient"', 'strategy = "deadline"'))
    ran = await gpubid(tmp_path, "check")
    assert ran.code == 0, ran
    assert "workloads.train.strategy: rents nothing without a deadline" in " ".join(ran.out.split())


async def test_a_number_of_a_strategy_in_a_workload_is_told_its_place(tmp_path: Path) -> None:
    """The handbook's three lines of a target, copied into a workload, were answered with another key of workloads."""
    (tmp_path / "agent.toml").write_text(added("target = 0.99\nheadroomy = 1"))
    ran = await gpubid(tmp_path, "check")
    assert ran.code == 2, ran
    target, other = ran.err.splitlines()
    assert "workloads.train.target: is a number of hedged, not of a workload; write it in a file of your own" in target
    assert "workloads.train.headroomy: is not a key here" in other
