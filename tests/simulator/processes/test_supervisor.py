"""Nothing outlives its simulator: with a PID namespace and without, whatever the processes do, however it ends."""

import asyncio
import os
import shlex
import shutil
import signal
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.simulator.processes import printed_lines
from tests.support import counter
from tests.support.programs import until

ROOT = Path(__file__).parents[3]
MODES = pytest.mark.parametrize("isolates", [True, False], ids=["namespace", "group"])
HOST = """
import asyncio, sys
from pathlib import Path
from agent.simulator.processes.container_process import Start
from agent.simulator.processes.process_registry import ProcessRegistry
from agent.simulator.simulated_clock import ScaledClock

async def main(folder, isolates, script):
    registry = ProcessRegistry(ScaledClock(), folder=Path(folder), isolates=isolates == "True")
    made = registry.made("one", (), has_volume=False)
    registry.start(made, Start(script=script), port_names=())
    await asyncio.Event().wait()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
def mark() -> Iterator[str]:
    word = uuid.uuid4().hex
    yield word
    for process in counter.alive(word):
        os.kill(process, signal.SIGKILL)


def hardy(mark: str) -> str:
    """Return a script whose processes ignore what can be ignored and leave group and parent."""
    code = (
        "import signal, sys, time\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\n"
        "open('up-' + sys.argv[2], 'w').close()\ntime.sleep(600)"
    )
    one, two, three = (shlex.join(counter.python(code, mark, name)) for name in ("child", "away", "orphan"))
    return f"{one} &\nsetsid {two} &\n(setsid {three} &)\nwait"


@MODES
async def test_nothing_outlives_a_simulator_that_is_killed(tmp_path: Path, mark: str, *, isolates: bool) -> None:
    words = [sys.executable, "-c", HOST, str(tmp_path), str(isolates), hardy(mark)]
    await killed_as_soon_as_it_runs(words, tmp_path / "one", mark)


async def killed_as_soon_as_it_runs(words: list[str], disk: Path, mark: str) -> None:
    host = await asyncio.create_subprocess_exec(*words, cwd=ROOT)
    try:
        await until(lambda: len(list(disk.glob("up-*"))) == 3, "three processes")
        assert len(counter.alive(mark)) == 3
    finally:
        host.kill()
        await host.wait()
    await until(lambda: counter.alive(mark) == [], "the death of all")


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="takes rights away, as root")
async def test_one_who_may_make_no_namespace_runs_them_too(tmp_path: Path, mark: str) -> None:
    """The machine decides whether a user namespace helps; the processes run and die either way."""
    without = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
    words = [*without, sys.executable, "-c", HOST, str(tmp_path), "True", hardy(mark)]
    await killed_as_soon_as_it_runs(words, tmp_path / "one", mark)


CLOSED = """
import sys
from pathlib import Path
from agent.simulator.processes.process_registry import ProcessRegistry
from agent.simulator.simulated_clock import ScaledClock

registry = ProcessRegistry(ScaledClock(), folder=Path(sys.argv[1]))
disk = registry.made("one", (), has_volume=False).place
(disk / "shut" / "inner").mkdir(parents=True)
(disk / "shut" / "inner" / "file").touch()
(disk / "link").symlink_to(sys.argv[2])
(disk / "shut" / "inner").chmod(0)
(disk / "shut").chmod(0)
registry.close()
"""


async def test_a_disk_goes_with_what_its_owner_shut_and_nothing_that_a_link_leads_to(tmp_path: Path) -> None:
    outside, disks = tmp_path / "outside", tmp_path / "disks"
    outside.mkdir(mode=0o750)
    (outside / "kept").touch()
    is_mighty = os.geteuid() == 0 and shutil.which("setpriv") is not None
    without = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"]
    words = [*(without if is_mighty else []), sys.executable, "-c", CLOSED, str(disks), str(outside)]
    host = await asyncio.create_subprocess_exec(*words, cwd=ROOT)
    assert await host.wait() == 0
    assert os.listdir(disks) == []  # noqa: PTH208 - a quick look
    assert (outside / "kept").exists()
    assert outside.stat().st_mode & 0o777 == 0o750


def test_lines_are_kept_by_number_and_cut_to_size() -> None:
    lines = printed_lines.PrintedLines()
    lines.take(b"one\r\ntw", 1.0)
    lines.take(b"o\nthr", 2.0)
    assert lines.lines() == [(1.0, "one"), (2.0, "two")]
    lines.end(3.0)
    assert lines.lines()[-1] == (3.0, "thr")
    lines.take(b"x" * 20_000, 4.0)
    lines.take(b"\n", 5.0)
    assert [len(text) for _, text in lines.lines()[3:]] == [8_192, 8_192, 20_000 - 2 * 8_192]
    before = lines.dropped + len(lines.lines())
    lines.take(b"0123456789\n" * 50_000, 6.0)
    assert sum(len(text) for _, text in lines.lines()) <= printed_lines.MOST_BYTES
    assert lines.dropped + len(lines.lines()) == before + 50_000
    lines.take("12345 äöü€\n".encode() * 50_000, 7.0)
    size = sum(len(text.encode()) + 1 for _, text in lines.lines())
    assert printed_lines.MOST_BYTES - 20 < size <= printed_lines.MOST_BYTES
    lines.clear()
    assert (lines.dropped, lines.lines()) == (before + 100_000, [])
