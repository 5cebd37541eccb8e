"""Strategy files -> strategies with their numbers.

Invariants:
1. Numbers come from TOML only: the shipped file beside the strategy's code, and on top of it the operator's file.
2. No code is loaded from a configuration directory; strategies are installed packages of one entry-point group.
3. A set of files is taken whole or not at all.
"""

import functools
import hashlib
import importlib.metadata
import inspect
import json
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pydantic

from agent.config import problems, pydantic_problems
from agent.config.files import layers, source
from agent.config.files.lines import Lines
from agent.config.settings import Config
from agent.decide.strategy import Params, Strategy, Tuned

GROUP = "gpubid.strategies"
BUILT_IN = {
    "deadline": "strategies.deadline:Deadline",
    "hedged": "strategies.hedged:Hedged",
    "ondemand": "strategies.ondemand:OnDemand",
    "patient": "strategies.patient:Patient",
}
MAX_FILES = 256
MISSING_DIRECTORY, TOO_MANY_FILES = "missing_directory", "too_many_files"
OF_DIRECTORY = frozenset({MISSING_DIRECTORY, TOO_MANY_FILES})
"""The problems of the whole directory, which another file names."""
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")

Registry = Mapping[str, Strategy[Any]]


def installed() -> Registry:
    """Return the strategies that are installed, by name; the built-in ones cannot be replaced by a package.

    Raises:
        ConfigError: a package's strategy cannot be imported.
    """
    return {name: _imported(entry) for name, entry in _entries(tuple(sys.path)).items()}


@functools.cache
def _entries(_places: tuple[str, ...]) -> Mapping[str, importlib.metadata.EntryPoint]:
    """Return each strategy's entry point. What is installed at one of these places later comes with the next start."""
    entries = {entry.name: entry for entry in importlib.metadata.entry_points(group=GROUP)}
    entries |= {name: importlib.metadata.EntryPoint(name, value, GROUP) for name, value in BUILT_IN.items()}
    return dict(sorted(entries.items()))


def _imported(entry: importlib.metadata.EntryPoint) -> Strategy[Any]:
    try:
        strategy: Strategy[Any] = entry.load()()
        is_one = issubclass(strategy.params, Params)
    except Exception as error:
        sentence = f"cannot be imported ({type(error).__name__}); reinstall or remove the package that brings it"
        raise problems.ConfigError([_broken(entry, sentence)]) from error
    if not is_one:
        sentence = "its params are no subclass of Params; fix or remove the package that brings it"
        raise problems.ConfigError([_broken(entry, sentence)])
    return strategy


def _broken(entry: importlib.metadata.EntryPoint, sentence: str) -> problems.Problem:
    return problems.Problem(entry.value, 1, entry.name, "broken_strategy", sentence)


def shipped_file(strategy: Strategy[Any]) -> Path:
    """Return the TOML file beside a strategy's code with the same stem."""
    return Path(inspect.getfile(type(strategy))).with_suffix(".toml")


def load(directory: Path | None = None, registry: Registry | None = None) -> dict[str, Tuned]:
    """Return every strategy that a workload may name: the installed ones, and one for each file in `directory`.

    A file's stem is its name. A file may carry the name of the strategy it tunes, and then replaces its numbers.

    Raises:
        ConfigError: with every mistake in every file.
    """
    known = installed() if registry is None else registry
    tuned: dict[str, Tuned] = {}
    found: list[problems.Problem] = []
    for name, file in [*((name, None) for name in known), *((file.stem, file) for file in _files(directory))]:
        try:
            tuned[name] = _shipped(name, known[name]) if file is None else _tuned(file, known)
        except problems.ConfigError as error:
            found.extend(error.problems)
    if found:
        raise problems.ConfigError(found)
    return tuned


def load_for(config: Config) -> Mapping[str, Tuned]:
    """Return the tuned strategies of a configuration.

    Raises:
        ConfigError: with every mistake in every file. One of the directory itself is told at the key that names it.
    """
    try:
        return load(config.strategies)
    except problems.ConfigError as error:
        raise problems.ConfigError(_at_its_key(config, problem) for problem in error.problems) from None


def _at_its_key(config: Config, problem: problems.Problem) -> problems.Problem:
    if problem.code not in OF_DIRECTORY:
        return problem
    sentence = f"{problem.file} {problem.sentence}"
    return layers.read(config.file).problem(("strategies", "directory"), problem.code, sentence)


def _files(directory: Path | None) -> list[Path]:
    if directory is None:
        return []
    try:
        files = sorted(path for path in directory.iterdir() if path.suffix == ".toml" and path.name[0] != ".")
    except (OSError, ValueError):
        sentence = "is no directory that can be read; make it, or remove strategies.directory"
        raise problems.ConfigError([_whole(directory, MISSING_DIRECTORY, sentence)]) from None
    if len(files) > MAX_FILES:
        sentence = f"holds more than {MAX_FILES} strategy files; name the right directory"
        raise problems.ConfigError([_whole(directory, TOO_MANY_FILES, sentence)])
    return files


def _whole(place: Path, code: str, sentence: str) -> problems.Problem:
    return problems.Problem(source.label(place), 1, problems.WHOLE_FILE, code, sentence)


def _shipped(name: str, strategy: Strategy[Any]) -> Tuned:
    file = shipped_file(strategy)
    values = _shipped_values(strategy)
    return _finished(name, name, strategy, _params(strategy, values, None), str(file) if values else "")


def _shipped_values(strategy: Strategy[Any]) -> dict[str, Any]:
    """Return the shipped numbers; a package that ships no file runs on the defaults of its Params."""
    file = shipped_file(strategy)
    if not file.exists():
        return {}
    return {key: value for key, value in source.read(file).values.items() if key != "strategy"}


def over(name: str, params: Params, file: Path) -> Params:
    """Return the numbers of the strategy `name`, with those of a file in their place.

    Raises:
        ConfigError: the file cannot be read, is for another strategy, or holds a mistake.
    """
    read = source.read(file)
    if read.values.get("strategy") != name:
        sentence = f'the file must be for this strategy; write strategy = "{name}", or name another file'
        raise problems.ConfigError([read.problem(("strategy",), "other_strategy", sentence)])
    changed = {key: value for key, value in read.values.items() if key != "strategy"}
    try:
        return type(params).model_validate({**params.model_dump(), **changed}, strict=True)
    except pydantic.ValidationError as error:
        raise problems.ConfigError(pydantic_problems.problems_of(error, read, type(params))) from None


def of_file(file: Path) -> Tuned:
    """Return the strategy of one file, in whatever folder, under its stem.

    Raises:
        ConfigError: with every mistake in it.
    """
    return _tuned(file, installed())


def base(tuned: Tuned) -> str:
    """Return the name of the installed strategy whose numbers a file changes."""
    return next(name for name, strategy in installed().items() if type(strategy) is type(tuned.strategy))


def _tuned(file: Path, known: Registry) -> Tuned:
    read = source.read(file)
    name = read.values.get("strategy")
    mistakes = list(_name_problems(file, read, name, known))
    strategy = known.get(name) if isinstance(name, str) else None
    if strategy is None or not isinstance(name, str):
        raise problems.ConfigError(mistakes)
    changed = {key: value for key, value in read.values.items() if key != "strategy"}
    try:
        params = _params(strategy, _shipped_values(strategy) | changed, read)
    except problems.ConfigError as error:
        raise problems.ConfigError([*mistakes, *error.problems]) from None
    if mistakes:
        raise problems.ConfigError(mistakes)
    return _finished(file.stem, name, strategy, params, str(file))


def _name_problems(file: Path, read: source.Source, name: object, known: Registry) -> Iterator[problems.Problem]:
    if not _NAME.fullmatch(file.stem):
        sentence = "workloads use the file's name; name it with letters, digits, dots, dashes, underscores"
        yield _whole(file, "bad_name", sentence)
    if name is None:
        sentence = f'is missing; write which strategy the numbers are for, as strategy = "{next(iter(known), "")}"'
        yield read.problem(("strategy",), "missing_key", sentence)
    elif not isinstance(name, str):
        sentence = f"must be text in quotes, not {problems.shown(name)}; {problems.nearest('', known)}"
        yield read.problem(("strategy",), "wrong_type", sentence)
    elif name not in known:
        sentence = f"there is no strategy {problems.shown(name)}; {problems.nearest(name, known)}"
        yield read.problem(("strategy",), "unknown_strategy", sentence)
    elif file.stem in known and file.stem != name:
        sentence = f'the file\'s name is that of another strategy; rename the file, or write strategy = "{file.stem}"'
        yield read.problem(("strategy",), "name_taken", sentence)


def _params(strategy: Strategy[Any], values: Mapping[str, Any], read: source.Source | None) -> Params:
    """Return the checked numbers; problems name `read`, or the shipped file without it."""
    place = read or source.Source(source.label(shipped_file(strategy)), {}, Lines(), "")
    try:
        return strategy.params.model_validate(values, strict=True)
    except pydantic.ValidationError as error:
        raise problems.ConfigError(pydantic_problems.problems_of(error, place, strategy.params)) from None
    except OverflowError:
        sentence = "a number is too large for what it counts; write a smaller one"
        raise problems.ConfigError([place.problem((), "out_of_range", sentence)]) from None


def _finished(name: str, of: str, strategy: Strategy[Any], params: Params, file: str) -> Tuned:
    return Tuned(name=name, strategy=strategy, params=params, digest=digest(of, params), source=file)


def digest(strategy: str, params: Params) -> str:
    """Return the digest of a strategy's numbers in the ledger: equal numbers, equal digest."""
    text = json.dumps([strategy, params.model_dump(mode="json")], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def params(names: Collection[str]) -> dict[str, type[Params]]:
    """Return the types of the numbers of the installed strategies in `names`."""
    return {name: strategy.params for name, strategy in installed().items() if name in names}


def with_place_of_number(problem: problems.Problem) -> problems.Problem:
    """Return a mistake with its place if a workload has a number of a strategy, and as it is else."""
    number = problem.key.rpartition(".")[2]
    if problem.code != "unknown_key" or not problem.key.startswith("workloads."):
        return problem
    owners = sorted(name for name, strategy in installed().items() if number in strategy.params.model_fields)
    if not owners:
        return problem
    of = f"is a number of {' and '.join(owners)}, not of a workload"
    fix = f'write it in a file of your own: strategy = "{owners[0]}" and this key; handbook, "Tuning"'
    return replace(problem, sentence=f"{of}; {fix}")
