"""Which definitions of the program its entry points reach, found by reading the source.

A unit is a definition at the top of a module, a method, or the module's other statements. A name at the top of a module
is followed exactly, through imports. A method is followed by its name alone: it is reached where its class is, and some
reached code has an attribute, or a short text, of that name. So an unreached unit is dead, but for names that are put
together at run time and for calls by a library.
"""

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

PROGRAM = ("agent", "strategies", "migrations")
SCRIPTS = ("deploy",)
"""Folders of scripts that are run by hand: their imports are reached."""
BODY = ""
"""The unit of a module's own statements; reached where anything of the module is."""
LONGEST_NAME = 64
"""A longer text is prose and names nothing."""
FOLLOWED_BY_NAME = {"property", "cached_property", "classmethod", "staticmethod", "override"}
"""Decorators that leave it to others to use a method by its name; any other may register it."""
_OBJECT = re.compile(r"([a-z_]+(?:\.\w+)*):(\w+)")
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Naming = ast.Name | ast.Attribute | ast.Import | ast.ImportFrom | ast.Constant
"""Only these nodes name what they reach."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A definition of a module; `owner` is the class of a method."""

    module: str
    name: str
    owner: str = ""

    def __str__(self) -> str:
        """Return its dotted name."""
        return ".".join(part for part in (self.module, self.owner, self.name) if part)


@dataclass(slots=True)
class _Module:
    """A module: its source by unit, and for each imported name the modules and names that it is bound to."""

    name: str
    units: dict[Unit, list[ast.AST]] = field(default_factory=dict)
    bound: dict[str, set[tuple[str, str]]] = field(default_factory=dict)

    def body(self) -> list[ast.AST]:
        """Return the statements that define nothing."""
        return self.units.setdefault(Unit(self.name, BODY), [])

    def define(self, node: ast.AST, name: str, owner: str = "") -> list[ast.AST]:
        """Count a node to a definition; return all that is counted to it."""
        nodes = self.units.setdefault(Unit(self.name, name, owner), [])
        nodes.append(node)
        return nodes


def unreached(root: Path, also: Iterable[str] = ()) -> list[Unit]:
    """Return the definitions of the program below `root` that nothing reaches.

    `also` are dotted names of modules, definitions and methods that are reached in a way that no source shows.
    """
    program = {module.name: module for module in _modules(root, PROGRAM)}
    scripts = {module.name: module for module in _modules(root, SCRIPTS)}
    walk = _Walk({**program, **scripts})
    for module, name in _entries(root):
        walk.reach(module, name)
    for name, script in scripts.items():
        walk.take(script.units)
        walk.reach(name)
    named = set(also)
    units = [unit for module in program.values() for unit in module.units]
    walk.take(unit for unit in units if unit.module.startswith("migrations.") or unit.module.endswith("__main__"))
    walk.take(unit for unit in units if not named.isdisjoint({str(unit), unit.module}))
    walk.finish()
    return [unit for unit in units if unit not in walk.reached and unit.name not in {BODY, "__all__"}]


class _Walk:
    """The units reached so far, and the attributes that their source names."""

    def __init__(self, modules: Mapping[str, _Module]) -> None:
        self.modules = modules
        self.reached: set[Unit] = set()
        self._asked: set[tuple[str, str]] = set()
        self._attributes: set[str] = set()
        self._ahead: list[Unit] = []

    def reach(self, module: str, name: str = BODY) -> None:
        """Reach a name of a module, and with it the statements of the module and of the packages above it."""
        if (module, name) in self._asked:
            return
        self._asked.add((module, name))
        parts = module.split(".")
        self.take(Unit(".".join(parts[:count]), BODY) for count in range(1, len(parts) + 1))
        self.take([Unit(module, name)])
        if f"{module}.{name}" in self.modules:
            self.reach(f"{module}.{name}")
        known = self.modules.get(module)
        if known is not None and Unit(module, name) not in known.units:
            for source in known.bound.get(name, ()):
                self.reach(*source)

    def take(self, units: Iterable[Unit]) -> None:
        """Count units as reached; a name that is no unit of a module is left out."""
        for unit in units:
            known = self.modules.get(unit.module)
            if known is not None and unit in known.units and unit not in self.reached:
                self.reached.add(unit)
                self._attributes.update({unit.name} if unit.owner else ())
                self._ahead.append(unit)

    def finish(self) -> None:
        """Follow everything that is reached until nothing new is."""
        while self._ahead:
            unit = self._ahead.pop()
            module = self.modules[unit.module]
            for node in module.units[unit]:
                self._read(node, module)
            if not self._ahead:
                self.take(self._named_methods())

    def _named_methods(self) -> list[Unit]:
        methods = (unit for module in self.modules.values() for unit in module.units if unit.owner)
        of_reached = (unit for unit in methods if Unit(unit.module, unit.owner) in self.reached)
        return [unit for unit in of_reached if unit.name in self._attributes or unit.name.startswith("__")]

    def _read(self, node: ast.AST, module: _Module) -> None:
        if isinstance(node, ast.Name):
            self.take([Unit(module.name, node.id)])
            found = module.bound.get(node.id, set())
        elif isinstance(node, ast.Attribute):
            self._attributes.add(node.attr)
            found = _dotted(node, module)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            # A name is reached where it is used; the module that it is of, and one that it is, are imported now.
            found = {(source, BODY) for source, _ in _imported(node, module.name).values()}
            found |= {(f"{source}.{name}", BODY) for source, name in _imported(node, module.name).values() if name}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) <= LONGEST_NAME:
            self._attributes.update(re.findall(r"[A-Za-z_]\w*", node.value))
            found = set(_OBJECT.findall(node.value) if ":" in node.value else ())
            found |= {(node.value, BODY)} if node.value in self.modules else set()
        else:
            return
        for source, name in found:
            self.reach(source, name)


def _entries(root: Path) -> Iterator[tuple[str, str]]:
    """Yield what pyproject.toml declares as installed commands and plug-ins."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    for group in (project.get("scripts", {}), *project.get("entry-points", {}).values()):
        for value in group.values():
            module, _, name = value.partition(":")
            yield module, name


@cache
def _modules(root: Path, folders: tuple[str, ...]) -> tuple[_Module, ...]:
    found = []
    for path in sorted(path for folder in folders for path in (root / folder).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        found.append(_module(".".join(parts[:-1] if is_package else parts), ast.parse(path.read_text())))
    return tuple(found)


def _module(name: str, tree: ast.Module) -> _Module:
    module = _Module(name)
    module.body()
    for node in ast.walk(tree):
        _forget_docstrings(node)
        if isinstance(node, ast.Import | ast.ImportFrom):
            for bound, source in _imported(node, name).items():
                module.bound.setdefault(bound, set()).add(source)
    for statement in _statements(tree.body):
        _sort(statement, module)
    for nodes in module.units.values():
        nodes[:] = [node for each in nodes for node in ast.walk(each) if isinstance(node, _Naming)]
    return module


def _forget_docstrings(node: ast.AST) -> None:
    """Remove the texts that are statements of a body: they document, and name nothing."""
    body = getattr(node, "body", None)
    if isinstance(body, list):
        body[:] = [each for each in body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, those of branches one by one."""
    for statement in body:
        if isinstance(statement, ast.If | ast.Try):
            yield from _statements([*statement.body, *statement.orelse])
        else:
            yield statement


def _sort(statement: ast.stmt, module: _Module) -> None:
    """Count a statement to the unit that it defines, or to the module's own."""
    if isinstance(statement, _Function):
        module.define(statement, statement.name)
        if statement.decorator_list:
            # A decorated function is called by the owner of the decorator.
            module.body().append(ast.Name(statement.name, ast.Load()))
    elif isinstance(statement, ast.ClassDef):
        _sort_class(statement, module)
    elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        module.define(statement, statement.targets[0].id)
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        module.define(statement, statement.target.id)
    else:
        module.body().append(statement)


def _sort_class(node: ast.ClassDef, module: _Module) -> None:
    kept = module.define(ast.Tuple([*node.bases, *node.decorator_list], ast.Load()), node.name)
    kept.extend(node.keywords)
    for member in node.body:
        if isinstance(member, _Function) and {_last(each) for each in member.decorator_list} <= FOLLOWED_BY_NAME:
            module.define(member, member.name, node.name)
        else:
            kept.append(member)


def _last(decorator: ast.expr) -> str:
    return ast.unparse(decorator).rpartition(".")[2]


def _imported(node: ast.Import | ast.ImportFrom, here: str) -> dict[str, tuple[str, str]]:
    """Return the names that an import binds: each to a module and a name in it, which is empty for the module."""
    if isinstance(node, ast.ImportFrom):
        if node.level:
            raise ValueError(f"{here} imports relatively, which this does not follow")
        return {each.asname or each.name: (node.module or "", each.name) for each in node.names}
    tops = {each.name.partition(".")[0] for each in node.names if each.asname is None}
    return {each.asname: (each.name, BODY) for each in node.names if each.asname} | {top: (top, BODY) for top in tops}


def _dotted(node: ast.Attribute, module: _Module) -> set[tuple[str, str]]:
    """Return the modules and names that a chain of attributes may be, where it begins with an import."""
    chain: list[str] = []
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        chain.insert(0, inner.attr)
        inner = inner.value
    bound = module.bound.get(inner.id, set()) if isinstance(inner, ast.Name) else set()
    whole = [".".join((source, *([name] if name else []), *chain)) for source, name in bound]
    return {(path.rpartition(".")[0], path.rpartition(".")[2]) for path in whole}
