"""A configuration in several files: their sum, and the report of each mistake."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent import config
from agent.config import daemon_paths
from agent.config.files import layers
from tests.support.configs import GOOD, STRATEGIES

HEAD, TRAIN = GOOD.split("[workloads.train]")
TRAIN = f"[workloads.train]{TRAIN}"
INCLUDE = 'include = ["conf.d/*.toml"]\n'


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / "agent.toml"


def load(folder: Path, **files: str) -> config.Config:
    names = {"main": "agent.toml", "one": "conf.d/one.toml", "two": "conf.d/two.toml"}
    path = written(folder, {names[key]: text for key, text in files.items()})
    return config.load(path, strategies=STRATEGIES, environment={})


def told(folder: Path, **files: str) -> list[str]:
    with pytest.raises(config.ConfigError) as caught:
        load(folder, **files)
    return [str(problem).replace(f"{folder}/", "") for problem in caught.value.problems]


def test_the_keys_of_all_files_are_one_configuration(tmp_path: Path) -> None:
    made = load(
        tmp_path, main=INCLUDE + HEAD, one=TRAIN, two="[workloads.train.env]\nA = '1'\n[web]\nnames = ['box']\n"
    )
    whole = load(tmp_path / "whole", main=f"{GOOD}[workloads.train.env]\nA = '1'\n[web]\nnames = ['box']\n")
    assert (made.workloads, made.limits, made.listen) == (whole.workloads, whole.limits, whole.listen)


def test_a_key_that_two_files_set_names_both_places(tmp_path: Path) -> None:
    twice = "# first line\n[limits]\nmax_per_day = 13.00\n"
    assert told(tmp_path, main=INCLUDE + GOOD, one=twice, two=twice) == [
        "conf.d/one.toml:3: limits.max_per_day: is already set in agent.toml:8; keep one of the two",
        "conf.d/two.toml:3: limits.max_per_day: is already set in agent.toml:8; keep one of the two",
    ]
    between = told(tmp_path, main=INCLUDE + HEAD, one=TRAIN, two="[workloads]\ntrain.image = 'x'\n")
    assert between == [
        "conf.d/two.toml:2: workloads.train.image: is already set in conf.d/one.toml:2; keep one of the two"
    ]
    value = told(tmp_path, main=INCLUDE + HEAD, one=TRAIN, two="workloads = 5\n")
    assert value == ["conf.d/two.toml:1: workloads: is already set in conf.d/one.toml:1; keep one of the two"]


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (TRAIN.replace("0.45", "-1"), "conf.d/one.toml:3: workloads.train.max_price: must be more than 0, not -1"),
        (TRAIN.replace("image", "imag"), "conf.d/one.toml:2: workloads.train.imag: is not a key here"),
        (TRAIN.replace("patient", "pateint"), "conf.d/one.toml:4: workloads.train.strategy: there is no strategy"),
        (TRAIN.replace('strategy = "patient"', ""), "conf.d/one.toml:1: workloads.train.strategy: is missing"),
        (f"{TRAIN}env_from = {{ A = '{'0' * 40}' }}\n", "conf.d/one.toml:5: workloads.train.env_from.A: looks like"),
        ("[workloads.train\n", "conf.d/one.toml:1: is no TOML"),
        (f"include = []\n{TRAIN}", "conf.d/one.toml:1: include: an included file includes nothing; write the"),
    ],
)
def test_a_mistake_is_told_with_the_file_that_holds_it(tmp_path: Path, one: str, says: str) -> None:
    assert any(line.startswith(says) for line in told(tmp_path, main=INCLUDE + HEAD, one=one))


@pytest.mark.parametrize(
    ("include", "says"),
    [
        ('["nothing.toml"]', 'agent.toml:1: include[0]: there is no file "nothing.toml" beside this one; write it'),
        ('["none.d/*.toml", "x.toml"]', 'agent.toml:1: include[1]: there is no file "x.toml"'),
        ('["*.toml"]', 'agent.toml:1: include[0]: "*.toml" matches this file itself; put the others into a folder'),
        ('"conf.d/*.toml"', "agent.toml:1: include: must be a list in brackets, not"),
        ("[5]", "agent.toml:1: include[0]: must be text in quotes, not 5"),
        ('["conf.d"]', "conf.d: is a directory; name the TOML file inside it"),
    ],
)
def test_a_pattern_that_names_nothing_is_a_mistake(tmp_path: Path, include: str, says: str) -> None:
    (tmp_path / "conf.d").mkdir()
    assert any(line.startswith(says) for line in told(tmp_path, main=f"include = {include}\n{GOOD}"))


def test_a_wildcard_may_match_nothing_and_a_file_that_two_patterns_match_is_read_once(tmp_path: Path) -> None:
    assert load(tmp_path, main=INCLUDE + GOOD).workloads[0].name == "train"
    twice = 'include = ["conf.d/*.toml", "conf.d/one.toml"]\n'
    assert load(tmp_path, main=twice + HEAD, one=TRAIN).workloads[0].name == "train"


@pytest.mark.parametrize("pattern", ["conf.d/*.toml", "conf.?/*.toml", "conf.d/*/more.toml"])
def test_a_folder_that_cannot_be_read_is_a_mistake_and_no_empty_folder(tmp_path: Path, pattern: str) -> None:
    """A link that goes round in circles is refused to root too, whom no mode stops."""
    (tmp_path / "conf.d").symlink_to("conf.d")
    found = told(tmp_path, main=f'include = ["{pattern}"]\n{GOOD}')
    assert len(found) == 1
    assert found[0].startswith(f'agent.toml:1: include[0]: "{pattern}": the folder "conf.')
    assert found[0].endswith("let the user that runs gpubid read it")


def test_two_stars_are_refused_before_they_leave_files_out(tmp_path: Path) -> None:
    found = told(tmp_path, main=f'include = ["conf.d/**/*.toml"]\n{HEAD}', one=TRAIN)
    assert found[0].startswith('agent.toml:1: include[0]: "conf.d/**/*.toml" has **, which is not known here')


def test_paths_of_an_included_file_are_relative_to_the_first(tmp_path: Path) -> None:
    (tmp_path / "start.sh").write_text("echo here\n")
    made = load(tmp_path, main=INCLUDE + HEAD, one=f"{TRAIN}onstart_file = 'start.sh'\n")
    assert made.workloads[0].onstart == "echo here\n"


def test_the_digest_is_of_all_files(tmp_path: Path) -> None:
    digests = [
        load(tmp_path, main=INCLUDE + HEAD, one=TRAIN).digest,
        load(tmp_path, main=INCLUDE + HEAD, one=f"{TRAIN}\n").digest,
        load(tmp_path, main=INCLUDE + HEAD, one=TRAIN, two="").digest,
    ]
    assert len(set(digests)) == 3


@pytest.mark.parametrize("include", [INCLUDE, "include = [\n  # the rest [all]\n  'conf.d/[a-z]*.toml',\n]\n"])
def test_the_ledger_of_a_broken_configuration_is_found_in_an_included_file(tmp_path: Path, include: str) -> None:
    files = {"agent.toml": include + "[oops\n", "conf.d/one.toml": "[ledger]\npath = 'fleet.sqlite'\n"}
    place = daemon_paths.of_file(written(tmp_path, files), {})
    assert place.ledger == Path("fleet.sqlite")


KEYS = ["limits.max_per_day", "limits.max_total", "web.listen", "workloads.train.disk_gb", "workloads.b.image"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(KEYS), st.integers(1, 9), max_size=4), max_size=4))
def test_no_file_overrides_another(tmp_path: Path, tables: list[dict[str, int]]) -> None:
    """Either every key is set once and all are there, or each repeated key is reported."""
    folder = tmp_path / "any"
    for old in folder.glob("**/*.toml"):
        old.unlink()
    texts = ["".join(f"{key} = {value}\n" for key, value in table.items()) for table in tables]
    named = {f"conf.d/{index}.toml": text for index, text in enumerate(texts)}
    path = written(folder, {"agent.toml": INCLUDE, **named})
    seen: list[str] = [key for table in tables for key in table]
    again = len(seen) - len(set(seen))
    if again:
        with pytest.raises(config.ConfigError) as caught:
            layers.read(path)
        assert {problem.code for problem in caught.value.problems} == {"duplicate_key"}
        assert len(caught.value.problems) == again
        return
    read = layers.read(path)
    for table in tables:
        for key, value in table.items():
            found: Any = read.values
            for part in key.split("."):
                found = found[part]
            assert found == value
            assert read.place(tuple(key.split(".")))[0].startswith(str(folder / "conf.d"))
