"""Every command that the README and the handbook print in a block is typed here, or its reason not to be is listed."""

import contextlib
import re
import shlex
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from agent.simulator.vast.http.call_gate import DEFAULT_KEY
from tests.support import ports, programs

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "deploy/handbook/pages"
DOCUMENTS = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "deploy").glob("*.md"), *PAGES.rglob("*.md")]
)
BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
TYPED = re.compile(r"^(?:\$ )?((?:gpubid|make|apt|systemctl) .*)$", re.MULTILINE)
EMBEDDED = ("tutorial.md", "README.md", "install.md", "tuning.md", "removal.md")
"""Pages that a reader follows on the embedded market, in this order and in one folder."""
LIVE = "going-live.md"
ALONE = "estimate.md"
EXCUSES = {
    "apt install": "root: tests/deploy/test_guest.py types it",
    "systemctl": "root: tests/deploy/test_guest.py types it",
    "gpubid deploy show": "root: tests/deploy/test_guest.py types it",
    "make demo": "a rehearsed day: tests/scenarios/test_climates.py lives one",
    "make test": "CI itself",
    "gpubid tune": "minutes of processor time: tests/cli/test_tune.py goes the whole way on less",
    "gpubid rehearse --climate real_processes": "minutes: tests/simulator/processes/test_rehearsal.py runs less",
    "gpubid simulate --climate real_processes": "serves until stopped: tests/simulator/test_simulate.py stops it",
    "gpubid guard build": "tests/guard/test_guard_source.py builds it and runs the file",
    "gpubid logs train/0 --": "a lease that has ended: tests/cli/test_reach.py reads its log",
    "gpubid demand": "tests/scenarios/test_demand.py gives both orders",
    "gpubid lab cross-validate": "minutes on recorded traces: tests/lab/test_cross_validate.py types it on small ones",
    "gpubid lab bench": "recorded traces, or hours of processor time: tests/lab runs each problem",
}
"""How a command begins that is not typed here, and why."""


def commands(document: Path) -> list[str]:
    """Return every command in the blocks of a document, without its comment."""
    text = "\n".join(BLOCK.findall(document.read_text())).replace("\\\n", " ")
    return [re.split(r"\s{2,}#", line)[0].strip() for line in TYPED.findall(text)]


def excuse(command: str) -> str:
    """Return how the excuse begins that fits a command, or nothing."""
    return next((begin for begin in EXCUSES if command.startswith(begin)), "")


def test_every_command_is_typed_or_excused() -> None:
    typed = {*EMBEDDED, LIVE, ALONE}
    found = [(document.name, each) for document in DOCUMENTS for each in commands(document)]
    assert [(name, each) for name, each in found if name not in typed and not excuse(each)] == []
    assert {excuse(each) for _, each in found} - {""} == set(EXCUSES), "an excuse that nothing needs"


@pytest.mark.long(24)
@pytest.mark.nightly
async def test_the_pages_of_the_embedded_market_work_as_printed(tmp_path: Path) -> None:
    async with reader(tmp_path) as typed:
        for name in EMBEDDED:
            path = ROOT / name if name == "README.md" else PAGES / name
            assert await typed.all(commands(path)), f"{name} has no command to type"


async def test_going_live_works_as_printed(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(DEFAULT_KEY)
    (tmp_path / "key").chmod(0o600)
    async with programs.market(tmp_path, "--hosts", "200") as market, reader(tmp_path, "--url", market.url) as typed:
        assert await typed.all(commands(PAGES / LIVE))
        assert await market.writes(), "something was rented"
        assert await market.billing() == []


async def test_an_estimate_needs_no_configuration(tmp_path: Path) -> None:
    async with reader(tmp_path) as typed:
        assert await typed.all(commands(PAGES / ALONE))


class Reader:
    """Types the commands of a page, in one folder; `gpubid run` goes on beside the other commands until the end."""

    def __init__(self, place: Path, running: contextlib.AsyncExitStack, to_init: Sequence[str]) -> None:
        self._place = place
        self._running = running
        self._to_init = to_init
        self._is_running = False

    async def all(self, printed: Sequence[str]) -> int:
        """Type commands one after another; each must succeed. Return how many there were."""
        typed = [command for command in printed if not excuse(command)]
        for command in typed:
            await self._one(command)
        return len(typed)

    async def _one(self, command: str) -> None:
        words = shlex.split(command)[1:]
        if words == ["run"]:
            await self._run()
            return
        if words[0] == "init":
            words += self._to_init
        said = await programs.gpubid(self._place, *words)
        assert said.code == 0, (command, said)
        if words[0] == "init":
            self._make_quick()

    async def _run(self) -> None:
        if self._is_running:
            return
        self._is_running = True
        settings = self._place / "agent.toml"
        settings.write_text(settings.read_text().replace("\nspend = false\n", "\nspend = true\n"))
        daemon = await self._running.enter_async_context(programs.daemon(self._place))
        await daemon.until_told("READY=1")
        await daemon.until_logged("decision.made")

    def _make_quick(self) -> None:
        """Ask the market every five seconds, and serve the page where nobody else does.

        `gpubid doctor` asks by the port in the file.
        """
        settings = self._place / "agent.toml"
        text = settings.read_text().replace('"127.0.0.1:9477"', f'"127.0.0.1:{ports.free()}"')
        settings.write_text(text.replace('poll = "15s"', 'poll = "5s"'))


@contextlib.asynccontextmanager
async def reader(place: Path, *to_init: str) -> AsyncIterator[Reader]:
    """Return a reader in a folder; `to_init` is what his `gpubid init` needs besides, since no vendor is asked here."""
    async with contextlib.AsyncExitStack() as running:
        yield Reader(place, running, to_init)
