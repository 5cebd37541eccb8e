"""A guard's table: its value, the folders of a bucket that two workloads may not share, and its oddities."""

import datetime as dt
import re
from dataclasses import replace
from pathlib import Path

import pytest

from agent import config
from agent.config.linting import lint
from agent.config.problems import ConfigError
from agent.config.settings import Config
from agent.domain.work.guard_terms import Accept, Ask, Bucket, GuardTerms
from tests.support.configs import GOOD, STRATEGIES, added

COMMAND = 'command = "python train.py"'
PLACE = Bucket("https://s3.eu-1.amazonaws.com", "eu-1", "abc", "runs/train", "train_bucket")
NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
RECIPES = Path(__file__).parents[2] / "deploy/handbook/recipes"


def loaded(folder: Path, *lines: str) -> Config:
    (folder / "agent.toml").write_text(added(*lines))
    return config.load(folder / "agent.toml", strategies=STRATEGIES)


def bucket(name: str, *more: str) -> tuple[str, ...]:
    return ('paths = ["/w/ckpt/"]', f'bucket = "s3://{name}"', 'region = "eu-1"', 'credential = "train_bucket"', *more)


def second(*lines: str) -> tuple[str, ...]:
    shown = ('image = "a"', "max_price = 0.1", 'strategy = "patient"', COMMAND)
    return ("[workloads.eval]", *shown, "[workloads.eval.guard]", *lines)


def test_the_table_becomes_what_it_says(tmp_path: Path) -> None:
    more = ('complete = "*/done"', 'ask = "none"', "keep = 3", 'final_within = "20s"', "done_codes = [0, 3]")
    table = ("[workloads.train.guard]", *bucket("abc/runs/train/", *more))
    (work,) = loaded(tmp_path, 'kind = "batch"', COMMAND, *table).workloads
    within = dt.timedelta(seconds=20)
    assert work.guard == GuardTerms(("/w/ckpt",), "*/done", Ask.NONE, PLACE, 3, within, (0, 3))
    assert work.credentials == ("train_bucket",)
    assert str(PLACE) == "s3://abc/runs/train"


def test_only_a_guard_counts_units_of_work(tmp_path: Path) -> None:
    (work,) = loaded(tmp_path, COMMAND, 'unit = "step"', "[workloads.train.guard]", 'paths = ["/w"]').workloads
    assert work.unit == "step"
    with pytest.raises(ConfigError, match="unit is of the number that a guard reads"):
        loaded(tmp_path, COMMAND, 'unit = "step"')


def test_a_service_is_done_by_no_code_and_a_store_of_ones_own_needs_no_region(tmp_path: Path) -> None:
    own = 'endpoint = "https://r2.example.com/"'
    lines = [line for line in bucket("abc", own) if "region" not in line]
    (work,) = loaded(tmp_path, COMMAND, "[workloads.train.guard]", *lines).workloads
    assert work.guard is not None
    assert work.guard.done_codes == ()
    assert work.guard.bucket == Bucket("https://r2.example.com", "us-east-1", "abc", "", "train_bucket")


def test_a_store_of_rclone_needs_no_credential_of_ours(tmp_path: Path) -> None:
    for named in ("nas:runs/train", ":local:/mnt/runs", "my.drive:/a/"):
        lines = ("[workloads.train.guard]", 'paths = ["/w"]', f'rclone = "{named}"')
        (work,) = loaded(tmp_path, COMMAND, *lines).workloads
        assert work.guard == GuardTerms(("/w",), rclone=named.rstrip("/"), done_codes=())
        assert work.credentials == ()
    odd = lint.findings(loaded(tmp_path, 'checkpoint = { at = "remote" }', COMMAND, *lines), lint.Known(NOW))
    assert [each for each in odd if "guard" in each.key] == []


def test_a_dead_mans_switch_is_off_unless_it_is_asked_for(tmp_path: Path) -> None:
    def switch(*more: str) -> tuple[dt.timedelta | None, bool]:
        (work,) = loaded(tmp_path, COMMAND, "[workloads.train.guard]", *bucket("abc", *more)).workloads
        assert work.guard is not None
        return work.guard.deadman, work.guard.destroy

    assert switch() == switch('deadman = "never"') == (None, False)
    assert switch('deadman = "6h"') == (dt.timedelta(hours=6), False)
    assert switch('deadman = "1h30m"', "destroy = true") == (dt.timedelta(minutes=90), True)


def test_a_host_is_checked_only_where_the_file_says_what_follows(tmp_path: Path) -> None:
    def accept(*more: str) -> Accept:
        (work,) = loaded(tmp_path, COMMAND, "[workloads.train.guard]", *bucket("abc", *more)).workloads
        assert work.guard is not None
        return work.guard.accept

    assert accept() is accept('accept = "off"') is Accept.OFF
    assert accept('accept = "tell"') is Accept.TELL
    assert accept('accept = "reject"', 'accept_script = "python3 -m mine --quick"') is Accept.REJECT
    (work,) = config.load(tmp_path / "agent.toml", strategies=STRATEGIES).workloads
    assert work.guard is not None
    assert (work.guard.accept_script, work.guard.accept_floor) == ("python3 -m mine --quick", None)
    accept('accept = "tell"', "accept_floor = 0.7")
    (work,) = config.load(tmp_path / "agent.toml", strategies=STRATEGIES).workloads
    assert work.guard is not None
    assert work.guard.accept_floor == 0.7


def test_a_paused_disk_may_be_released_unless_the_file_keeps_it(tmp_path: Path) -> None:
    for more, is_free in (((), True), (("release_disk = false",), False)):
        (work,) = loaded(tmp_path, COMMAND, "[workloads.train.guard]", *bucket("abc", *more)).workloads
        assert work.guard is not None
        assert work.guard.release_disk is is_free


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (bucket("abc", 'deadman = "59m"'), 'must be from 1h to 30d, or "never"'),
        (bucket("abc", 'deadman = "31d"'), 'must be from 1h to 30d, or "never"'),
        (bucket("abc", 'deadman = "soon"'), 'must be a duration in quotes, not "soon"'),
        (bucket("abc", "destroy = true"), 'write for example deadman = "6h"'),
        (bucket("abc", 'deadman = "6h"', 'destroy = "on"'), "destroy: must be true or false, without quotes"),
        (bucket("abc", 'deadman = "6h"', "destroy = 1"), "destroy: must be true or false, without quotes"),
        (bucket("abc", 'release_disk = "no"'), "release_disk: must be true or false, without quotes"),
        (bucket("abc", "release_disk = 0"), "release_disk: must be true or false, without quotes"),
        (('paths = ["/w"]', "release_disk = false"), "release_disk is for a bucket"),
        (('paths = ["/w"]', 'deadman = "6h"'), 'signs of life there; write for example bucket = "s3://my-runs/train"'),
        (('paths = ["/w"]', 'accept = "tell"'), 'findings there; write for example bucket = "s3://my-runs/train"'),
        (bucket("abc", 'rclone = "nas:runs"'), "bucket and rclone are both set"),
        (('paths = ["/w"]', 'rclone = "nas:"'), "is no remote of rclone with a folder"),
        (('paths = ["/w"]', 'rclone = "nas:runs/../all"'), "is no remote of rclone with a folder"),
        (bucket("abc", 'accept = "maybe"'), "accept"),
        (bucket("abc", 'accept_script = "true"'), 'write for example accept = "reject"'),
        (bucket("abc", "accept_floor = 0.7"), 'write for example accept = "reject"'),
        (bucket("abc", 'accept = "tell"', "accept_floor = 1.0"), "must be less than 1"),
    ],
)
def test_a_switch_or_a_check_that_cannot_work_is_refused(tmp_path: Path, lines: tuple[str, ...], says: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(says)):
        loaded(tmp_path, COMMAND, "[workloads.train.guard]", *lines)


def test_without_the_table_there_is_no_guard(tmp_path: Path) -> None:
    (work,) = loaded(tmp_path, COMMAND).workloads
    assert (work.guard, work.credentials) == (None, ())


@pytest.mark.parametrize("other", ["abc/runs/train", "abc/runs/train/a", "abc/runs", "abc"])
def test_two_workloads_share_no_folder_of_a_bucket(tmp_path: Path, other: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, COMMAND, "[workloads.train.guard]", *bucket("abc/runs/train"), *second(*bucket(other)))
    (problem,) = caught.value.problems
    assert (problem.code, problem.line, problem.key) == ("shared_bucket", 28, "workloads.eval.guard.bucket")
    assert "is the folder of workload train too" in problem.sentence


@pytest.mark.parametrize("other", ["abc/runs/trainer", "abd/runs/train", "abc/train"])
def test_neighbouring_folders_are_two(tmp_path: Path, other: str) -> None:
    works = loaded(tmp_path, COMMAND, "[workloads.train.guard]", *bucket("abc/runs/train"), *second(*bucket(other)))
    assert len(works.workloads) == 2


@pytest.mark.parametrize(
    ("at", "table", "key", "words"),
    [
        ("none", bucket("abc/d"), "checkpoint.at", "says that nothing is kept"),
        ("remote", ('paths = ["/w"]',), "guard", "it carries no checkpoint to another host"),
    ],
)
def test_a_guard_that_helps_nobody_is_odd(
    tmp_path: Path, at: str, table: tuple[str, ...], key: str, words: str
) -> None:
    made = loaded(tmp_path, COMMAND, "[workloads.train.guard]", *table, "[workloads.train.checkpoint]", f'at = "{at}"')
    (found,) = lint.findings(made, lint.Known(NOW))
    assert found.key == f"workloads.train.{key}"
    assert words in found.sentence


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ((), "a checkpoint takes 8s by checkpoint.takes, a last one gets 8s: it is never in the bucket in time"),
        (('final_within = "9s"',), None),
    ],
)
def test_a_last_checkpoint_that_has_no_time_to_be_made_is_odd(
    tmp_path: Path, more: tuple[str, ...], words: str | None
) -> None:
    checkpoint = ("[workloads.train.checkpoint]", 'at = "remote"', 'takes = "8s"')
    made = loaded(tmp_path, COMMAND, "[workloads.train.guard]", *bucket("abc/d", *more), *checkpoint)
    assert [found.sentence for found in lint.findings(made, lint.Known(NOW))] == ([words] if words else [])


@pytest.mark.parametrize("recipe", sorted(RECIPES.glob("*.toml")), ids=lambda recipe: recipe.stem)
def test_the_table_of_a_recipe_is_sound(tmp_path: Path, recipe: Path) -> None:
    market, _, _ = GOOD.partition("[workloads.train]")
    (tmp_path / "agent.toml").write_text(market + recipe.read_text())
    made = config.load(tmp_path / "agent.toml", strategies=STRATEGIES)
    assert lint.findings(made, lint.Known(NOW)) == ()
    (work,) = made.workloads
    assert work.guard is not None
    assert (work.guard.ask, work.guard.done_codes) == (Ask.SIGUSR1, (0,))


def test_a_store_on_this_machine_is_odd_where_instances_are_elsewhere(tmp_path: Path) -> None:
    table = ("[workloads.train.guard]", *bucket("abc/d", 'endpoint = "http://127.0.0.1:9000"'))
    here = loaded(tmp_path, COMMAND, *table)
    assert lint.findings(here, lint.Known(NOW)) == ()
    (market,) = here.markets
    (found,) = lint.findings(replace(here, markets=(replace(market, simulated=""),)), lint.Known(NOW))
    assert found.key == "workloads.train.guard.endpoint"
    assert "no instance on vast reaches it" in found.sentence


@pytest.mark.parametrize(("length", "is_refused"), [(1_000, False), (3_000, True)])
@pytest.mark.parametrize("is_in_a_file", [False, True])
def test_a_script_that_is_too_long_for_vast_with_the_guards_own_is_refused(
    tmp_path: Path, length: int, *, is_refused: bool, is_in_a_file: bool
) -> None:
    script = "#" * length
    (tmp_path / "start.sh").write_text(script)
    start = 'onstart_file = "start.sh"' if is_in_a_file else f'onstart = "{script}"'
    lines = (start, "[workloads.train.guard]", 'paths = ["/w"]')
    if not is_refused:
        assert loaded(tmp_path, *lines).workloads[0].onstart == script
        return
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, *lines)
    (problem,) = caught.value.problems
    assert (problem.code, problem.key) == ("misfit", "workloads.train.onstart")
    assert "and vast takes 4048" in problem.sentence


@pytest.mark.parametrize(("length", "is_refused"), [(4048, False), (4049, True)])
def test_a_script_without_a_guard_is_checked_too(tmp_path: Path, length: int, *, is_refused: bool) -> None:
    start = f'onstart = "{"#" * length}"'
    if not is_refused:
        assert len(loaded(tmp_path, start).workloads[0].onstart) == length
        return
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, start)
    (problem,) = caught.value.problems
    assert problem.sentence == "has 4049 characters, and vast takes 4048; let the script fetch the rest"


def test_a_name_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text(
        added(COMMAND, "[workloads.train.guard]", 'paths = ["/w"]').replace("workloads.train", 'workloads.".."')
    )
    with pytest.raises(ConfigError, match="no folder of a bucket"):
        config.load(tmp_path / "agent.toml", strategies=STRATEGIES)


def test_a_batch_whose_guard_has_a_bucket_may_end_on_runpod_without_a_line(tmp_path: Path) -> None:
    table = ("[workloads.train.guard]", *bucket("abc"), "[markets.runpod]", 'simulated = "calm"')
    (work,) = loaded(tmp_path, 'kind = "batch"', COMMAND, *table).workloads
    assert work.done_line == ""


def test_a_batch_whose_guard_has_no_bucket_needs_a_line_that_tells_its_end(tmp_path: Path) -> None:
    batch = ('kind = "batch"', COMMAND)
    table = ("[workloads.train.guard]", 'paths = ["/w/ckpt"]')
    with pytest.raises(ConfigError, match="nowhere to report that the work is done; write bucket"):
        loaded(tmp_path, *batch, *table)
    (work,) = loaded(tmp_path, *batch, 'done_line = "training complete"', *table).workloads
    assert work.guard is not None


BATCH, ARRAY, KEEPS = 'kind = "batch"', "at_once = 2", "keep_host = true"


def test_an_array_may_keep_its_hosts(tmp_path: Path) -> None:
    lines = (COMMAND, BATCH, ARRAY, "[workloads.train.guard]", *bucket("abc", KEEPS))
    (work,) = loaded(tmp_path, *lines).workloads
    assert work.guard is not None
    assert work.guard.keep_host


@pytest.mark.parametrize(
    ("lines", "table", "said"),
    [
        ((), bucket("abc", KEEPS), "keep_host is for an array"),
        ((BATCH,), bucket("abc", KEEPS), "keep_host is for an array"),
        (
            (BATCH, ARRAY),
            ('paths = ["/w"]', KEEPS),
            'which slot is next; write for example bucket = "s3://my-runs/train"',
        ),
        ((BATCH, ARRAY, 'done_line = "done"'), bucket("abc", KEEPS), "still has the done_line of the task before"),
        (
            (BATCH, ARRAY, 'ready = "log"', 'ready_line = "up"'),
            bucket("abc", KEEPS),
            "the ready_line of the task before",
        ),
    ],
    ids=["service", "no array", "no bucket", "done_line", "ready_line"],
)
def test_a_host_is_kept_only_where_each_task_is_judged_alone(
    tmp_path: Path, lines: tuple[str, ...], table: tuple[str, ...], said: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        loaded(tmp_path, COMMAND, *lines, "[workloads.train.guard]", *table)
