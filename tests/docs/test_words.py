"""Texts for operators use the glossary's words: a forbidden word appears only with an excuse."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import typer

from agent.cli import main

ROOT = Path(__file__).parents[2]
INSTEAD = {
    r"bundles?": "offer; of files: archive",
    r"contracts?": "lease; of the market: instance",
    r"pods?": "lease; of the market: instance",
    r"rentals?": "lease",
    r"evict\w*": "interruption",
    r"preempt\w*": "interruption",
    r"zombies?": "orphan",
    r"(?:black|deny|block)list\w*": "cooldown",
    r"uptime": "running hours, useful hour",
    r"ticks?": "cycle",
    r"replicas?": "slot; of daemons: standby",  # of PostgreSQL's servers it is the word
    r"providers?": "market",
    r"backends?": "market",
    r"guardrails?": "limits",
    r"funds?": "credit",
    r"balances?": "credit",
    r"destroy\w*": "release",
    r"masters?": "leader",
    r"gateways?": "front",
    r"balancers?": "front",
    r"chaos": "weather",
    r"job arrays?": "array",
    r"bid caps?": "limit price",
    r"mend(?:s|ed|ing)?": "fix",
    r"resting": "cooldown, hold",
}
"""Words that nobody shall read of, and the glossary's word for the same idea."""


class Excuse(NamedTuple):
    """The places where a word is allowed: the beginning of the place, the word, and why."""

    place: str
    word: str
    why: str


_HAPROXY = "HAProxy's word for its list of servers, and a key of a front's table"
_REPLICA = "a server that follows the ledger's"
EXCUSES = (
    Excuse("agent/ledger/server/", "replicas?", _REPLICA),
    Excuse("agent/observe/replica_watch.py", "replicas?", _REPLICA),
    Excuse("agent/cli/setup/doctor_ledger_server.py", "replicas?", _REPLICA),
    Excuse("deploy/handbook/pages/ledger-server.md", "replicas?", _REPLICA),
    Excuse("deploy/handbook/pages/glossary.md", "replicas?", _REPLICA),
    Excuse("agent/front/", "backends?", _HAPROXY),
    Excuse("deploy/handbook/pages/serving.md", "backends?", _HAPROXY),
    Excuse("deploy/handbook/pages/keys.md", "backends?", _HAPROXY),
    Excuse("agent/markets/dstack/", "backends?", "dstack's word for a cloud, and a key of its table"),
    Excuse("deploy/handbook/pages/other-clouds.md", "backends?", "dstack's word for a cloud, and a key of its table"),
    Excuse("deploy/handbook/pages/clouds.md", "backends?", "dstack's word for a cloud, and a key of its table"),
    Excuse("agent/markets/runpod/", "pods?", "RunPod's console and documents call an instance a pod"),
    Excuse("agent/markets/runpod/", "balances?", "RunPod's own refusal, recognised by its words"),
    Excuse("deploy/handbook/pages/markets.md", "pods?", "the page compares the vendors by their own objects"),
    Excuse("deploy/handbook/pages/recorded-time.md", "contracts?", "import contracts, import-linter's word"),
    Excuse("deploy/handbook/pages/mithril.md", r"preempt\w*", "the page shows Mithril's own word for a status"),
    Excuse("gpubid lab", "ticks?", "a tick is the length of a step of a trace, as in the published problems"),
    Excuse("agent/cli/lab/", "ticks?", "a step of a trace"),
    Excuse("agent/lab/", "ticks?", "a step of a trace"),
    Excuse("deploy/handbook/pages/lab.md", "ticks?", "a step of a trace"),
    Excuse("deploy/handbook/pages/lab-problems.md", "ticks?", "a step of a trace"),
    Excuse("deploy/handbook/pages/recorded-time.md", "ticks?", "a step of a trace"),
    Excuse("deploy/json-output.md", "ticks?", "a step of a trace, in the output of the lab's verbs"),
    Excuse("agent/config/workload_tables/guard_table.py", r"destroy\w*", "destroy is a key of the guard's table"),
    Excuse("deploy/handbook/pages/checkpoints.md", r"destroy\w*", "destroy is a key of the guard's table"),
    Excuse("deploy/handbook/pages/guard.md", r"destroy\w*", "destroy is a key of the guard's table"),
    Excuse("deploy/handbook/pages/keys.md", r"destroy\w*", "destroy is a key of the guard's table"),
)


class Line(NamedTuple):
    """A text that an operator may read, and its place."""

    place: str
    text: str


def test_operators_read_the_glossarys_words() -> None:
    wrong = [
        f"{line.place}: {said!r}, say {INSTEAD[word]}" for line, word, said in _found() if not _excused(line, word)
    ]
    assert wrong == []


def test_no_excuse_is_left_over() -> None:
    needed = {_excused(line, word) for line, word, _ in _found()}
    assert [excuse for excuse in EXCUSES if excuse not in needed] == []


def test_every_kind_of_text_is_read() -> None:
    read = lines()
    assert {"gpubid kill", "agent.toml", "README.md"} <= {line.place.split(":")[0] for line in read}
    for text in (
        "Stop spending now: release every lease",  # help
        "GpubidInvoiceDrift",  # alerts and runbook
        "the market says that the host does not answer",  # the evidence of an event
    ):
        assert any(text in line.text for line in read), text


@functools.cache
def lines() -> tuple[Line, ...]:
    """Return help, messages, event sentences, alerts, templates, settings and pages."""
    return tuple(_lines())


def _lines() -> Iterator[Line]:
    yield from _help(typer.main.get_command(main.app), "gpubid")
    # The simulator uses the vendor's texts, word for word.
    for path in sorted([*ROOT.glob("agent/**/*.py"), *ROOT.glob("strategies/*.py")]):
        if "simulator" not in path.parts:
            yield from _sentences(path)
    for path in _documents():
        for number, text in enumerate(path.read_text().splitlines(), start=1):
            yield Line(f"{path.relative_to(ROOT)}:{number}", text)


def _documents() -> Iterator[Path]:
    yield from (ROOT / "README.md", ROOT / "agent.toml")
    for pattern in (
        "deploy/*.md",
        "deploy/handbook/pages/**/*.md",
        "deploy/prometheus/*.yml",
        "strategies/*.toml",
        "agent/web/templates/*.html",
        "agent/lab/page/templates/*.html",
    ):
        yield from sorted(ROOT.glob(pattern))


def _help(command: object, typed: str) -> Iterator[Line]:
    yield Line(typed, getattr(command, "help", None) or "")
    for parameter in getattr(command, "params", ()):
        yield Line(f"{typed} {parameter.name}", getattr(parameter, "help", None) or "")
    for name, one in getattr(command, "commands", {}).items():
        yield from _help(one, f"{typed} {name}")


def _sentences(path: Path) -> Iterator[Line]:
    """Yield the strings of a module that have more than one word and document nothing."""
    tree = ast.parse(path.read_text())
    documenting = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in documenting and " " in str(node.value).strip():
            yield Line(f"{path.relative_to(ROOT)}:{node.lineno}", str(node.value))


@functools.cache
def _found() -> tuple[tuple[Line, str, str], ...]:
    return tuple(
        (line, word, match.group())
        for line in lines()
        for word in INSTEAD
        for match in re.finditer(rf"(?i)(?<![\w./-])(?:{word})(?![\w/=])", line.text)
    )


def _excused(line: Line, word: str) -> Excuse | None:
    return next((each for each in EXCUSES if line.place.startswith(each.place) and each.word == word), None)
