"""The keys of a workload as people run it: their values, and the report of keys that do not go together."""

import datetime as dt
from pathlib import Path

import pytest

from agent import config
from agent.config.problems import ConfigError
from agent.domain.market import gpu
from agent.domain.work.deadline import Deadline, ProgressSign
from agent.domain.work.ready_sign import ReadySign
from agent.domain.work.workload import ImageLogin, OnChange, Runtype, Workload, WorkloadKind
from agent.markets.runpod.orders import MOUNT
from tests.support.configs import STRATEGIES, added

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJyQ me@home"


def loaded(tmp_path: Path, *lines: str) -> Workload:
    path = tmp_path / "agent.toml"
    path.write_text(added(*lines))
    return config.load(path, strategies=STRATEGIES).workloads[0]


def test_a_deadline_becomes_what_it_says(tmp_path: Path) -> None:
    work = loaded(
        tmp_path,
        'kind = "batch"',
        "dataset_gb = 12",
        "ports = [8000]",
        "[workloads.train.deadline]",
        "hours = 48",
        "by = 2027-01-31T18:00:00+01:00",
        'reference_gpu = "rtx_4090"',
        'restart = "20m"',
        'progress = "http"',
        "progress_port = 8000",
    )
    assert work.dataset_gb == 12
    assert work.deadline == Deadline(
        hours=48.0,
        by=dt.datetime(2027, 1, 31, 17, tzinfo=dt.UTC),
        reference_gpu=gpu.model("RTX 4090"),
        restart=dt.timedelta(minutes=20),
        sign=ProgressSign.HTTP,
        port=8000,
        path="/progress",
    )
    assert work.is_probed


@pytest.mark.parametrize(
    ("written", "by"),
    [
        ('"2027-01-31T18:00Z"', dt.datetime(2027, 1, 31, 18, tzinfo=dt.UTC)),
        ('"2027-01-31T18:00+01:00"', dt.datetime(2027, 1, 31, 17, tzinfo=dt.UTC)),
        ('"2027-01-31"', dt.datetime(2027, 1, 31, tzinfo=dt.UTC)),
        ("2026-12-01T07:00:00+09:00", dt.datetime(2026, 11, 30, 22, tzinfo=dt.UTC)),
    ],
)
def test_a_deadline_takes_the_times_that_verbs_take(tmp_path: Path, written: str, by: dt.datetime) -> None:
    work = loaded(tmp_path, 'kind = "batch"', f"deadline = {{ hours = 4, by = {written} }}")
    assert work.deadline is not None
    assert (work.deadline.by, work.deadline.by.tzinfo) == (by, dt.UTC)


@pytest.mark.parametrize("written", ["2027-01-31T18:00:00", '"tomorrow"', '"2h"', "7"])
def test_another_deadline_is_refused_with_one_to_write(tmp_path: Path, written: str) -> None:
    with pytest.raises(ConfigError, match='write for example by = "2027-01-31T18:00Z"'):
        loaded(tmp_path, 'kind = "batch"', f"deadline = {{ hours = 4, by = {written} }}")


@pytest.mark.parametrize("written", ["9999-12-31T00:00:00Z", '"0001-01-01"', "9999-12-31T23:00:00-12:00"])
def test_a_deadline_that_no_calendar_can_reckon_with_is_refused(tmp_path: Path, written: str) -> None:
    with pytest.raises(ConfigError, match=r"train\.deadline\.by: must lie between 2000 and 2100"):
        loaded(tmp_path, 'kind = "batch"', f"deadline = {{ hours = 4, by = {written} }}")


@pytest.mark.parametrize("lines", [(), ('kind = "batch"', "deadline = { hours = 4, by = 2027-01-31T18:00:00Z }")])
def test_a_workload_may_have_no_slots(tmp_path: Path, lines: tuple[str, ...]) -> None:
    work = loaded(tmp_path, "slots = 0", *lines)
    assert (work.slots, work.places) == (0, ())


def test_a_price_by_gpu_takes_any_spelling(tmp_path: Path) -> None:
    work = loaded(tmp_path, "[workloads.train.max_price_by_gpu]", '"rtx_4090" = 0.35', '"NVIDIA H100 SXM" = 2.10')
    assert [(model, price.micros) for model, price in work.max_price_by_gpu] == [
        ("RTX 4090", 350_000),
        ("H100 SXM", 2_100_000),
    ]
    assert work.price_of(gpu.model("RTX 3090")) == work.max_price


def test_an_hour_is_worth_the_highest_price_unless_the_file_says_more(tmp_path: Path) -> None:
    by_gpu = ("[workloads.train.max_price_by_gpu]", '"RTX 4090" = 0.35')
    plain, valued = loaded(tmp_path, *by_gpu), loaded(tmp_path, "value_per_hour = 0.9", *by_gpu)
    card, other = gpu.model("RTX 4090"), gpu.model("RTX 3090")
    assert [plain.value_of(model) for model in (card, other)] == [plain.price_of(card), plain.max_price]
    assert [valued.value_of(model).dollars for model in (card, other)] == [0.9, 0.9]
    assert valued.price_of(card).dollars == 0.35


def test_an_hour_may_be_worth_a_share_of_the_on_demand_price(tmp_path: Path) -> None:
    work = loaded(tmp_path, 'value = "0.8 x on_demand"')
    assert (work.value_share, work.value_per_hour) == (0.8, None)
    assert loaded(tmp_path).value_share is None


@pytest.mark.parametrize(
    ("lines", "code", "fix"),
    [
        (('value = "0.8"',), "bad_value", 'write for example value = "0.8 x on_demand"'),
        (('value = "0 x on_demand"',), "bad_value", "above 0"),
        (('value = "101 x on_demand"',), "bad_value", "at most 100"),
        (('value = "1 x on_demand"', "value_per_hour = 0.9"), "conflict", "keep one"),
    ],
)
def test_a_value_that_says_nothing_or_two_things_is_refused(
    tmp_path: Path, lines: tuple[str, ...], code: str, fix: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, *lines)
    (problem,) = caught.value.problems
    assert problem.code == code
    assert fix in problem.sentence


def test_data_on_a_network_volume_is_on_no_leases_disk(tmp_path: Path) -> None:
    volume = 'network_volume = "agv6w2qcg7"'
    work = loaded(tmp_path, volume, 'checkpoint = { at = "remote" }')
    assert work.requirements.network_volume == "agv6w2qcg7"
    priced = loaded(tmp_path, volume, "network_volume_per_month = 7.20", 'checkpoint = { at = "remote" }')
    assert (priced.network_volume_rate.dollars, work.network_volume_rate.dollars) == (0.01, 0.0)
    with pytest.raises(ConfigError, match="name the volume too"):
        loaded(tmp_path, "network_volume_per_month = 7.20")
    with pytest.raises(ConfigError, match='write at = "remote" in the checkpoint table'):
        loaded(tmp_path, volume)
    bucket = (
        'command = "a"',
        "[workloads.train.guard]",
        'bucket = "s3://abc/train"',
        'region = "e"',
        'credential = "b"',
    )
    remote = 'checkpoint = { at = "remote" }'
    loaded(tmp_path, volume, remote, *bucket, 'paths = ["/workspaces"]')
    with pytest.raises(ConfigError, match="ckpt is on the network volume"):
        loaded(tmp_path, volume, remote, *bucket, f'paths = ["{MOUNT}/ckpt"]')


def test_every_key_becomes_what_it_says(tmp_path: Path) -> None:
    work = loaded(
        tmp_path,
        'kind = "batch"',
        'done_line = "all done"',
        "max_fast_exits = 2",
        "max_failed_starts = 5",
        "ports = [8000, 22]",
        'ready = "http"',
        'ready_within = "5m"',
        "ready_port = 8000",
        'ready_path = "/health"',
        'runtype = "ssh_direct"',
        f'ssh_keys = ["{KEY}"]',
        'template = "a1b2"',
        'min_end_ahead = "1d"',
        "max_per_owner = 2",
        'markets = ["vast"]',
        'on_change = "move"',
        'was = "old"',
        "priority = 3",
        'env_from = { HF_TOKEN = "hf_token" }',
        'image_login = { registry = "ghcr.io", user = "me", credential = "ghcr_token" }',
    )
    assert (work.kind, work.done_line, work.max_fast_exits, work.max_failed_starts) == (
        WorkloadKind.BATCH,
        "all done",
        2,
        5,
    )
    assert (work.ready.sign, work.ready.port, work.ready.path) == (ReadySign.HTTP, 8000, "/health")
    assert work.ready.within == dt.timedelta(minutes=5)
    assert (work.ports, work.runtype, work.ssh_keys) == ((8000, 22), Runtype.SSH_DIRECT, (KEY,))
    assert (work.template, work.max_per_owner, work.on_change) == ("a1b2", 2, OnChange.MOVE)
    assert work.markets == ("vast",)
    assert (work.was, work.priority) == ("old", 3)
    assert work.requirements.min_end_ahead == dt.timedelta(days=1)
    assert work.image_login == ImageLogin("ghcr.io", "me", "ghcr_token")
    assert work.credentials == ("ghcr_token", "hf_token")


BROKEN = [
    ('ready = "log"', "missing_key", "ready_line"),
    ('ready = "port"', "missing_key", "ready_port = 8000"),
    ("ready_port = 8000", "bad_port", "ports = [8000]"),
    ('ready = "maybe"', "unknown_value", '"none", "log", "port" or "http"'),
    ("ready_path = 'health'", "bad_path", "begin with /"),
    ('done_line = "done"', "conflict", 'kind = "batch"'),
    ('kind = "job"', "unknown_value", '"batch" or "service"'),
    ("max_fast_exits = 0", "out_of_range", "at least 1"),
    ("ports = [70000]", "out_of_range", "65535"),
    ('env = { A = "1" }\nenv_from = { A = "key" }', "conflict", "keep one"),
    ('command = "x"\nruntype = "ssh"', "conflict", "onstart"),
    (f'command = "x"\nssh_keys = ["{KEY}"]', "conflict", "shell"),
    ('ssh_keys = ["x\'; rm -rf /"]', "bad_key", ".pub"),
    ('ssh_keys = ["-----BEGIN OPENSSH PRIVATE KEY-----"]', "private_key", ".pub"),
    ('ssh_keys = ["""\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n"""]', "private_key", "replace the pair"),
    ('was = "a b"', "bad_name", "name"),
]


@pytest.mark.parametrize(("lines", "code", "part"), BROKEN, ids=[row[0][:30] for row in BROKEN])
def test_a_mistake_is_told_with_its_mend(tmp_path: Path, lines: str, code: str, part: str) -> None:
    with pytest.raises(config.ConfigError) as caught:
        loaded(tmp_path, lines)
    [problem] = caught.value.problems
    assert problem.code == code
    assert part in problem.sentence


def test_a_secret_written_where_its_name_belongs_is_not_repeated(tmp_path: Path) -> None:
    secret = "0123456789abcdef0123456789abcdef0123"
    with pytest.raises(config.ConfigError) as caught:
        loaded(tmp_path, f'env_from = {{ HF_TOKEN = "{secret}" }}')
    assert caught.value.problems[0].code == "key_in_file"
    assert secret not in str(caught.value)


NEW = '[workloads.{}]\nimage = "a"\nmax_price = 0.1\nstrategy = "patient"\nwas = "{}"'


@pytest.mark.parametrize(
    ("tables", "key", "part"),
    [
        (
            [NEW.format("fit", "train")],
            "workloads.fit.was",
            '"train" is the name of another workload of this file; remove',
        ),
        (['was = "train"'], "workloads.train.was", '"train" is the name of this workload; remove `was`'),
        (
            [NEW.format("fit", "old"), NEW.format("eval", "old")],
            "workloads.eval.was",
            '"old" is the old name of [workloads.fit] too; keep one of the two',
        ),
    ],
    ids=["another has it", "its own", "two of one"],
)
def test_the_cost_and_running_time_of_one_name_count_for_one_workload(
    tmp_path: Path, tables: list[str], key: str, part: str
) -> None:
    with pytest.raises(config.ConfigError) as caught:
        loaded(tmp_path, *tables)
    [problem] = caught.value.problems
    assert problem.code == "conflict"
    assert problem.key == key
    assert part in problem.sentence


def test_a_name_may_be_taken_back(tmp_path: Path) -> None:
    assert loaded(tmp_path, 'was = "fit"').was == "fit"
