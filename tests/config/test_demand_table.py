"""The range of slots and the table of a demand: their reading, and what they may not say."""

import datetime as dt
from pathlib import Path

import pytest

from agent import config
from agent.config.problems import ConfigError
from agent.domain.slot_demand import Demand, DemandFrom
from agent.domain.work.workload import Workload
from tests.support.configs import STRATEGIES, added

RANGE = "slots = { least = 1, most = 6 }"
PAGE = 'demand = { http = "http://queue.lan:8080/backlog?queue=gpu" }'


def loaded(tmp_path: Path, *lines: str) -> Workload:
    path = tmp_path / "agent.toml"
    path.write_text(added(*lines))
    return config.load(path, strategies=STRATEGIES).workloads[0]


def test_a_page_on_another_machine_is_asked_without_a_key(tmp_path: Path) -> None:
    work = loaded(tmp_path, RANGE, PAGE, 'shrink_after = "20m"')
    place = "http://queue.lan:8080/backlog?queue=gpu"
    assert work.demand == Demand(1, DemandFrom.HTTP, place, shrink_after=dt.timedelta(minutes=20))
    assert work.slots == 6


def test_a_number_of_slots_has_no_demand(tmp_path: Path) -> None:
    assert (loaded(tmp_path, "slots = 3").slots, loaded(tmp_path, "slots = 3").demand) == (3, None)


def test_an_address_with_a_password_is_refused_and_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        loaded(tmp_path, RANGE, 'demand = { http = "http://me:word@a/b" }')
    assert "must be an address of http or https, without a user" in str(refused.value)
    assert "word" not in str(refused.value)


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ((RANGE,), "a range of slots is for a demand"),
        ((PAGE,), "a demand chooses within a range; write slots = { least = 0, most = 1 }"),
        (("slots = { least = 3, most = 2 }", PAGE), "least is above most; write for example most = 3"),
        (
            (RANGE, 'demand = { http = "ftp://a/b" }'),
            "demand.http: must be an address of http or https, without a user",
        ),
        ((RANGE, 'demand = { http = "http://[" }'), 'write for example http = "http://127.0.0.1:8080/backlog"'),
        ((RANGE, 'demand = { prometheus = "ftp://a" }'), 'write for example prometheus = "http://127.0.0.1:9090"'),
        ((RANGE, "demand = { http = 3 }"), 'not 3; write for example http = "http://127.0.0.1:8080/backlog"'),
        ((RANGE, 'demand = { command = "llen" }'), 'write for example command = ["redis-cli", "LLEN", "celery"]'),
        ((RANGE, 'demand = { prometheus = "http://a", query = "" }'), "must have at least 1 characters"),
        ((RANGE, 'demand = { http = "http://a", every = "1s" }'), 'every: must be at least "5s", not "1s"'),
        ((RANGE, "demand = { per_slot = 2 }"), "a demand is read from one place"),
        ((RANGE, 'demand = { prometheus = "http://a:9090" }'), "prometheus and query go together"),
        ((RANGE, PAGE, 'kind = "batch"', 'done_line = "x"'), 'a demand is for kind = "service"'),
        (('shrink_after = "1m"',), "shrink_after is for a demand; remove it"),
    ],
)
def test_a_demand_that_cannot_work_is_refused(tmp_path: Path, lines: tuple[str, ...], told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        loaded(tmp_path, *lines)
    assert told in str(refused.value)
