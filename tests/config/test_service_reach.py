"""What of a new configuration waits for the next start."""

from pathlib import Path

import pytest

from agent.config import loading, service_reach
from agent.config.settings import Config
from tests.support.configs import GOOD, STRATEGIES


def load(directory: Path, text: str) -> Config:
    (directory / "agent.toml").write_text(text)
    return loading.load(directory / "agent.toml", strategies=STRATEGIES)


def test_a_market_that_is_added_waits_for_the_next_start(tmp_path: Path) -> None:
    before = load(tmp_path, GOOD)
    after = load(tmp_path, GOOD + '[markets.runpod]\nsimulated = "calm"\n')
    assert [each.about for each in service_reach.shortfalls(before, after)] == ["markets.runpod"]
    assert list(service_reach.shortfalls(after, after)) == []


def test_a_market_that_is_removed_is_paid_nothing_at_once(tmp_path: Path) -> None:
    before = load(tmp_path, GOOD + '[markets.runpod]\nsimulated = "calm"\n')
    after = load(tmp_path, GOOD)
    assert [
        (each.about, "nothing is paid for" in each.sentence) for each in service_reach.shortfalls(before, after)
    ] == [("markets.runpod", True)]
    removed, kept = before.market("runpod"), before.market("vast")
    assert removed is not None
    assert kept is not None
    assert "[markets.runpod] is gone" in service_reach.why_unpaid(removed, after)
    assert service_reach.why_unpaid(kept, after) == ""


def test_a_changed_group_of_operators_is_named(tmp_path: Path) -> None:
    before = load(tmp_path, GOOD)
    after = load(tmp_path, GOOD + '[operators]\ngroup = "adm"\nuids = [7]\n')
    assert [each.about for each in service_reach.shortfalls(before, after)] == ["operators.group"]


def test_each_key_of_the_web_server_that_changes_is_named(tmp_path: Path) -> None:
    before = load(tmp_path, GOOD + '[web]\nlisten = "127.0.0.1:1"\n')
    after = load(tmp_path, GOOD + '[web]\nlisten = "127.0.0.1:1"\nnames = ["box"]\ncredential = "web_token"\n')
    assert [each.about for each in service_reach.shortfalls(before, after)] == ["web.names", "web.credential"]


LIVE = '[markets.runpod]\nurl = "http://127.0.0.1:1"\ncredential = "runpod"\nspend = {}\n'


def test_spend_that_is_false_now_applies_to_that_market_at_once_and_is_given_back(tmp_path: Path) -> None:
    start, other = load(tmp_path, GOOD + LIVE.format("true")), load(tmp_path, GOOD + LIVE.format("false"))
    runpod, vast = start.market("runpod"), start.market("vast")
    assert runpod is not None
    assert vast is not None
    (told,) = service_reach.shortfalls(start, other)
    assert (told.event, told.about) == ("config.noted", "markets.runpod.spend")
    assert "spend = false in [markets.runpod] since a reload" in service_reach.why_unpaid(runpod, other)
    assert service_reach.why_unpaid(vast, other) == ""
    withdrawn = service_reach.running(runpod, other)
    assert not withdrawn.may_spend
    assert service_reach.why_unpaid(withdrawn, start) == ""
    assert service_reach.running(withdrawn, start) == runpod


def test_spend_that_is_true_now_waits_for_the_next_start(tmp_path: Path) -> None:
    start, other = load(tmp_path, GOOD + LIVE.format("false")), load(tmp_path, GOOD + LIVE.format("true"))
    runpod = start.market("runpod")
    assert runpod is not None
    (told,) = service_reach.shortfalls(start, other)
    assert (told.event, told.about) == ("config.deferred", "markets.runpod.spend")
    assert "applies from the next start" in service_reach.why_unpaid(runpod, other)
    assert not service_reach.running(runpod, other).may_spend


CLOUDS = """[markets.dstack]
url = "http://127.0.0.1:1"
credential = "dstack"
fleet = "gpubid"
backends = ["{}"]
"""


@pytest.mark.parametrize(
    ("old", "new", "keys"),
    [
        ("[lab]\nrecord = true\n", "[lab]\nrecord = false\n", ["lab.record"]),
        ("[lab]\nrecord = true\nrecord_mb = 200\n", "[lab]\nrecord = true\nrecord_mb = 300\n", ["lab.record_mb"]),
        ("[ledger]\nlog_mb = 9\n", "[ledger]\nlog_mb = 10\n", ["ledger.log_mb"]),
        (CLOUDS.format("aws"), CLOUDS.format("gcp"), ["markets.dstack.backends"]),
    ],
)
def test_what_is_read_at_a_start_alone_is_named_at_each_reload(
    tmp_path: Path, old: str, new: str, keys: list[str]
) -> None:
    start, after = load(tmp_path, GOOD + old), load(tmp_path, GOOD + new)
    running = start
    for _ in range(2):
        assert [each.about for each in service_reach.shortfalls(running, after)] == keys
        running = service_reach.in_force(running, after)
    assert list(service_reach.shortfalls(running, start)) == []
