"""The wheel as a tool of one person: installed by `uv tool install` or pipx alone it runs, and its unit runs it."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
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


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    ran(ROOT, sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def pins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the versions of the project's lock, without their hashes."""
    file = tmp_path_factory.mktemp("pins") / "constraints.txt"
    lines = re.findall(r"^([a-z0-9-]+==[^\\\n]+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    file.write_text("\n".join(lines))
    return file


def by_uv(place: Path, wheel: Path, pins: Path) -> tuple[Path, Path]:
    """Install with `uv tool install`; return the program and its environment."""
    where = {"UV_TOOL_DIR": str(place / "tools"), "UV_TOOL_BIN_DIR": str(place / "bin")}
    ran(place, UV, "--quiet", "tool", "install", "--constraints", pins, wheel, **where)
    return place / "bin/gpubid", place / "tools/gpubid"


def by_pipx(place: Path, wheel: Path, pins: Path) -> tuple[Path, Path]:
    """Install with `pipx install`; return the program and its environment."""
    if shutil.which("pipx") is None:
        pytest.skip("THE WHEEL WAS NOT INSTALLED BY PIPX: it is not here (Debian package pipx)")
    where = {"PIPX_HOME": str(place / "pipx"), "PIPX_BIN_DIR": str(place / "bin")}
    ran(place, "pipx", "install", "--pip-args", f"--constraint {pins}", wheel, **where)
    return place / "bin/gpubid", place / "pipx/venvs/gpubid"


@pytest.mark.parametrize("installed", [by_uv, by_pipx])
def test_the_wheel_is_a_tool(
    tmp_path: Path, wheel: Path, pins: Path, installed: Callable[[Path, Path, Path], tuple[Path, Path]]
) -> None:
    gpubid, home = installed(tmp_path, wheel, pins)
    assert ran(tmp_path, gpubid, "--version") == f"gpubid {__version__}\n"
    ran(tmp_path, gpubid, "init", "--yes", "--workload", "night")
    ran(tmp_path, gpubid, "check")
    told = json.loads(ran(tmp_path, gpubid, "rehearse", "--hours", "1", "--json"))
    assert told["spend"] > 0
    assert f"ExecStart={home}/bin/gpubid run" in ran(tmp_path, gpubid, "deploy", "show", "unit")
