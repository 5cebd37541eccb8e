import contextlib
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.markets.vast import query


def test_the_vendors_grammar_is_read_as_the_vendor_reads_it() -> None:
    asked = (
        "reliability > 0.98 dph < 0.5 cpu_ram>=32 duration>2 gpu_name=RTX_4090 geolocation in [US,DE] static_ip=true"
    )
    assert query.parse(asked) == {
        "reliability": {"gt": 0.98},
        "dph_total": {"lt": 0.5},
        "cpu_ram": {"gte": 32_000.0},
        "duration": {"gt": 172_800.0},
        "gpu_name": {"eq": "RTX 4090"},
        "geolocation": {"in": ["US", "DE"]},
        "static_ip": {"eq": True},
    }
    assert query.parse("driver_version>=535.86.05 num_gpus in [1,2]") == {
        "driver_version": {"gte": 535_086_005},
        "num_gpus": {"in": [1.0, 2.0]},
    }


def test_the_wildcard_drops_a_filter() -> None:
    assert query.parse("verified=any num_gpus=1") == {"num_gpus": {"eq": 1.0}}


@pytest.mark.parametrize(
    ("asked", "word", "near"),
    [
        ("gpu_rm>=24", "gpu_rm", "gpu_ram"),
        ("dlperf_per_usd>3", "dlperf_per_usd", "dlperf_usd"),
        ("reliabilty>0.9", "reliabilty", "reliability"),
        ("gpu_ram=>24", "=>", ">"),
        ("gpu_ram>=abc", "abc", ""),
        ("gpu_ram>=nan", "nan", ""),
        ("reliability>=high", "high", ""),
        ("total_flops>1e400", "1e400", ""),
        ("verified=maybe", "maybe", "true"),
        ("static_ip=1", "1", "true"),
        ("driver_version>=5.3", "5.3", ""),
        ("id=31000001", "id", "machine_id"),
    ],
)
def test_an_error_names_the_word_and_what_was_perhaps_meant(asked: str, word: str, near: str) -> None:
    with pytest.raises(query.BadQuery) as caught:
        query.check(asked)
    assert caught.value.word == word
    assert word in str(caught.value)
    assert near in str(caught.value)
    assert not near or near in caught.value.near


@pytest.mark.parametrize(
    "asked", ["gpu_ram", "gpu_ram>=", "foo bar", "dph<0.5 )(", "gpu_ram in [24,48]", "gpu_ram>=24\nx", "dph<1 " * 300]
)
def test_text_that_is_no_condition_is_refused(asked: str) -> None:
    with pytest.raises(query.BadQuery):
        query.check(asked)


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    for asked in ("gpu_rm>=24", "driver_version>=5.3", "driver_version=x.y.z"):
        with pytest.raises(query.BadQuery):
            query.check(asked)
    assert capfd.readouterr() == ("", "")


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(asked: str) -> None:
    filters: query.Filters = {}
    with contextlib.suppress(query.BadQuery):
        filters = query.parse(asked)
    assert all(isinstance(conditions, dict) for conditions in filters.values())


def test_the_vendors_package_is_never_imported() -> None:
    """Its import takes a third of a second, installs a log handler and stops propagation."""
    program = (
        "import sys, logging\n"
        "from agent.markets.vast import market, query\n"
        "query.parse('')\n"
        "assert 'agent.markets.vast._vendor_query' not in sys.modules and query._vendor.cache_info().currsize == 0\n"
        "query.parse('gpu_ram>=24')\n"
        "assert query._vendor.cache_info().currsize == 1\n"
        "assert not [name for name in sys.modules if name.partition('.')[0] in ('vastai', 'borb', 'PIL')]\n"
        "assert 'vastai' not in logging.Logger.manager.loggerDict\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


ROW: dict[str, Any] = {
    "gpu_ram": 24564,
    "geolocation": "Oregon, US",
    "verification": "verified",
    "hosting_type": 1,
    "reliability2": 0.99,
    "gpu_name": "RTX 4090",
    "static_ip": True,
    "has_avx": 1,
    "driver_vers": 535_086_005,
    "inet_down": "812.5",
    "cpu_arch": None,
    "gpu_ids": [1],
}


@pytest.mark.parametrize(
    ("asked", "passes"),
    [
        ("gpu_ram>=24", True),
        ("gpu_ram>24.564", False),
        ("gpu_ram<24.565", True),
        ("gpu_ram<=24", False),
        ("geolocation=US", True),
        ("geolocation in [DE,US]", True),
        ("geolocation notin [US,CN]", False),
        ("verified=true", True),
        ("verified=false", False),
        ("datacenter=true", True),
        ("reliability>0.985", True),
        ("reliability>0.995", False),
        ("gpu_name=RTX_4090", True),
        ("gpu_name!=RTX_4090", False),
        ("static_ip=true", True),
        ("has_avx=true", True),
        ("driver_version>=535.86.05", True),
        ("driver_version>=550.0.0", False),
        ("inet_down>=800", True),
        ("inet_down>=900", False),
        ("cpu_arch=amd64", True),
        ("compute_cap>=800", True),
    ],
)
def test_a_returned_row_is_checked_as_far_as_it_shows_the_field(asked: str, passes: bool) -> None:
    assert query.matches(query.parse(asked), ROW) is passes
