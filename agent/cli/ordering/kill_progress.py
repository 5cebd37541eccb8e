"""The wait after a kill: print the leases that still bill, after each change, until nothing bills."""

import asyncio
import sys
from collections.abc import Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agent.cli.shared import daemon_socket, exits, session
from agent.telemetry.plain_text import plain

if TYPE_CHECKING:
    from agent.app import App
    from agent.config.daemon_paths import DaemonPaths
    from agent.config.settings import Config
    from agent.domain.record.intent import Intent

Shown = dict[str, Any]
LOOK_SECONDS = 1.0
"""Time between two questions to the daemon. They send no request to a market."""
BUSY_SECONDS = 2.0
IDLE_SECONDS = 10.0
"""Time between two cycles of a kill without a daemon."""
GONE = (
    "the daemon ended before the kill was done: give `gpubid kill` again; the command then ends the other leases itself"
)


class Progress:
    """Prints changes. With `to_error` the lines go to standard error, because standard output has a JSON document."""

    def __init__(self, *, keep_disks: bool, to_error: bool = False, only: frozenset[str] | None = None) -> None:
        """With `keep_disks`, wait only for GPUs: disks may still bill. `only` are leases to wait for; None: all."""
        self.keep_disks = keep_disks
        self._only = only
        self.unlisted: frozenset[str] = frozenset()
        """Markets that nobody lists here. Their leases are shown, and not waited for."""
        self.is_given = False
        """Whether the order is recorded. From then on it is in force, even if nobody waits."""
        self._stream = sys.stderr if to_error else sys.stdout
        self._said: dict[str, str] = {}
        self._warned: set[str] = set()

    def left(self, shown: Shown) -> list[Mapping[str, Any]]:
        """Return the rows of leases that still bill."""
        mine = (row for row in shown["billing"] if self._only is None or row["lease"] in self._only)
        return [row for row in mine if row["is_gpu"] or not self.keep_disks]

    def show(self, shown: Shown) -> bool:
        """Print changed rows. Return whether the wait is over."""
        rows = {row["lease"]: sentence(row) for row in self.left(shown)}
        for lease in self._said.keys() - rows.keys():
            self.say(f"{lease}: bills nothing more" if not self.keep_disks else f"{lease}: its GPU bills nothing more")
        for lease, said in rows.items():
            if self._said.get(lease) != said:
                self.say(said)
        self._said = rows
        return all(self._is_for_a_person(row) or row["market"] in self.unlisted for row in self.left(shown))

    def _is_for_a_person(self, row: Mapping[str, Any]) -> bool:
        """Return whether no call ends a lease: its market calls it over without a proof. Tell that once."""
        if not row.get("is_called_over"):
            return False
        self.warn_once(
            f"no call ends {row['lease']}: {row['market']} calls it over or knows it no more, which proves nothing. "
            "Look at the console of its cloud, and end the machine there; then say "
            f"`gpubid release {row['lease']} --gone`"
        )
        return True

    def say_done(self, done: Iterable[Mapping[str, Any]]) -> None:
        """Print the first attempts. The order is in force from now on."""
        self.is_given = True
        for row in done:
            self.say(f"{row['slot']} {row['lease']}: {row['kind']} {row['state']} {row['outcome']}".rstrip())

    def warn(self, line: str) -> None:
        """Print a line to standard error."""
        session.warn(line)

    def warn_once(self, line: str) -> None:
        """Print a line to standard error, unless it was printed before."""
        if line not in self._warned:
            self._warned.add(line)
            self.warn(line)

    def say(self, line: str) -> None:
        """Print one line at once, as plain text."""
        self._stream.write(plain(line) + "\n")
        self._stream.flush()


def sentence(row: Mapping[str, Any]) -> str:
    """Return a sentence for one lease that still bills."""
    what = "GPU and disk" if row["is_gpu"] else "disk"
    tried = ", ".join(row["tried"]) or "nothing was tried yet"
    rate = f"${row['dollars_per_hour']:.4f}/h"
    return f"{row['lease']} ({row['slot']}) still bills {what} on {row['market']}, {rate}; last: {tried}"


async def of_daemon(place: "Config | DaemonPaths", progress: Progress, *, wait: bool) -> Shown:
    """Wait until the daemon has ended the leases, or ask once; return the last state."""
    while True:
        shown: Shown | None = await daemon_socket.get(place, "/billing")
        if shown is None:
            exits.stop(exits.FAILED, [GONE])
        if progress.show(shown) or not wait:
            return shown
        await asyncio.sleep(LOOK_SECONDS)


async def of_cycles(app: "App", progress: Progress, done: "list[Intent]", least: int, *, wait: bool) -> Shown:
    """Run cycles until nothing bills, at least this many; return the last state. Add their outcomes to `done`."""
    from agent.web import operator_socket

    progress.say_done(operator_socket.as_json(intent) for intent in done)
    cycles = 0
    while True:
        seen = await app.cycle()
        cycles += 1
        done += seen.done
        progress.say_done(operator_socket.as_json(intent) for intent in seen.done)
        shown = await _present(app)
        if (progress.show(shown) or not wait) and cycles >= least:
            return shown
        await asyncio.sleep(BUSY_SECONDS if seen.is_busy or cycles < least else IDLE_SECONDS)


async def _present(app: "App") -> Shown:
    from agent.web.reading import still_billing

    leases = app.ledger.recollection(app.clock.now()).leases
    return await still_billing.shown(await app.ledger.reader(), leases, app.doubts(), app.seen)


def interruptible(waiting: Coroutine[Any, Any, Shown], left_to: str, progress: Progress) -> Shown:
    """Return the result of a wait. Ctrl-C ends the wait, not the kill; `left_to` says who continues the kill."""
    try:
        return asyncio.run(waiting)
    except KeyboardInterrupt:
        said = f"no longer waiting; the kill stays in force: {left_to}"
        exits.stop(
            exits.FAILED, [said if progress.is_given else "interrupted before the kill was given: give it again"]
        )
