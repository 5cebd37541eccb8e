"""The wheel as a tool of one person: installed by `uv tool install` alone, it runs, and its unit runs it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agent import __version__

pytestmark = pytest.mark.guest
ROOT = Path(__file__).parents[2]
UV = Path(sys.prefix) / "bin/uv"


def ran(place: Path, *order: str | Path, **more: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GPUBID", "COV"))}
    done = subprocess.run(
        [str(word) for word in order], cwd=place, env=kept | more, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_is_a_tool(tmp_path: Path) -> None:
    place = tmp_path
    wheels, tools, programs = place / "wheels", place / "tools", place / "bin"
    ran(ROOT, sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", wheels)
    pins = re.findall(r"^([a-z0-9-]+==\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    (place / "constraints.txt").write_text("\n".join(pins))
    (wheel,) = wheels.glob("*.whl")
    where = {"UV_TOOL_DIR": str(tools), "UV_TOOL_BIN_DIR": str(programs)}
    ran(place, UV, "--quiet", "tool", "install", "--constraints", place / "constraints.txt", wheel, **where)
    gpubid = programs / "gpubid"
    assert ran(place, gpubid, "--version") == f"gpubid {__version__}\n"
    ran(place, gpubid, "init", "--yes", "--workload", "night")
    ran(place, gpubid, "check")
    ran(place, gpubid, "rehearse", "--hours", "1", "--json")
    assert f"ExecStart={tools}/gpubid/bin/gpubid run" in ran(place, gpubid, "deploy", "show", "unit")
