"""Foreign records become traces with hand-computed ticks, and a mistake in a file is reported with its place."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from agent.cli.main import app
from agent.lab.traces import trace_files

RUN = CliRunner().invoke


def brought(tmp_path: Path, kind: str, *files: Path, more: tuple[str, ...] = ()) -> dict[str, trace_files.Trace]:
    """Import files with the verb and read its output with the bench's own reader."""
    out = tmp_path / "out"
    told = RUN(app, ["lab", "import", kind, *map(str, files), "--out", str(out), *more])
    assert told.exit_code == 0, told.stderr
    return {trace.pool: trace for trace in trace_files.folder(out)}


def refused(kind: str, file: Path, *more: str) -> str:
    told = RUN(app, ["lab", "import", kind, str(file), "--out", str(file.parent / "out"), *more])
    assert told.exit_code == 2, told.stdout
    assert not (file.parent / "out").exists()
    return told.stderr


def test_a_table_becomes_one_trace_a_pool_and_gaps_grow_stale(tmp_path: Path) -> None:
    file = tmp_path / "avail.csv"
    file.write_text(
        "time,available,spot_price,on_demand_price,pool,gpu,gpus\n"
        "2026-11-20T00:00:00Z,1,0.30,1.00,a,V100,1\n"
        "2026-11-20T00:10:00Z,0,,1.00,a,V100,1\n"
        "1795910400,2,,,b,,8\n"
        "2026-11-20T00:20:00Z,3,0.40,1.00,a,V100,1\n"
        "2026-11-20T03:00:00Z,4,0.50,1.00,a,V100,1\n"
    )
    found = brought(tmp_path, "csv", file)
    mine = found["a"]
    assert (mine.gap_seconds, mine.ticks, mine.gpu) == (600, 19, "V100")
    assert mine.available.tolist() == [1, 0, *[3] * 13, 0, 0, 0, 4], "after twelve ticks nothing is known"
    assert mine.spot_prices[0] == 0.30
    assert np.isnan(mine.spot_prices[1])
    assert np.isnan(mine.spot_prices[15])
    assert (found["b"].ticks, found["b"].gpus, found["b"].available.tolist()) == (1, 8, [2])


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("when,available\n1,1\n", "avail.csv:1: time: is no column"),
        ("time,available\n", "avail.csv:1: time: has no rows"),
        ("time,available\n2026-11-20T00:00:00Z,1\nyesterday,1\n", "avail.csv:3: time: 'yesterday' is no instant"),
        ("time,available\n2026-11-20T00:00:00Z,some\n", "avail.csv:2: available: 'some' is no count"),
        ("time,available\n2026-11-20T00:00:00Z,-1\n", "avail.csv:2: available: '-1' is no count"),
        ("time,available,spot_price\n2026-11-20T00:00:00Z,1,nan\n", "avail.csv:2: spot_price: 'nan' is no price"),
        ("time,available,gpus\n2026-11-20T00:00:00Z,1,0\n", "avail.csv:2: gpus: '0' is no count"),
        ("time,available\n1,1\n3e10,1\n", "avail.csv:3: time: '3e10' is no instant"),
    ],
)
def test_what_is_wrong_in_a_table_is_said_with_line_and_column(tmp_path: Path, text: str, place: str) -> None:
    file = tmp_path / "avail.csv"
    file.write_text(text)
    assert place in refused("csv", file)


def test_aws_prices_hold_until_they_change(tmp_path: Path) -> None:
    rows = [
        {"AvailabilityZone": zone, "InstanceType": "p3.2xlarge", "ProductDescription": "Linux/UNIX", "SpotPrice": price,
         "Timestamp": at}
        for zone, price, at in (
            ("us-west-2a", "1.0200", "2026-11-20T06:00:00+00:00"),
            ("us-west-2a", "0.9100", "2026-11-20T00:00:00+00:00"),
            ("us-west-2b", "0.5000", "2026-11-20T00:00:00+00:00"),
        )
    ]  # fmt: skip
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({"SpotPriceHistory": rows}))
    found = brought(tmp_path, "aws", file, more=("--gap-seconds", "3600"))
    mine = found["us-west-2a p3.2xlarge Linux/UNIX"]
    assert mine.spot_prices.tolist() == [0.91] * 6 + [1.02]
    assert mine.available.tolist() == [1] * 7
    assert np.isnan(mine.on_demand_prices).all()
    rows[1]["SpotPrice"] = "cheap"
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "prices.json").write_text(json.dumps({"SpotPriceHistory": rows}))
    assert "SpotPriceHistory[1].SpotPrice: 'cheap' is no price" in refused("aws", bad / "prices.json")
    (bad / "prices.json").write_text('{"SpotPriceHistory": [\n{]}')
    assert "prices.json:2: file: is no JSON" in refused("aws", bad / "prices.json")


def search(*offers: tuple[str, int, float | None, float]) -> str:
    """Return a saved search: (GPU, number, lowest bid, price on demand) of each offer."""
    rows = [{"gpu_name": name, "num_gpus": count, "min_bid": bid, "dph_base": ask} for name, count, bid, ask in offers]
    return json.dumps(rows)


def test_saved_searches_become_one_trace_a_model_and_size(tmp_path: Path) -> None:
    folder = tmp_path / "scrapes"
    folder.mkdir()
    first = search(("RTX 4090", 1, 0.2, 0.5), ("RTX 4090", 1, 0.15, 0.6), ("H100 SXM", 8, None, 16.0))
    (folder / "offers-20261120T180000.json").write_text(first)
    (folder / "offers_2026-11-20_18-05.json").write_text(search(("RTX_4090", 1, 0.3, 0.4)))
    found = brought(tmp_path, "vast", folder)
    mine, other = found["1x RTX 4090"], found["8x H100 SXM"]
    assert (mine.gap_seconds, mine.start.isoformat()) == (300, "2026-11-20T18:00:00+00:00")
    assert (mine.available.tolist(), mine.spot_prices.tolist()) == ([2, 1], [0.15, 0.3])
    assert mine.on_demand_prices.tolist() == [0.5, 0.4]
    assert other.available.tolist() == [0, 0], "no bid is taken for it, then it is gone"
    one = tmp_path / "now.json"
    one.write_text(search(("RTX 4090", 1, 0.2, 0.5)))
    at = brought(tmp_path / "at", "vast", one, more=("--at", "2026-11-20T20:00:00Z"))
    assert at["1x RTX 4090"].start.hour == 20
    one.write_text('[{"gpu_name": "RTX 4090"}]')
    bad = tmp_path / "bad"
    (bad / "folder").mkdir(parents=True)
    (bad / "now.json").write_text('[{"gpu_name": "RTX 4090"}]')
    assert "now.json:1: offers[0].num_gpus: is no number" in refused("vast", bad / "now.json")
    assert "is for one file" in refused("vast", bad / "folder", "--at", "2026-11-20T20:00:00Z")
    assert "name csv, aws, ledger, vast" in refused("runpod", bad / "now.json"), "its record reads no saved search"


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("time,available\n1795910400,1\n")
    brought(tmp_path, "csv", file)
    again = RUN(app, ["lab", "import", "csv", str(file), "--out", str(tmp_path / "out")])
    assert (again.exit_code, "exists already" in again.stderr) == (2, True)
