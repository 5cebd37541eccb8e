"""`onstart_file`: the script beside agent.toml, and the report of one that cannot be used."""

from pathlib import Path

import pytest

from agent import config
from tests.support.configs import STRATEGIES, added


def load(tmp_path: Path, *lines: str) -> config.Config:
    path = tmp_path / "agent.toml"
    path.write_text(added(*lines))
    return config.load(path, strategies=STRATEGIES, environment={})


def test_the_script_is_read_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "start.sh").write_bytes(b"pip install x\r\n\tpython train.py # caf\xc3\xa9\n")
    made = load(tmp_path, 'onstart_file = "scripts/start.sh"')
    assert made.workloads[0].onstart == "pip install x\n\tpython train.py # caf\u00e9\n"
    assert "pip install" not in repr(made)


def test_a_changed_script_is_another_configuration(tmp_path: Path) -> None:
    (tmp_path / "start.sh").write_text("echo one\n")
    first = load(tmp_path, 'onstart_file = "start.sh"')
    (tmp_path / "start.sh").write_text("echo two\n")
    second = load(tmp_path, 'onstart_file = "start.sh"')
    assert first.digest != second.digest
    assert (first.workloads[0].onstart, second.workloads[0].onstart) == ("echo one\n", "echo two\n")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "start.sh does not exist; write the script there, or correct the path"),
        (b"", "start.sh is empty; write the script into it"),
        (b" \n\n", "start.sh is empty"),
        (b"\x7fELF\x02\x01\x00hunter2", "start.sh holds the control character U+007F in its line 1; remove it"),
        (b"echo hunter2\n\x1b[2J", "start.sh holds the control character U+001B in its line 2"),
        (b"caf\xe9 hunter2", "start.sh is no text: byte 3 is not UTF-8; name a shell script"),
        (b"#" * 65_537, "start.sh is larger than 65536 bytes; let a short script fetch the rest"),
    ],
)
def test_a_script_that_cannot_be_used_is_told_with_the_key(tmp_path: Path, content: bytes | None, says: str) -> None:
    if content is not None:
        (tmp_path / "start.sh").write_bytes(content)
    with pytest.raises(config.ConfigError) as caught:
        load(tmp_path, 'onstart_file = "start.sh"')
    (problem,) = caught.value.problems
    assert (problem.file, problem.line) == (str(tmp_path / "agent.toml"), 15)
    assert (problem.key, problem.code) == ("workloads.train.onstart_file", "bad_script")
    assert problem.sentence.startswith(f"{tmp_path}/{says}")
    assert "hunter2" not in problem.sentence


def test_a_directory_is_no_script(tmp_path: Path) -> None:
    (tmp_path / "start.sh").mkdir()
    with pytest.raises(config.ConfigError, match="is no file; name a shell script"):
        load(tmp_path, 'onstart_file = "start.sh"')


def test_a_script_may_be_as_long_as_onstart_and_its_market_allow(tmp_path: Path) -> None:
    (tmp_path / "start.sh").write_bytes(b"#" * 4048)
    assert len(load(tmp_path, 'onstart_file = "start.sh"').workloads[0].onstart) == 4048
    (tmp_path / "start.sh").write_bytes(b"#" * 65_536)
    with pytest.raises(config.ConfigError, match="has 65536 characters, and vast takes 4048"):
        load(tmp_path, 'onstart_file = "start.sh"')


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ("onstart = 'x'", "onstart and onstart_file are both set; keep one of the two scripts"),
        ("command = 'x'", "command and onstart_file are both set; keep one: onstart_file replaces the entry point"),
    ],
)
def test_only_one_thing_starts_the_container(tmp_path: Path, other: str, says: str) -> None:
    (tmp_path / "start.sh").write_text("echo\n")
    with pytest.raises(config.ConfigError, match=says):
        load(tmp_path, other, 'onstart_file = "start.sh"')
