"""Sizes, names, imports: a reader must be able to hold a function, a file, a package and the README in his head."""

import ast
import functools
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

from agent.markets import registered_markets
from tests.docs.exceptions import EXCEPTIONS

ROOT = Path(__file__).parents[2]
PROGRAM = ("agent", "strategies", "migrations")
OWN_NAMES = {
    # The vendors' folders name their files alike on purpose (CONTRIBUTING.md, "Add a market"): they count as one.
    "vendors": re.compile(rf"agent/(markets|simulator)/({'|'.join(registered_markets.shipped())})/(http/)?"),
    # A verb's file has the verb's name, and a strategy's file the strategy's.
    "verbs": re.compile(r"agent/cli/(lab/|\w+/)?"),
    "strategies": re.compile(r"strategies/"),
}
"""Folders whose modules are named by a rule of their own; within each a name is unique."""
LINES_OF_A_FILE = 400
LINES_OF_A_FUNCTION = 50
MODULES_OF_A_PACKAGE = 20
STEPS = "migrations/versions"
"""One numbered step for each schema of the ledger: their number only grows, and nobody searches them for an idea."""
PACKAGES_WITH_A_NAME = 1
WORDS_OF_THE_README = 1_500
BY_TYPE = {
    ("agent.decide.strategy", "agent.decide.deadline"): "what a strategy is given to see has fields of its types",
    ("agent.decide.strategy", "agent.decide.pricing"): "what a strategy is given to see has fields of its types",
}
"""Imports between two things of one folder that may lead back to the first, and why."""


class Size(NamedTuple):
    """A thing of the source, its size, its largest allowed size, and the fix if it is larger."""

    thing: str
    amount: int
    most: int
    mend: str

    @property
    def is_too_large(self) -> bool:
        """Say whether it breaks the rule."""
        return self.amount > self.most

    def sentence(self) -> str:
        """Return the fault and its fix."""
        return f"{self.thing}: {self.amount}, at most {EXCEPTIONS.get(self.thing, self.most)}. {self.mend}"


def test_nothing_new_is_too_large_or_shares_its_name() -> None:
    assert [size.sentence() for size in sizes(ROOT) if size.amount > EXCEPTIONS.get(size.thing, size.most)] == []


def test_the_list_of_exceptions_only_shrinks() -> None:
    broken = {size.thing for size in sizes(ROOT) if size.is_too_large}
    kept = [f"{thing} keeps the rule now: remove it from tests/docs/exceptions.py" for thing in EXCEPTIONS]
    assert [sentence for thing, sentence in zip(EXCEPTIONS, kept, strict=True) if thing not in broken] == []


def test_every_kind_of_offence_is_seen(tmp_path: Path) -> None:
    package = tmp_path / "agent"
    (package / "second").mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    (tmp_path / "README.md").write_text("word " * 1_501)
    for number in range(20):
        (package / f"module_{number}.py").touch()
    (package / "long.py").write_text("\n" * 401)
    (package / "second" / "long.py").write_text("def walk():\n" + "    pass\n" * 50)
    (tmp_path / "tests" / "test_long.py").write_text("\n" * 401)
    assert {(size.thing, size.amount) for size in sizes(tmp_path) if size.is_too_large} == {
        ("README.md", 1_501),
        ("agent", 21),
        ("agent/long.py", 401),
        ("tests/test_long.py", 401),
        ("agent/second/long.py walk", 51),
        ("long.py", 2),
    }


def test_no_module_imports_itself_by_a_detour() -> None:
    order = list(TopologicalSorter(imports(ROOT)).static_order())
    assert order.index("agent.domain.money") < order.index("agent.app")


@pytest.mark.parametrize(
    "text", ["from agent import {}", "def later():\n    from agent.{} import a", "import agent.{}"]
)
def test_every_kind_of_circle_is_seen(tmp_path: Path, text: str) -> None:
    (tmp_path / "agent").mkdir()
    for name, other in (("one", "two"), ("two", "three"), ("three", "one")):
        (tmp_path / "agent" / f"{name}.py").write_text(text.format(other))
    with pytest.raises(CycleError):
        TopologicalSorter(imports(tmp_path)).prepare()


def test_no_folder_imports_itself_by_a_detour() -> None:
    for graph in folders(imports(ROOT), BY_TYPE):
        TopologicalSorter(graph).prepare()


def test_the_list_of_types_that_lead_back_only_shrinks() -> None:
    edges = {(name, other) for graph in folders(imports(ROOT)) for name in graph for other in graph[name]}
    assert set(BY_TYPE) <= edges


@pytest.mark.parametrize(
    "paths", [("market/offer", "work/slot", "market/host"), ("moves/stops", "slots", "moves/recovery")], ids=str
)
def test_a_circle_of_folders_is_seen_although_their_modules_make_none(tmp_path: Path, paths: tuple[str, ...]) -> None:
    for path, other in zip(paths, (*paths[1:], ""), strict=True):
        file = tmp_path / "agent" / f"{path}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"import agent.{other.replace('/', '.')}" if other else "")
    modules = imports(tmp_path)
    TopologicalSorter(modules).prepare()
    (graph,) = folders(modules)
    with pytest.raises(CycleError):
        TopologicalSorter(graph).prepare()


def folders(modules: dict[str, set[str]], besides: Container[tuple[str, str]] = ()) -> Iterator[dict[str, set[str]]]:
    """Yield by folder which of its modules and folders import which others of them; `besides` leaves imports out."""
    graphs: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for name, others in modules.items():
        for other in others:
            way = next(((one, two) for one, two in zip(_above(name), _above(other), strict=False) if one != two), None)
            if way is not None and "." in way[0] and way not in besides:
                graphs[way[0].rpartition(".")[0]][way[0]].add(way[1])
    yield from graphs.values()


def _above(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[: at + 1]) for at in range(len(parts))]


@functools.cache
def imports(root: Path) -> dict[str, set[str]]:
    """Return by module which modules of the program it imports, also in a function or for its types alone."""
    paths = [path for folder in PROGRAM for path in (root / folder).rglob("*.py") if path.name != "__init__.py"]
    modules = {".".join(path.relative_to(root).with_suffix("").parts): path for path in paths}
    return {name: set(_imported(path)) & modules.keys() for name, path in modules.items()}


def _imported(path: Path) -> Iterator[str]:
    for node in _statements(path.read_text()):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


@functools.cache
def sizes(root: Path) -> tuple[Size, ...]:
    """Return the size of everything that has a limit."""
    return tuple(_sizes(root))


def _sizes(root: Path) -> Iterator[Size]:
    program = sorted(path for folder in PROGRAM for path in (root / folder).rglob("*.py"))
    for path in (*program, *sorted((root / "tests").rglob("*.py"))):
        yield from _of_file(path, path.relative_to(root).as_posix())
    modules = [path.relative_to(root) for path in program if path.name != "__init__.py"]
    mend = "Move the modules of one idea into a package of their own."
    for package, count in Counter(path.parent.as_posix() for path in modules).items():
        if package != STEPS:
            yield Size(package, count, MODULES_OF_A_PACKAGE, mend)
    mend = "Give the newer module a name that no other module of the program has."
    shared = [path.name for path in modules if not any(rule.match(path.as_posix()) for rule in OWN_NAMES.values())]
    for name, count in Counter(shared).items():
        yield Size(name, count, PACKAGES_WITH_A_NAME, mend)
    words = len((root / "README.md").read_text().split())
    yield Size("README.md", words, WORDS_OF_THE_README, "Move all but the pitch and the first steps to another page.")


def _of_file(path: Path, thing: str) -> Iterator[Size]:
    text = path.read_text()
    yield Size(thing, text.count("\n"), LINES_OF_A_FILE, "Split the file: one noun or one verb a file.")
    for node in _statements(text):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            yield Size(
                f"{thing} {node.name}", lines, LINES_OF_A_FUNCTION, "Split the function: one thought a function."
            )


def _statements(text: str) -> Iterator[ast.AST]:
    """Yield all statements of a module. Walking through their expressions too took most of the time."""
    ahead: list[ast.AST] = [ast.parse(text)]
    while ahead:
        node = ahead.pop()
        yield node
        for inner in ("body", "orelse", "finalbody", "handlers", "cases"):
            ahead.extend(getattr(node, inner, ()))
