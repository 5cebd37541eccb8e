"""The units as shipped: systemd finds nothing wrong with them, and little for an intruder to reach."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from agent import schedule
from agent.markets import transport
from tests.support import programs
from tests.support.programs import gpubid, until

UNITS = Path(__file__).parents[2] / "deploy/systemd"
SERVICES = sorted(file.name for file in UNITS.glob("*.service"))
MOST_EXPOSURE = 1.2


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("THE UNITS WERE NOT CHECKED: systemd-analyze is not installed (Debian package systemd)")
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)


def service(name: str) -> dict[str, list[str]]:
    """Return every key of a unit's [Service] with its values in order."""
    found: dict[str, list[str]] = {}
    body = (UNITS / name).read_text().split("[Service]\n")[1].split("\n[")[0]
    for key, value in re.findall(r"^([A-Za-z]+)=(.*)$", body, re.MULTILINE):
        found.setdefault(key, []).append(value)
    return found


def seconds(text: str) -> int:
    number, unit = re.fullmatch(r"(\d+)(s|min)", text).groups()  # type: ignore[union-attr]
    return int(number) * {"s": 1, "min": 60}[unit]


def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    for unit in UNITS.glob("gpubid*.*"):
        # The program is not installed where this runs; the booted guest verifies the files untouched.
        (tmp_path / unit.name).write_text(unit.read_text().replace("/usr/bin/gpubid", shutil.which("true") or ""))
    found = analyze("verify", *sorted([*tmp_path.glob("*.service"), *tmp_path.glob("*.timer")]))
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.parametrize("unit", SERVICES)
def test_the_exposure(unit: str) -> None:
    found = analyze("security", "--offline=true", f"--threshold={MOST_EXPOSURE * 10:.0f}", UNITS / unit)
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize("unit", SERVICES)
def test_no_core_file_can_hold_a_key_and_no_path_names_one(unit: str) -> None:
    keys = service(unit)
    assert keys["LimitCORE"] == ["0"]
    assert all("key" not in value.lower() for name in ("ExecStart", "Environment") for value in keys.get(name, []))


def test_the_daemon_has_the_time_it_needs() -> None:
    keys = service("gpubid.service")
    hung_question = transport.ATTEMPTS * (transport.DEADLINE_SECONDS + 2)
    # Account, bill and listing; as much again for checking and leading a large ledger to its new schema.
    assert seconds(keys["TimeoutStartSec"][0]) >= 6 * hung_question
    assert seconds(keys["TimeoutStopSec"][0]) > schedule.STOP_PATIENCE_SECONDS + 2 * transport.DEADLINE_SECONDS
    assert seconds(keys["WatchdogSec"][0]) >= 10 * schedule.WATCHDOG_SHARE


def test_both_services_share_one_user_and_its_ledger() -> None:
    daemon, backup = service("gpubid.service"), service("gpubid-backup.service")
    for key in ("DynamicUser", "User", "Group", "StateDirectoryMode", "UMask"):
        assert daemon[key] == backup[key], key
    assert backup["StateDirectory"] == ["gpubid gpubid/backups"]
    (group,) = re.findall(r"^g (\S+) -$", (UNITS / "gpubid.sysusers").read_text(), re.MULTILINE)
    assert daemon["Group"] == [group]


def test_the_key_of_every_market_is_a_credential() -> None:
    assert {"vast_api_key", "runpod_api_key"} <= set(service("gpubid.service")["LoadCredential"])


def test_the_password_of_a_ledgers_server_is_a_credential_and_a_server_here_ends_last() -> None:
    assert {"ledger_password", "ledger_reader_password"} <= set(service("gpubid.service")["LoadCredential"])
    (after,) = re.findall(r"^After=(.*)$", (UNITS / "gpubid.service").read_text(), re.MULTILINE)
    assert "postgresql.service" in after.split()


async def test_the_timers_backup_of_a_ledger_on_a_server_does_nothing_and_does_not_fail(tmp_path: Path) -> None:
    url = 'url = "postgresql://gpubid@db.invalid/gpubid"'
    config = programs.LIVE.format(url="http://127.0.0.1:1").replace("[ledger]\n", f"[ledger]\n{url}\n")
    assert url in config
    (tmp_path / "agent.toml").write_text(config)
    (order,) = service("gpubid-backup.service")["ExecStart"]
    words = (
        order.replace("/etc/gpubid/agent.toml", "agent.toml").replace("/var/lib/gpubid/backups", str(tmp_path)).split()
    )
    said = await gpubid(tmp_path, *words[1:])
    assert (said.code, "nothing is copied" in said.out, "pg_dump" in said.out) == (0, True, True), said
    said = await gpubid(tmp_path, *(word for word in words[1:] if word != "--if-file"))
    assert (said.code, "pg_dump" in said.err) == (1, True), said


async def test_the_socket_lies_in_the_runtime_directory(tmp_path: Path) -> None:
    runtime = tmp_path / "run"
    runtime.mkdir()
    changes = {"RUNTIME_DIRECTORY": str(runtime), "STATE_DIRECTORY": str(tmp_path)}
    async with programs.market(tmp_path) as market:
        (tmp_path / "agent.toml").write_text(programs.LIVE.format(url=market.url))
        async with programs.daemon(tmp_path, **changes) as daemon:
            await daemon.until_told("READY=1")
            await until(market.billing, "a rent")
            assert [file.name for file in runtime.iterdir()] == ["ledger.sqlite.sock"]
            assert not (tmp_path / "ledger.sqlite.sock").exists()
            said = await gpubid(tmp_path, "kill", **changes)
            assert said.code == 0, said
            assert await market.billing() == []
            assert await daemon.stop() == 0
        assert list(runtime.iterdir()) == []


async def test_backups_in_a_folder_are_kept_by_number(tmp_path: Path) -> None:
    config = programs.LIVE.replace("max_instances = 4", "max_instances = 0")
    folder = tmp_path / "backups"
    folder.mkdir()
    (folder / "mine.txt").write_text("not a backup")
    for day in range(1, 6):
        (folder / f"ledger-2026010{day}T000000Z.sqlite").write_text("old")
    async with programs.running(tmp_path, config=config):
        said = await gpubid(tmp_path, "ledger", "backup", folder, "--keep", "3")
    assert said.code == 0, said
    names = sorted(file.name for file in folder.iterdir())
    assert names[:2] == ["ledger-20260104T000000Z.sqlite", "ledger-20260105T000000Z.sqlite"]
    assert names[3:] == ["mine.txt"]
    refused = await gpubid(tmp_path, "ledger", "backup", folder / "one.sqlite", "--keep", "3")
    assert (refused.code, "not a folder" in refused.err) == (2, True)
