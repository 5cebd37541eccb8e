"""The keys of an array: how many tasks run at once, and in which order they begin."""

from pathlib import Path

import pytest

from agent import config
from agent.config.problems import ConfigError
from agent.domain.work.array_terms import ArrayTerms, TaskOrder
from agent.domain.work.workload import Workload
from tests.support.configs import STRATEGIES, added

BATCH = 'kind = "batch"'


def loaded(tmp_path: Path, *lines: str) -> Workload:
    path = tmp_path / "agent.toml"
    path.write_text(added(*lines))
    return config.load(path, strategies=STRATEGIES).workloads[0]


def refused(tmp_path: Path, *lines: str) -> str:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, *lines)
    return str(caught.value)


@pytest.mark.parametrize(
    ("lines", "array"),
    [
        ((BATCH, "slots = 8"), None),
        (("slots = 100",), None),
        ((BATCH, "slots = 9"), ArrayTerms(8)),
        ((BATCH, "slots = 100", "at_once = 20"), ArrayTerms(20)),
        ((BATCH, "slots = 100", 'at_once = "purse"', 'order = "random"'), ArrayTerms(None, TaskOrder.RANDOM)),
        ((BATCH, "slots = 3", "at_once = 1"), ArrayTerms(1)),
        ((BATCH, "slots = 3", 'order = "random"'), ArrayTerms(8, TaskOrder.RANDOM)),
        ((BATCH, "slots = 3", "retries = 2", "may_lose_disk = true"), ArrayTerms(8, retries=2)),
        ((BATCH, "slots = 3", "task_hours = 1.5"), ArrayTerms(8, task_hours=1.5)),
    ],
)
def test_a_batch_with_many_slots_is_an_array(tmp_path: Path, lines: tuple[str, ...], array: ArrayTerms | None) -> None:
    work = loaded(tmp_path, *lines)
    assert work.array == array
    assert work.most_live == min(work.slots, 8 if array is None and work.slots < 100 else work.most_live)


def test_a_service_has_no_array(tmp_path: Path) -> None:
    assert "at_once is for a batch, whose slots end one by one" in refused(tmp_path, "slots = 20", "at_once = 4")


def test_no_task_is_tried_again_whose_disk_may_hold_the_only_copy(tmp_path: Path) -> None:
    assert "the disk may hold the only copy of work" in refused(tmp_path, BATCH, "retries = 1")
    assert loaded(tmp_path, BATCH, "retries = 1", "checkpoint.at = 'none'").array == ArrayTerms(8, retries=1)


@pytest.mark.parametrize(
    "line", ['at_once = "all"', "at_once = 0", "at_once = 1001", "retries = -1", "task_hours = 0", 'order = "cheapest"']
)
def test_a_value_that_an_array_does_not_have_is_refused_with_its_key(tmp_path: Path, line: str) -> None:
    assert f"workloads.train.{line.split(maxsplit=1)[0]}" in refused(tmp_path, BATCH, line)


PREPARE = ("[workloads.prepare]", 'image = "a"', "max_price = 0.1", 'strategy = "patient"')


def test_a_workload_may_come_after_a_batch(tmp_path: Path) -> None:
    assert loaded(tmp_path, 'after = ["prepare"]', *PREPARE, 'kind = "batch"').after == ("prepare",)


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ((BATCH, 'after = ["prepar"]', *PREPARE, BATCH), 'there is no workload "prepar"; did you mean prepare?'),
        ((BATCH, 'after = ["prepare"]', *PREPARE), '"prepare" is a service, which is never done; name a batch'),
        ((BATCH, 'after = ["train"]'), "waits for itself: train after train; remove one of these names"),
        (
            (BATCH, 'after = ["prepare"]', *PREPARE, BATCH, 'after = ["train"]'),
            "waits for itself: train after prepare after train; remove one of these names",
        ),
    ],
)
def test_a_workload_comes_after_batches_of_the_file_and_never_after_itself(
    tmp_path: Path, lines: tuple[str, ...], sentence: str
) -> None:
    told = refused(tmp_path, *lines)
    assert sentence in told
    assert "agent.toml:" in told
    assert "workloads.train.after" in told


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('at_once = "all"', 'at_once: must be a whole number, or "purse", not "all"; write for example at_once = 8'),
        ("at_once = 0", 'at_once: must be at least 1, or "purse", not 0; write for example at_once = 8'),
        ('stalled_after = "1s"', 'must be at least "5m", or "off", not "1s"; write for example stalled_after = "45m"'),
        ('stalled_then = ["warm"]', 'stalled_then[0]: must be "warn", "restart", "move" or "hold", not "warm"; '),
        ('windows = { cron = "0 20 * * *" }', "write each entry as a table, [[workloads.train.windows]]"),
        ('windows = ["0 20 * * *"]', "write each entry as a table, [[workloads.train.windows]]"),
    ],
)
def test_one_mistake_is_one_sentence_about_the_key_of_the_file(tmp_path: Path, line: str, sentence: str) -> None:
    (said,) = refused(tmp_path, BATCH, line).splitlines()
    assert sentence in said
