"""The keys of a ledger on a server: each mistake with its place and fix, and above all no password in the file."""

from pathlib import Path

import pytest

from agent.config import loading
from agent.config.problems import ConfigError
from agent.ledger.server_address import ServerAddress
from tests.support.configs import GOOD, STRATEGIES

URL = 'url = "postgresql://gpubid@db/gpubid"'


def loaded(folder: Path, *lines: str) -> ServerAddress | None:
    file = folder / "agent.toml"
    text = GOOD if "[ledger]" not in GOOD else GOOD.replace("[ledger]\n", "[ledger]\n" + "\n".join(lines) + "\n")
    if "[ledger]" not in GOOD:
        text += "\n[ledger]\n" + "\n".join(lines) + "\n"
    file.write_text(text)
    return loading.load(file, strategies=STRATEGIES, climates=["calm"]).ledger_server


def test_a_file_is_the_default(tmp_path: Path) -> None:
    assert loaded(tmp_path) is None


def test_a_server_has_a_schema_and_its_passwords_elsewhere(tmp_path: Path) -> None:
    address = loaded(tmp_path, URL, 'credential = "ledger_password"', 'schema_name = "night"', 'reader = "onlooker"')
    assert address == ServerAddress("postgresql://gpubid@db/gpubid", "night", "ledger_password", None, "onlooker", "")
    assert address.shown == "postgresql://db/gpubid, schema night"
    beside = loaded(tmp_path, URL, 'credential_file = "word"')
    assert beside is not None
    assert (beside.schema, beside.credential_file) == ("gpubid", tmp_path / "word")


def test_several_hosts_are_one_address(tmp_path: Path) -> None:
    address = loaded(tmp_path, 'url = "postgresql://gpubid@one,two:5433/gpubid?target_session_attrs=read-write"')
    assert address is not None
    assert address.shown == "postgresql://one,two:5433/gpubid, schema gpubid"


@pytest.mark.parametrize(
    ("lines", "code", "fix"),
    [
        (['url = "postgresql://gpubid:s3cret@db/gpubid"'], "password_in_url", "credential = "),
        (['url = "postgresql://gpubid@db/gpubid?password=s3cret"'], "password_in_url", "credential_file = "),
        (['url = "mysql://gpubid@db/gpubid"'], "bad_url", "postgresql://USER@HOST/DATABASE"),
        (['url = "gpubid"'], "bad_url", "postgresql://USER@HOST/DATABASE"),
        (['url = "postgresql://db/gpubid?options=-cfsync%3Doff"'], "bad_url", "options"),
        ([URL, 'schema_name = "Night; DROP"'], "bad_name", "lower-case"),
        ([URL, 'schema_name = "pg_catalog"'], "bad_name", "lower-case"),
        (['credential = "ledger_password"'], "conflict", "write url"),
        ([URL, 'credential = "a"', 'credential_file = "b"'], "conflict", "either"),
        ([URL, 'reader_credential = "a"'], "conflict", "reader"),
    ],
)  # fmt: skip
def test_each_mistake_is_named(tmp_path: Path, lines: list[str], code: str, fix: str) -> None:
    with pytest.raises(ConfigError) as refused:
        loaded(tmp_path, *lines)
    (problem,) = refused.value.problems
    assert problem.code == code
    assert fix in str(problem)
    assert "s3cret" not in str(problem)
    assert problem.key.startswith("ledger")
