"""Strategy files: what right ones become, and every way they can be broken."""

from datetime import timedelta
from pathlib import Path

import pytest

from agent import strategy_files
from agent.config import ConfigError, Problem
from agent.decide.strategy import NEVER
from strategies.ondemand import OnDemand
from strategies.patient import Patient, PatientParams

WARM = 'strategy = "hedged"\nkeep_warm = true\n'
# (the mistake, file name, text, line, key, code, a part of the sentence)
BROKEN: list[tuple[str, str, str | bytes, int, str, str, str]] = [
    ("unknown key", "a.toml", 'strategy = "patient"\nheadrom = 1\n', 2, "headrom", "unknown_key", "mean headroom?"),
    ("wrong type", "a.toml", 'strategy = "patient"\nheadroom = "1"\n', 2, "headroom", "wrong_type", "headroom ="),
    ("text for a flag", "a.toml", 'strategy = "patient"\nmay_raise = "no"\n', 2, "may_raise", "wrong_type", "quotes"),
    ("negative share", "a.toml", 'strategy = "patient"\nheadroom = -1\n', 2, "headroom", "out_of_range", "at least 0"),
    ("not finite", "a.toml", 'strategy = "patient"\nheadroom = nan\n', 2, "headroom", "not_finite", "finite"),
    ("no duration", "a.toml", 'strategy = "patient"\nlower_after = "soon"\n', 2, "lower_after", "bad_value", '"45m"'),
    ("bare duration", "a.toml", 'strategy = "patient"\nlower_after = 45\n', 2, "lower_after", "bad_value", '"45m"'),
    ("no strategy", "a.toml", "headroom = 0.1\n", 1, "strategy", "missing_key", "strategy ="),
    ("unknown strategy", "a.toml", 'strategy = "pateint"\n', 1, "strategy", "unknown_strategy", "mean patient?"),
    ("number for a name", "a.toml", "strategy = 1\n", 1, "strategy", "wrong_type", "in quotes"),
    ("another's name", "ondemand.toml", 'strategy = "patient"\n', 1, "strategy", "name_taken", "rename"),
    ("bad name", "a b.toml", 'strategy = "patient"\n', 1, "(file)", "bad_name", "letters"),
    ("key twice", "a.toml", 'strategy = "patient"\nceiling = 1\nceiling = 1\n', 3, "ceiling", "duplicate_key", "2;"),
    ("not UTF-8", "a.toml", b'strategy = "patient"\n# \xff\n', 2, "(file)", "not_utf8", "byte 23"),
    ("per cent", "a.toml", f"{WARM}target = 99\n", 3, "target", "bad_value", "write 0.99 for 99 %"),
    ("target below 0", "a.toml", f"{WARM}target = -0.1\n", 3, "target", "out_of_range", "for example target = 0.99"),
    ("two worths", "a.toml", f"{WARM}short_worth = 24\ntarget = 0.99\n", 4, "target", "bad_value", '= "auto"'),
    ("cold target", "a.toml", 'strategy = "hedged"\ntarget = 0.99\n', 2, "target", "bad_value", "keep_warm = true"),
    ("no TOML", "a.toml", "strategy: patient\n", 1, "(file)", "bad_toml", "is no TOML"),
    ("huge", "a.toml", "#" * ((1 << 20) + 1), 1, "(file)", "too_large", "right file"),
]  # fmt: skip


def problems_in(directory: Path) -> tuple[Problem, ...]:
    with pytest.raises(ConfigError) as caught:
        strategy_files.load(directory)
    return caught.value.problems


@pytest.mark.parametrize("row", BROKEN, ids=[row[0] for row in BROKEN])
def test_a_broken_strategy_file(tmp_path: Path, row: tuple[str, str, str | bytes, int, str, str, str]) -> None:
    _, name, text, line, key, code, part = row
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    (problem,) = problems_in(tmp_path)
    assert (problem.file, problem.line, problem.key) == (str(tmp_path / name), line, key)
    assert problem.code == code
    assert part in problem.sentence
    assert ";" in problem.sentence


def test_a_symlink_loop_and_a_directory_among_the_files(tmp_path: Path) -> None:
    (tmp_path / "loop.toml").symlink_to(tmp_path / "loop.toml")
    (tmp_path / "folder.toml").mkdir()
    assert {problem.code for problem in problems_in(tmp_path)} == {"symlink_loop", "not_a_file"}


def test_a_missing_directory(tmp_path: Path) -> None:
    (problem,) = problems_in(tmp_path / "none")
    assert problem.code == "missing_directory"


def test_too_many_files(tmp_path: Path) -> None:
    for number in range(strategy_files.MAX_FILES + 1):
        (tmp_path / f"{number}.toml").touch()
    (problem,) = problems_in(tmp_path)
    assert problem.code == "too_many_files"


def test_all_mistakes_in_all_files_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('strategy = "patient"\nheadroom = -1\nceiling = 2\n')
    (tmp_path / "b.toml").write_text('strategy = "pateint"\n')
    assert [Path(problem.file).name for problem in problems_in(tmp_path)] == ["a.toml", "a.toml", "b.toml"]


def test_the_installed_strategies_run_on_their_shipped_numbers() -> None:
    tuned = strategy_files.load()
    assert set(tuned) >= {"ondemand", "patient"}
    assert isinstance(tuned["ondemand"].strategy, OnDemand)
    assert tuned["patient"].params == PatientParams()
    assert Path(tuned["patient"].source).name == "patient.toml"


def test_an_operators_file_changes_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "night.toml").write_text('strategy = "patient"\nheadroom = 0.3\nlower_after = "never"\n')
    (tmp_path / ".hidden.toml").write_text("not read")
    (tmp_path / "README").write_text("not read")
    tuned = strategy_files.load(tmp_path)
    assert isinstance(tuned["night"].strategy, Patient)
    assert tuned["night"].params == PatientParams(headroom=0.3, lower_after=NEVER)
    assert tuned["night"].source == str(tmp_path / "night.toml")
    assert tuned["patient"].params == PatientParams()


def test_a_file_with_a_strategys_own_name_replaces_its_numbers(tmp_path: Path) -> None:
    (tmp_path / "patient.toml").write_text('strategy = "patient"\nlower_after = "1h"\n')
    params = strategy_files.load(tmp_path)["patient"].params
    assert params == PatientParams(lower_after=timedelta(hours=1))


def test_the_digest_names_the_numbers_and_not_the_file(tmp_path: Path) -> None:
    (tmp_path / "same.toml").write_text('strategy = "patient"\n')
    (tmp_path / "other.toml").write_text('strategy = "patient"\nheadroom = 0.3\n')
    tuned = strategy_files.load(tmp_path)
    assert tuned["same"].digest == tuned["patient"].digest
    assert len({tuned[name].digest for name in ("other", "patient", "ondemand")}) == 3


def package(folder: Path, name: str, code: str) -> None:
    """Install a package that brings one strategy, as an installer leaves it."""
    (folder / f"{name}.py").write_text(code)
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{strategy_files.GROUP}]\n{name} = {name}:Other\n")


OTHER = """
from agent.decide.strategy import Params

class Numbers(Params):
    patience: float = 2.0

class Other:
    params = Numbers
    def propose(self, view, params):
        return ()
"""


def test_an_installed_package_brings_its_strategy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path, "calm_waters", OTHER)
    monkeypatch.syspath_prepend(str(tmp_path))
    tuned = strategy_files.load()
    assert tuned["calm_waters"].params.model_dump() == {"patience": 2.0}
    assert tuned["calm_waters"].source == "", "it ships no file"
    assert "calm_waters" not in strategy_files.params(strategy_files.BUILT_IN)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("raises", "raise RuntimeError('hunter2')"),
        ("lacks", "x = 1"),
        ("foreign", OTHER.replace("(Params)", "").replace("patience: float = 2.0", "pass")),
    ],
)
def test_a_broken_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: str) -> None:
    package(tmp_path, name, code)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError) as caught:
        strategy_files.installed()
    (problem,) = caught.value.problems
    assert (problem.file, problem.key, problem.code) == (f"{name}:Other", name, "broken_strategy")
    assert "remove the package" in problem.sentence
    assert "hunter2" not in problem.sentence


def test_a_package_cannot_replace_a_built_in_strategy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path, "patient", OTHER)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert isinstance(strategy_files.installed()["patient"], Patient)
