"""A strategy and its file are a pair: every number a key with a comment, every default equal, no key too many."""

import tomllib
from pathlib import Path

import pydantic
import pytest

from agent import strategy_files
from agent.config.problems import duration_text
from agent.decide.strategy import Params, duration
from tests.support.parity import disparities

INSTALLED = strategy_files.installed()
FOLDER = Path(__file__).parents[2] / "strategies"


@pytest.mark.parametrize("name", strategy_files.BUILT_IN)
def test_the_shipped_file_is_the_manual_of_its_numbers(name: str) -> None:
    strategy = INSTALLED[name]
    assert disparities(strategy_files.shipped_file(strategy), name, strategy.params) == []


def test_every_pair_has_both_halves() -> None:
    code = {path.stem for path in FOLDER.glob("*.py")} - {"__init__"}
    assert code == {path.stem for path in FOLDER.glob("*.toml")} == set(strategy_files.BUILT_IN)


def test_the_package_registers_what_the_code_calls_built_in() -> None:
    project = tomllib.loads((FOLDER.parent / "pyproject.toml").read_text())["project"]
    assert project["entry-points"][strategy_files.GROUP] == strategy_files.BUILT_IN


class Numbers(Params):
    share: float = pydantic.Field(default=0.5, ge=0)
    patience: float = 2.0


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("# a comment of many words\nshare = 0.5\n# a comment of many words\npatience = 2.0\n", "strategy"),
        ('strategy = "x"\n# a comment of many words\nshare = 0.5\n', "patience: is no key"),
        ('strategy = "x"\n# a comment of many words\nshare = 0.5\npatience = 2.0\n', "patience: has no comment"),
        (
            'strategy = "x"\n# a comment of many words\nshare = 0.6\n# another comment\npatience = 2.0\n',
            "share: is 0.6",
        ),
        (
            'strategy = "x"\n# a comment of many words\nshare = 0.5\n# a comment\npatience = 2.0\n# more\nz = 1\n',
            "z: is a key",
        ),
    ],
)
def test_a_disparity_is_seen(tmp_path: Path, text: str, part: str) -> None:
    (tmp_path / "x.toml").write_text(f"#:schema x\n# What it is for.\n{text}")
    assert any(part in sentence for sentence in disparities(tmp_path / "x.toml", "x", Numbers))


@pytest.mark.parametrize("text", ["0s", "15s", "90m", "1h30m", "2d", "never"])
def test_durations_are_written_as_they_are_read(text: str) -> None:
    assert duration(duration_text(duration(text))) == duration(text)
