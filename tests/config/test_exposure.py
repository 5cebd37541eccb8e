"""What others can reach: keys that every user may read, pages that every network reaches."""

from pathlib import Path

import pytest

from agent.config import exposure, loading
from agent.config.exposure import Exposure
from tests.support.configs import GOOD, STRATEGIES


def found(directory: Path, text: str) -> tuple[Exposure, ...]:
    (directory / "agent.toml").write_text(text)
    config = loading.load(directory / "agent.toml", strategies=STRATEGIES)
    return exposure.exposures(config, directory / "store")


def test_what_is_shipped_exposes_nothing(tmp_path: Path) -> None:
    assert found(tmp_path, GOOD) == ()


@pytest.mark.parametrize(("mode", "is_open"), [(0o600, False), (0o640, False), (0o644, True), (0o604, True)])
def test_a_key_file_that_every_user_may_read(tmp_path: Path, mode: int, is_open: bool) -> None:
    key = tmp_path / "key"
    key.write_text("secret")
    key.chmod(mode)
    live = GOOD + f'[markets.runpod]\nurl = "https://api.runpod.io"\ncredential_file = "{key}"\n'
    told = found(tmp_path, live)
    assert [each.fix for each in told] == ([f"chmod 600 {key}"] if is_open else [])
    assert "secret" not in str(told)


@pytest.mark.parametrize("key", ["credential_file", "credential", "reader_credential"])
def test_a_password_of_the_ledgers_server_that_every_user_may_read(tmp_path: Path, key: str) -> None:
    (tmp_path / "store").mkdir()
    file = tmp_path / "store" / "password"
    file.write_text("secret")
    file.chmod(0o644)
    named = f'{key} = "{file if key == "credential_file" else file.name}"\n'
    role = 'reader = "gpubid_reader"\n' if key == "reader_credential" else ""
    told = found(tmp_path, GOOD + '[ledger]\nurl = "postgresql://gpubid@db/gpubid"\n' + role + named)
    assert [each.fix for each in told] == [f"chmod 600 {file}"]


def test_a_credential_in_the_store(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    key = tmp_path / "store" / "web_token"
    key.write_text("secret")
    key.chmod(0o644)
    told = found(tmp_path, GOOD + '[web]\ncredential = "web_token"\n')
    assert [each.about for each in told] == ["key file"]


@pytest.mark.parametrize(
    ("listen", "is_open"), [("0.0.0.0:9477", True), ("[::]:9477", True), ("127.0.0.1:9477", False)]
)
def test_pages_that_every_network_reaches(tmp_path: Path, listen: str, is_open: bool) -> None:
    told = found(tmp_path, GOOD + f'[web]\nlisten = "{listen}"\n')
    assert [each.about for each in told] == (["web"] if is_open else [])
