"""Runs collected tests in forks of the process that collected them: `-p tests.support.forked_run --forks 5`.

Collecting takes about ten seconds of processor time. Each worker of xdist collects for itself; here it is done once.
The environment of a fork is that of a worker of xdist, so tests know which worker they are in.

1. Tests that are marked as long are given out first, one by one, the longest first.
2. Each fork then has its own stretch of the others, so that what a module's tests share is made once.
3. A fork without tests takes the last half of the longest stretch that is left.
4. A fork that dies fails the test that it ran, and another one goes on in its place.
"""

import atexit
import os
import signal
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

import pytest

OPTION = "--forks"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the number of forks. Without it the tests run here."""
    parser.addoption(OPTION, type=int, default=0, help="run the tests in so many forks of this process")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in forks, where that was asked for."""
    count = session.config.getoption(OPTION)
    if not count or session.config.option.collectonly or session.testsfailed:
        return None
    assert threading.active_count() == 1, f"a fork would lose a thread that an import began: {threading.enumerate()}"
    Forks(session, count).run()
    return True


class Fork:
    """A forked process: what it runs now, what it runs next, and its own stretch."""

    def __init__(self, number: int, stretch: list[int]) -> None:
        self.number, self.stretch = number, deque(stretch)
        self.pid = 0
        self.link: Connection
        self.now: int | None = None
        self.next: int | None = None


class Forks:
    """Gives tests out to forks, and tells the reporters here what they report."""

    def __init__(self, session: pytest.Session, count: int) -> None:
        self._session = session
        seconds = [_seconds(item) for item in session.items]
        self._long = deque(sorted(filter(seconds.__getitem__, range(len(seconds))), key=lambda each: -seconds[each]))
        others = [each for each, long in enumerate(seconds) if not long]
        size = -(-len(others) // count)
        self._forks = [Fork(number, others[number * size : (number + 1) * size]) for number in range(count)]
        self._links: dict[Connection, Fork] = {}

    def run(self) -> None:
        """Run all tests."""
        session = self._session
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # forks make theirs below it
        try:
            for fork in self._forks:
                self._begin(fork)
            while self._links:
                for link in wait(list(self._links)):
                    assert isinstance(link, Connection)
                    self._hear(self._links[link])
                if session.shouldstop or session.shouldfail:
                    raise session.Interrupted(str(session.shouldstop or session.shouldfail))
        finally:
            for fork in self._links.values():
                os.kill(fork.pid, signal.SIGKILL)
                os.waitpid(fork.pid, 0)

    def _begin(self, fork: Fork) -> None:
        fork.link, theirs = Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        fork.pid = os.fork()
        if not fork.pid:
            # A copy of another fork's end would keep that one waiting after ours has closed it.
            for link in (fork.link, *self._links):
                link.close()
            _live(self._session, fork.number, len(self._forks), theirs)
        theirs.close()
        self._links[fork.link] = fork
        self._give(fork)

    def _hear(self, fork: Fork) -> None:
        config = self._session.config
        try:
            kind, said = fork.link.recv()
        except (EOFError, ConnectionError):
            self._bury(fork)
            return
        if kind == "done":
            self._give(fork)
        elif kind == "warning":
            config.hook.pytest_warning_recorded.call_historic(kwargs=said)
        else:
            report = config.hook.pytest_report_from_serializable(config=config, data=said)
            config.hook.pytest_runtest_logreport(report=report)

    def _give(self, fork: Fork) -> None:
        """Give a fork its next test, and say which one follows. Close its link if none is left."""
        fork.now, fork.next = fork.next, None
        if fork.now is None:
            fork.now = self._long.popleft() if self._long else self._first(fork)
            if fork.now is None:
                fork.link.send(None)
                return
        # After a long test the fork may get another one, so that it keeps no fixture for the test that follows.
        if not self._is_long(fork.now) and fork.stretch:
            fork.next = fork.stretch.popleft()
        fork.link.send((fork.now, fork.next))

    def _is_long(self, index: int) -> bool:
        return bool(_seconds(self._session.items[index]))

    def _first(self, fork: Fork) -> int | None:
        """Return the first test of a fork's stretch. An empty stretch first takes half of the longest."""
        if not fork.stretch:
            longest = max(self._forks, key=lambda each: len(each.stretch)).stretch
            for _ in range((len(longest) + 1) // 2):
                fork.stretch.appendleft(longest.pop())
        return fork.stretch.popleft() if fork.stretch else None

    def _bury(self, fork: Fork) -> None:
        del self._links[fork.link]
        _, status = os.waitpid(fork.pid, 0)
        if fork.now is None:
            return
        item = self._session.items[fork.now]
        if fork.next is not None:
            fork.stretch.appendleft(fork.next)
        told = f"the fork that ran it ended: {os.waitstatus_to_exitcode(status)}"
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", told, "call")
        item.ihook.pytest_runtest_logreport(report=report)
        fork.now = fork.next = None
        if self._long or any(each.stretch for each in self._forks):
            self._begin(fork)


class _Tells:
    """Sends a fork's reports and warnings to the process that gives it tests."""

    def __init__(self, config: pytest.Config, tell: Callable[[tuple[str, Any]], None]) -> None:
        self._config, self._tell = config, tell

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._tell(("report", self._config.hook.pytest_report_to_serializable(config=self._config, report=report)))

    def pytest_warning_recorded(self, warning_message: Any, when: str, nodeid: str, location: Any) -> None:
        warning_message.source = None  # it may be anything, and need not be picklable
        said = {"warning_message": warning_message, "when": when, "nodeid": nodeid, "location": location}
        self._tell(("warning", said))


def _live(session: pytest.Session, number: int, count: int, link: Connection) -> None:
    """Run what a fork is told, to its end."""
    code = 1
    try:
        os.environ |= {"PYTEST_XDIST_WORKER": f"gw{number}", "PYTEST_XDIST_WORKER_COUNT": str(count)}
        _part(session.config, number)
        session.config.pluginmanager.register(_Tells(session.config, link.send), "forked_run_tells")
        while (told := link.recv()) is not None:
            now, following = told
            item = session.items[now]
            after = session.items[following] if following is not None else None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            link.send(("done", None))
        atexit._run_exitfuncs()
        code = 0
    except BaseException:  # noqa: BLE001 - whatever it is, a fork must not go on as the process that it was forked from
        traceback.print_exc(file=sys.__stderr__)
    finally:
        os._exit(code)


def _part(config: pytest.Config, number: int) -> None:
    """Let a fork share no file with the other forks: neither captured output nor a terminal nor a folder."""
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.close(nothing)
    capture.start_global_capturing()
    capture.suspend_global_capture()
    config.pluginmanager.unregister(name="terminalreporter")
    folders: Any = config._tmp_path_factory  # type: ignore[attr-defined]
    folders._given_basetemp, folders._basetemp = folders.getbasetemp() / f"gw{number}", None


def _seconds(item: pytest.Item) -> float:
    mark = item.get_closest_marker("long")
    return float(mark.args[0]) if mark is not None else 0.0
