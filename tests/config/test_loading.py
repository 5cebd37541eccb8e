"""The values of a right configuration."""

import errno
import os
from datetime import timedelta
from pathlib import Path

import pytest

from agent import config
from agent.config import loading
from agent.config.problems import ConfigError
from agent.config.settings import MarketSettings
from agent.domain import money
from agent.domain.work.workload import CheckpointPlace
from tests.support.configs import GOOD, STRATEGIES, added, changed, live

ROOT = Path(__file__).parents[2]


def load(tmp_path: Path, text: str, **environment: str) -> config.Config:
    path = tmp_path / "agent.toml"
    path.write_text(text)
    return config.load(path, strategies=STRATEGIES, environment=environment)


def test_the_shipped_configuration_cannot_spend() -> None:
    shipped = config.load(ROOT / "agent.toml", strategies=STRATEGIES, environment={})
    (market,) = shipped.markets
    assert market.is_simulated
    assert not market.spend
    assert not market.credential
    assert market.credential_file is None
    assert [work.strategy for work in shipped.workloads] == ["patient"]


def test_the_live_block_of_the_shipped_configuration_is_right_once_uncommented(tmp_path: Path) -> None:
    markets_part, limits, rest = (ROOT / "agent.toml").read_text().partition("[limits]\n")
    live_keys = ("# url = ", "# credential = ", "# spend = ", "# [markets.runpod]")
    lines = (line[2:] if line.startswith(live_keys) else line for line in markets_part.splitlines(keepends=True))
    text = "".join((*lines, limits, rest))
    markets = load(tmp_path, text.replace('simulated = "calm"', "")).markets
    assert [(market.name, market.url, market.credential) for market in markets] == [
        ("vast", "https://console.vast.ai", "vast_api_key"),
        ("runpod", "https://api.runpod.io", "runpod_api_key"),
    ]
    assert all(market.spend and market.may_spend for market in markets)


def test_a_live_market_spends_only_when_told(tmp_path: Path) -> None:
    (market,) = load(tmp_path, live("credential = 'vast_api_key'")).markets
    assert not market.is_simulated
    assert not market.may_spend


@pytest.mark.parametrize(
    ("url", "is_here"),
    [
        ("http://127.0.0.1:8080", True),
        ("http://[::1]:8080", True),
        ("http://localhost", True),
        ("https://console.vast.ai", False),
        ("https://127.0.0.1.example.org", False),
        ("https://10.0.0.5", False),
    ],
)
def test_only_a_market_on_this_machine_has_instances_here(url: str, *, is_here: bool) -> None:
    settings = MarketSettings("vast", url, "", "KEY", None, spend=True)
    assert settings.is_on_this_machine is is_here


def test_money_keeps_its_decimals(tmp_path: Path) -> None:
    loaded = load(tmp_path, changed("0.45", "0.123457").replace("250.00", "0.1").replace("12.00", "7"))
    assert loaded.workloads[0].max_price.micros == 123_457
    assert loaded.limits.per_month == money.usd("0.1")
    assert loaded.limits.per_day == money.usd(7)
    assert loaded.limits.per_instance_hour == money.per_hour("0.6")
    assert loaded.limits.per_hour == money.per_hour(1)
    assert loaded.limits.instances == 3


def test_a_workload_in_full(tmp_path: Path) -> None:
    text = added(
        'onstart = """\npip install x\n\tpython train.py\n"""',
        "disk_gb = 40",
        "image_gb = 7.5",
        "slots = 2",
        "gpus = 4",
        "gpu = ['rtx_4090', 'NVIDIA H100 SXM']",
        "min_vram_gb = 24",
        "min_reliability = 0.98",
        "verified = false",
        "regions = ['SE', 'US']",
        "min_inet_down = 200",
        "query = 'cuda_vers >= 12.4'",
        "may_lose_disk = true",
        "env = { B = '2', A = '1' }",
        "checkpoint = { interval = '1h30m', restore_seconds = 90, size_gb = 2, at = 'remote', takes = '30s' }",
    )
    (work,) = load(tmp_path, text).workloads
    wants = work.requirements
    assert (work.name, work.slots, work.disk_gb, work.image_gb, work.may_lose_disk) == ("train", 2, 40.0, 7.5, True)
    assert work.onstart == "pip install x\n\tpython train.py\n"
    assert work.environment == (("B", "2"), ("A", "1"))
    assert work.checkpoint.interval == timedelta(minutes=90)
    assert work.checkpoint.restore == timedelta(seconds=90)
    assert work.checkpoint.place is CheckpointPlace.REMOTE
    assert work.checkpoint.takes == timedelta(seconds=30)
    assert (wants.gpus, wants.gpu_models) == (4, ("RTX 4090", "H100 SXM"))
    assert (wants.min_vram_mb, wants.min_reliability, wants.verified_only) == (24_000, 0.98, False)
    assert (wants.regions, wants.min_inet_down_mbps, wants.query) == (("SE", "US"), 200.0, "cuda_vers >= 12.4")


def test_defaults(tmp_path: Path) -> None:
    loaded = load(tmp_path, GOOD)
    (work,) = loaded.workloads
    assert loaded.poll == timedelta(seconds=15)
    assert loaded.listen == config.Listen("127.0.0.1", 9477)
    assert loaded.strategies is None
    assert (work.slots, work.requirements.gpus, work.requirements.verified_only) == (1, 1, True)
    assert work.checkpoint.interval == timedelta(minutes=15)


@pytest.mark.parametrize(
    ("state", "written", "expected"),
    [
        ("", "", "gpubid.sqlite"),
        ("/var/lib/gpubid", "", "/var/lib/gpubid/gpubid.sqlite"),
        ("/var/lib/gpubid:/var/lib/second", "", "/var/lib/gpubid/gpubid.sqlite"),
        ("/var/lib/gpubid", "fleet.sqlite", "/var/lib/gpubid/fleet.sqlite"),
        ("/var/lib/gpubid", "/srv/fleet.sqlite", "/srv/fleet.sqlite"),
    ],
)
def test_where_the_ledger_lies(tmp_path: Path, state: str, written: str, expected: str) -> None:
    text = GOOD + (f"[ledger]\npath = '{written}'\n" if written else "")
    assert load(tmp_path, text, STATE_DIRECTORY=state).ledger == Path(expected)


def test_a_ledger_that_is_a_directory_is_refused_with_its_line(tmp_path: Path) -> None:
    """`run` spoke of a full disk, and `ledger verify` of damage that a backup mends."""
    (tmp_path / "led").mkdir()
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, f"{GOOD}[ledger]\npath = '{tmp_path}/led'\n", STATE_DIRECTORY="")
    [problem] = caught.value.problems
    assert "ledger.path: " in str(problem)
    assert f"led is a directory; name a file in it, for example {tmp_path}/led/gpubid.sqlite" in str(problem)


def test_an_operator_who_may_not_look_into_the_services_directory_reads_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member of the operators' group gives orders through the socket; `gpubid kill` ended with a traceback."""
    told = Path.stat

    def stat(file: Path, **given: bool) -> os.stat_result:
        if file.name == "gpubid.sqlite":
            raise PermissionError(errno.EACCES, "Permission denied", str(file))
        return told(file, **given)

    monkeypatch.setattr(Path, "stat", stat)
    assert load(tmp_path, GOOD, STATE_DIRECTORY="/var/lib/gpubid").ledger == Path("/var/lib/gpubid/gpubid.sqlite")


def test_where_what_ends_with_the_daemon_lies(tmp_path: Path) -> None:
    assert load(tmp_path, GOOD, RUNTIME_DIRECTORY="").runtime is None
    assert load(tmp_path, GOOD, RUNTIME_DIRECTORY="/run/gpubid:/run/second").runtime == Path("/run/gpubid")


def test_a_verb_on_the_services_configuration_means_its_ledger_and_its_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "SERVICE", tmp_path)
    found = load(tmp_path, GOOD)
    assert (found.ledger, found.runtime) == (Path("/var/lib/gpubid/gpubid.sqlite"), Path("/run/gpubid"))
    told = load(tmp_path, GOOD, STATE_DIRECTORY="/srv/one", RUNTIME_DIRECTORY="/run/one")
    assert (told.ledger, told.runtime) == (Path("/srv/one/gpubid.sqlite"), Path("/run/one"))


def test_files_are_named_relative_to_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "night.toml").write_text('strategy = "patient"\n')
    text = live("credential_file = 'key'").replace('"patient"', '"night"') + "[strategies]\ndirectory = 'mine'\n"
    loaded = load(tmp_path, text)
    assert loaded.strategies == tmp_path / "mine"
    assert loaded.market("vast") is loaded.markets[0]
    assert loaded.market("runpod") is None
    assert loaded.markets[0].credential_file == tmp_path / "key"
    assert loaded.workloads[0].strategy == "night"


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080", "http://[::1]:1", "http://localhost:1", "https://h/x/"])
def test_addresses_of_markets(tmp_path: Path, url: str) -> None:
    assert load(tmp_path, live("credential = 'k'", f"url = '{url}'")).markets[0].url == url.rstrip("/")


def test_an_ipv6_address_to_listen_on(tmp_path: Path) -> None:
    assert load(tmp_path, GOOD + "[web]\nlisten = '[::1]:0'\n").listen == config.Listen("::1", 0)


def test_line_ends_of_other_systems_are_read(tmp_path: Path) -> None:
    path = tmp_path / "agent.toml"
    path.write_bytes(added("slots = -1").replace("\n", "\r\n").encode())
    with pytest.raises(config.ConfigError) as caught:
        config.load(path, strategies=STRATEGIES)
    assert [problem.line for problem in caught.value.problems] == [15]


def test_names_to_answer_to_are_lower_case_and_without_the_last_dot(tmp_path: Path) -> None:
    assert load(tmp_path, GOOD + "[web]\nnames = ['GPU-Box.lan.', 'box']\n").listen.names == ("gpu-box.lan", "box")
    assert load(tmp_path, GOOD).listen.names == ()


def test_the_digest_names_the_bytes(tmp_path: Path) -> None:
    first = load(tmp_path, GOOD).digest
    assert load(tmp_path, GOOD).digest == first
    assert load(tmp_path, GOOD + "\n").digest != first


def test_no_repr_shows_the_environment(tmp_path: Path) -> None:
    loaded = load(tmp_path, added("env = { TOKEN = 'hunter2' }"))
    assert "hunter2" not in repr(loaded) + repr(loaded.workloads)
