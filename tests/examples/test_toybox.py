"""A vendor that comes as a package alone: its adapter and its simulated market, and nothing of gpubid is changed."""

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs import PATIENCE_SECONDS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGE = ("adapter.py", "simulated.py")
MOST_LINES = 400
ENTRY_POINTS = """\
[gpubid.markets]
toybox = toybox.adapter:RECORD
[gpubid.simulators]
toybox = toybox.simulated:RECORD
"""


def test_a_vendor_is_small() -> None:
    assert sum(len((HERE / "toybox" / name).read_text().splitlines()) for name in PACKAGE) <= MOST_LINES


def _install(site: Path) -> None:
    """Install the package in a folder, as an installer would."""
    (site / "toybox").mkdir(parents=True)
    (site / "toybox" / "__init__.py").touch()
    for name in PACKAGE:
        shutil.copy(HERE / "toybox" / name, site / "toybox")
    about = site / "toybox-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toybox\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)


async def _told(folder: Path) -> dict[str, Any]:
    _install(folder / "site")
    home = folder / "home"
    home.mkdir()
    environment = {**os.environ, "PYTHONPATH": f"{folder / 'site'}{os.pathsep}{ROOT}", "HOME": str(home)}
    words = (sys.executable, HERE / "toybox" / "story.py")
    process = await asyncio.create_subprocess_exec(
        *words, cwd=home, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), PATIENCE_SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, err.decode()
    return dict(json.loads(out))


@pytest.mark.nightly
async def test_a_vendor_of_another_package_goes_through_every_verb(tmp_path: Path) -> None:
    told = await _told(tmp_path)
    refused = told["init without an answer"]
    assert (refused["code"], "give it as --set room=VALUE" in refused["said"]) == (2, True)
    assert (told["init"]["code"], told["check"]["code"]) == (0, 0)
    assert "account toy-account of toybox" in told["init"]["said"]
    assert "market toybox: live, may spend" in told["check"]["said"]
    for line in (
        "ok   key toybox: valid, of account toy-account",
        "ok   credit toybox: toybox is paid by a later bill",
        "ok   room toybox: the machines stand in blue, 0 rented",
    ):
        assert line in told["doctor"]["said"]
    figures = json.loads(told["rehearse"]["said"])
    assert (figures["hosts"], figures["orphans"], figures["double_rents"], figures["over_cap"]) == (2, 0, 0, 0)
    assert figures["useful_hours"] > 0.9
    assert told["struck"] == [200, 503, 200]
    assert all(word in told["simulate"]["said"] for word in ("--toybox-port", "toy_drought", "toybox_url"))
    assert abs(figures["spend"] - figures["charged"]) < 0.001
    assert figures["ondemand_cost"] > figures["spend"]
    assert (told["run"]["code"], "toybox-" in told["run"]["said"]) == (0, True)
    (contract,) = told["truth"]["contracts"]
    assert (contract["state"], contract["ended"]) == ("running", None), "a stop of the daemon ends nothing"
    (ended,) = told["after the kill"]["contracts"]
    assert ended["ended"] is not None, told["kill"]["said"]
    assert f"toybox {contract['machine']}</a>" in told["seen"]["page"]
    assert 'gpubid_market_available{market="toybox"} 1.0' in told["seen"]["metrics"]
