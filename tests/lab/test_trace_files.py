"""Trace files: reading, refusals and their messages."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agent.config.problems import ConfigError
from agent.lab.traces import trace_files

GOOD: dict[str, Any] = {
    "pool": "zone-a",
    "gap_seconds": 600,
    "start": "2026-01-02T03:04:05Z",
    "gpu": "V100",
    "gpus": 1,
    "on_demand_price": 3.0,
    "spot_price": [1.0, None, 1.2],
    "available": [1, 0, 2],
}


def written(folder: Path, name: str = "a.json", **changes: Any) -> Path:
    file = folder / name
    file.write_text(json.dumps({**GOOD, **changes}))
    return file


def test_a_trace_is_read_and_written_again(tmp_path: Path) -> None:
    found = trace_files.read(written(tmp_path))
    assert (found.pool, found.ticks, found.end.isoformat()) == ("zone-a", 3, "2026-01-02T03:34:05+00:00")
    assert np.isnan(found.spot_prices[1])
    assert trace_files.document(found) == {**GOOD, "start": "2026-01-02T03:04:05+00:00"}


def test_a_start_without_a_zone_is_utc(tmp_path: Path) -> None:
    assert (
        trace_files.read(written(tmp_path, start="2026-01-02 03:04:05")).start.isoformat()
        == "2026-01-02T03:04:05+00:00"
    )


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"gap_seconds": 0}, "gap_seconds"),
        ({"gap_seconds": 1.5}, "gap_seconds"),
        ({"available": []}, "available"),
        ({"available": [1, -1, 0]}, "available[1]"),
        ({"spot_price": [1.0]}, "spot_price"),
        ({"spot_price": "cheap"}, "spot_price"),
        ({"on_demand_price": -1}, "on_demand_price"),
        ({"start": "yesterday"}, "start"),
        ({"pool": ""}, "pool"),
    ],
)
def test_what_is_wrong_is_said_with_its_key(tmp_path: Path, changes: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        trace_files.read(written(tmp_path, **changes))
    assert caught.value.problems[0].key.startswith(key.partition("[")[0])


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"pool": "a"}', "\x00"])
def test_a_file_that_is_no_trace_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a.json"
    file.write_text(text)
    with pytest.raises(ConfigError):
        trace_files.read(file)


def test_two_files_of_one_pool_and_an_empty_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no \.json file"):
        trace_files.folder(tmp_path)
    written(tmp_path)
    written(tmp_path, "b.json")
    with pytest.raises(ConfigError, match="two files"):
        trace_files.folder(tmp_path)
