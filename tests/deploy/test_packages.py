"""The content of the packages: everything that the program imports, and nothing whose licence forbids it."""

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DEBIAN = ROOT / "deploy/debian"
PINNED = re.compile(r"^([a-z0-9-]+)==(\S+)", re.MULTILINE)

IMPORTS = """
import importlib, importlib.abc, importlib.metadata, json, pkgutil, sys

EXTRAS = {
    "agent.lab.workers.": "dask",
    "agent.lab.": "lab",
    "agent.ledger.file.parquet_file": "parquet",
    "agent.ledger.server.": "postgresql",
}
allowed = set(sys.argv[1].split(","))
owners = importlib.metadata.packages_distributions()

class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if {owner.lower().replace("_", "-") for owner in owners.get(top, [])} - allowed:
            raise ModuleNotFoundError(f"{name} is not in the package", name=name)

sys.meta_path.insert(0, Refuse())
for root in ("agent", "strategies", "migrations"):
    package = importlib.import_module(root)
    for module in pkgutil.walk_packages(package.__path__, root + "."):
        if module.name.startswith("migrations.") or module.name == "agent.__main__":
            continue
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as missing:
            # What an extra brings is imported by its own modules alone, and their verbs say what to install.
            of = next((extra for prefix, extra in EXTRAS.items() if module.name.startswith(prefix)), "")
            if missing.name.partition(".")[0] not in json.loads(sys.argv[2]).get(of, []):
                raise
from agent.markets.vast import query
query.check("gpu_ram>=24 reliability>0.9")
"""


def pins(file: Path) -> dict[str, str]:
    return dict(PINNED.findall(file.read_text()))


def requirements(key: str) -> dict[str, list[str]]:
    """Return the names of packages that the project requires, by their list."""
    found = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][key]
    lists = found if isinstance(found, dict) else {key: found}
    return {name: [re.split(r"[<>=\[]", line)[0] for line in lines] for name, lines in lists.items()}


def test_nothing_that_is_imported_needs_what_is_left_out() -> None:
    allowed = ",".join([*pins(DEBIAN / "requirements.lock"), "gpubid"])
    extras = json.dumps(requirements("optional-dependencies"))
    ran = subprocess.run(
        [sys.executable, "-c", IMPORTS, allowed, extras], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-2000:]


def test_the_packages_lock_is_the_projects_without_what_is_left_out() -> None:
    locked = pins(DEBIAN / "requirements.lock")
    # The project's lock has two versions where the newest leaves out a Python that we support.
    all_of_them = set(PINNED.findall((ROOT / "requirements.lock").read_text()))
    left_out = set(re.findall(r"^([a-z0-9-]+);", (DEBIAN / "without.txt").read_text(), re.MULTILINE))
    assert "borb" in left_out
    assert not left_out & locked.keys()
    assert locked.items() <= all_of_them, "run `make lock`"
    assert set(requirements("dependencies")["dependencies"]) - left_out <= locked.keys(), "run `make lock`"


def test_the_package_has_the_driver_of_a_ledger_on_a_server_and_installs_no_library_unasked() -> None:
    locked = pins(DEBIAN / "requirements.lock")
    assert "psycopg" in locked
    assert "psycopg-binary" not in locked, "its libraries would be ours to keep up to date"
    fields = dict(re.findall(r"^(\S+): (.*)$", (DEBIAN / "control").read_text(), re.MULTILINE))
    assert "libpq5" in fields["Suggests"].split(", ")
    assert "libpq5" not in f"{fields['Depends']}, {fields['Recommends']}".split(", ")


def test_the_wheel_holds_all_that_the_program_reads(tmp_path: Path) -> None:
    order = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(order, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    shipped = {name.partition(".data/data/")[2] for name in names} | set(names)
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    inside = {file for file in tracked if file.startswith(("agent/", "strategies/", "migrations/"))}
    beside = {f"share/gpubid/{file}" for file in tracked if file.startswith("deploy/") or file == "agent.toml"}
    assert inside
    assert beside
    assert inside | beside <= shipped
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name and ".data/" not in name} == {
        "agent",
        "strategies",
        "migrations",
    }


def test_a_licence_that_binds_ends_the_build(tmp_path: Path) -> None:
    site = tmp_path / "lib/python3.11/site-packages"
    order = [sys.executable, str(DEBIAN / "copyright.py"), str(tmp_path), str(ROOT / "LICENSE")]
    for name, licence, code in (
        ("good", "MIT", 0),
        ("psycopg", "LGPL-3.0-only", 0),
        ("borb", "AGPL-3.0-only", 1),
        ("other", "LGPL-3.0-only", 1),
        ("mute", "", 1),
    ):
        folder = site / f"{name}-1.0.dist-info"
        folder.mkdir(parents=True)
        line = f"License-Expression: {licence}\n" if licence else ""
        (folder / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\n{line}")
        ran = subprocess.run(order, capture_output=True, text=True, check=False)
        assert ran.returncode == code, ran
        assert (name in ran.stderr) == bool(code)
        if code:
            (folder / "METADATA").unlink()
            folder.rmdir()


def test_a_library_of_unknown_licence_ends_the_build(tmp_path: Path) -> None:
    beside = tmp_path / "lib/python3.11/site-packages/numpy.libs"
    beside.mkdir(parents=True)
    order = [sys.executable, str(DEBIAN / "copyright.py"), str(tmp_path), str(ROOT / "LICENSE")]
    for name, code in (("libgfortran-1.so", 0), ("libmystery-1.so", 1)):
        (beside / name).touch()
        ran = subprocess.run(order, capture_output=True, text=True, check=False)
        assert (ran.returncode, name in ran.stderr, name in ran.stdout) == (code, bool(code), True)
    assert "libgfortran-1.so: GPL-3.0-or-later WITH GCC-exception-3.1" in ran.stdout


@pytest.mark.parametrize("script", ["postinst", "prerm", "postrm", "gpubid.sh", "build.sh"])
def test_the_scripts_can_be_read_by_their_shells(script: str) -> None:
    shell = (DEBIAN / script).read_text().partition("\n")[0].removeprefix("#!").split()[-1]
    ran = subprocess.run([shell, "-n", str(DEBIAN / script)], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


SYSTEMCTL = """#!/bin/sh
echo "$*" >> {folder}/calls
case "$*" in
  "show "*gpubid.service) echo {state} ;;
  "show "*) echo inactive ;;
  *is-active*) [ {state} = active ] ;;
esac
"""
"""A systemctl whose daemon is in one state, and whose timer is in none."""


@pytest.mark.parametrize(
    ("state", "is_stopped"),
    [("active", True), ("activating", True), ("reloading", True), ("deactivating", False), ("failed", False)],
)
def test_an_upgrade_stops_a_daemon_that_runs_or_will(tmp_path: Path, state: str, is_stopped: bool) -> None:
    """One that crashed and was started again, or that waited for its market, went on over files of another version."""
    fake = tmp_path / "systemctl"
    fake.write_text(SYSTEMCTL.format(folder=tmp_path, state=state))
    fake.chmod(0o755)
    # The paths of a booted machine, in the test's own folder.
    script = (DEBIAN / "prerm").read_text().replace("/run/", f"{tmp_path}/run/")
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    ran = subprocess.run(["sh", "-c", script, "prerm", "upgrade", "0.1"], env=environment, check=False)
    assert ran.returncode == 0
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [call for call in calls if call.startswith("stop")] == ["stop gpubid.service"] * is_stopped
    assert [each.name for each in (tmp_path / "run").glob("gpubid-upgrade.*")] == [
        "gpubid-upgrade.gpubid.service"
    ] * is_stopped
