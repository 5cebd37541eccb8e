"""Values by slot from a file: one a line, read and checked with the configuration."""

from pathlib import Path

import pytest

from agent import config
from agent.config.problems import ConfigError
from agent.config.settings import Config
from agent.decide.operators import reload
from tests.support import builders
from tests.support.configs import STRATEGIES, added

SLOTS = ('kind = "batch"', "slots = 3", 'env = { LR = "@lr.txt", EPOCHS = "90", AT = "@@home" }')


def loaded(tmp_path: Path, content: str | bytes | None = "0.1\n0.2\n0.3\n", lines: tuple[str, ...] = SLOTS) -> Config:
    (tmp_path / "agent.toml").write_text(added(*lines))
    if content is not None:
        (tmp_path / "lr.txt").write_bytes(content if isinstance(content, bytes) else content.encode())
    return config.load(tmp_path / "agent.toml", strategies=STRATEGIES)


def test_each_slot_has_its_own_line_and_two_marks_are_one(tmp_path: Path) -> None:
    work = loaded(tmp_path).workloads[0]
    assert work.values == (("LR", ("0.1", "0.2", "0.3")),)
    assert work.environment == (("EPOCHS", "90"), ("AT", "@home"))
    assert [work.values_of(index) for index in (0, 2)] == [(("LR", "0.1"),), (("LR", "0.3"),)]
    assert "0.1" not in repr(work)


@pytest.mark.parametrize("content", ["0.1\r\n0.2\r\n0.3", "0.1\n0.2\n0.3\nnever used\n\n"])
def test_more_lines_than_slots_and_line_ends_of_other_systems_do_no_harm(tmp_path: Path, content: str) -> None:
    assert loaded(tmp_path, content).workloads[0].values == (("LR", ("0.1", "0.2", "0.3")),)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, 'lr.txt does not exist; write it, or for a value that begins with @ write "@@"'),
        ("", "lr.txt has 0 lines for 3 slots; write one value a line for each slot"),
        ("0.1\n0.2\n", "lr.txt has 2 lines for 3 slots; write one value a line for each slot"),
        ("0.1\n\n0.3\n", "lr.txt is empty in its line 2; write the value of slot 1 there"),
        ("0.1\n0.2\n0.\x1b3\n", "lr.txt holds the control character U+001B in its line 3; remove it"),
        (b"0.1\n\xff\n0.3\n", "lr.txt is no text: byte 4 is not UTF-8"),
        ("0.1\n" + "9" * 32_769 + "\n0.3\n", "lr.txt has more than 32768 characters in its line 2"),
        ("0.1\n0.2\n0.3\n" + "#" * (1 << 20), "lr.txt is larger than 1048576 bytes"),
    ],
    ids=["missing", "empty", "short", "blank", "control", "bytes", "long", "large"],
)
def test_a_file_without_a_value_for_each_slot_is_refused_with_its_key(
    tmp_path: Path, content: str | bytes | None, sentence: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, content)
    (problem,) = caught.value.problems
    assert (problem.key, problem.code) == ("workloads.train.env.LR", "bad_values")
    assert sentence in problem.sentence


def test_a_folder_is_no_file_of_values(tmp_path: Path) -> None:
    (tmp_path / "lr.txt").mkdir()
    with pytest.raises(ConfigError, match="is no file; name a text file with one value a line"):
        loaded(tmp_path, None)


def test_another_line_is_another_configuration_and_another_spec_of_its_slot_alone(tmp_path: Path) -> None:
    before, after = loaded(tmp_path), loaded(tmp_path, "0.1\n0.25\n0.3\n")
    assert before.digest != after.digest
    specs = [[reload.spec_digest(each.workloads[0], index) for index in range(3)] for each in (before, after)]
    assert [old == new for old, new in zip(*specs, strict=True)] == [True, False, True]


def test_a_workload_without_values_keeps_the_spec_of_its_leases() -> None:
    assert reload.spec_digest(builders.workload(), 5) == reload.spec_digest(builders.workload())
