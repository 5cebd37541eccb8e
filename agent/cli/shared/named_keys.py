"""The keys that a configuration names, each with its place in the file, and files whose keys this process can read."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agent.cli.shared import session
from agent.config.problems import ConfigError, Problem
from agent.config.settings import Config
from agent.domain.work.workload import Workload

if TYPE_CHECKING:
    from agent.decide.strategy import Tuned

AT_A_START = "a variable and LoadCredential reach gpubid only at a start"


@dataclass(frozen=True, slots=True)
class NamedKey:
    """One key: the path of its setting in the file, and the credential or the file that has it."""

    path: tuple[str, ...]
    name: str
    file: Path | None = None


def of_workload(work: Workload) -> Iterator[NamedKey]:
    """Yield the keys that a rent of a workload needs."""
    table = ("workloads", work.name)
    yield from (NamedKey((*table, "env_from", variable), name) for variable, name in work.env_from)
    if work.image_login is not None:
        yield NamedKey((*table, "image_login", "credential"), work.image_login.credential)
    bucket = work.guard.bucket if work.guard is not None else None
    if bucket is not None:
        yield NamedKey((*table, "guard", "bucket", "credential"), bucket.credential)


def of_start(config: Config) -> Iterator[NamedKey]:
    """Yield the keys without which a daemon does not start or does not lead."""
    for market in config.markets:
        if not market.is_simulated:
            key = "credential_file" if market.credential_file is not None else "credential"
            yield NamedKey(("markets", market.name, key), market.credential, market.credential_file)
    for work in config.workloads:
        yield from of_workload(work)
    for key in ("credential", "webhook_credential"):
        if name := getattr(config.listen, key):
            yield NamedKey(("web", key), name)
    server = config.ledger_server
    if server is not None and (server.credential or server.credential_file is not None):
        key = "credential_file" if server.credential_file is not None else "credential"
        yield NamedKey(("ledger", key), server.credential, server.credential_file)


def read_for_start(file: Path) -> "tuple[Config, Mapping[str, Tuned]]":
    """Return the files of a standby, which needs every key when it leads.

    Raises:
        ConfigError: with every mistake in every file, or with every key that this process cannot read.
    """
    config, tuned = _parsed(file)
    _refuse_unreadable(config, of_start(config))
    return config, tuned


def read_for_reload(file: Path, present: Iterable[Workload]) -> "tuple[Config, Mapping[str, Tuned]]":
    """Return new files for a running daemon with the `present` workloads.

    A key that a present workload names already is not looked up, since a change of something else must still apply.
    The keys of markets are those of the start.

    Raises:
        ConfigError: with every mistake in every file, or with every new key of a workload that cannot be read.
    """
    known = {name for work in present for name in work.credentials}
    config, tuned = _parsed(file)
    wanted = (key for work in config.workloads for key in of_workload(work) if key.name not in known)
    _refuse_unreadable(config, wanted)
    return config, tuned


def _parsed(file: Path) -> "tuple[Config, Mapping[str, Tuned]]":
    from agent.simulator import climate_files

    return session.parse(file, climate_files.names())


def _refuse_unreadable(config: Config, wanted: Iterable[NamedKey]) -> None:
    problems = list(_unreadable(config, wanted))
    if problems:
        raise ConfigError(problems)


def _unreadable(config: Config, wanted: Iterable[NamedKey]) -> Iterator[Problem]:
    from agent.config.files import layers
    from agent.systemd import CredentialError

    for key in wanted:
        try:
            session.looked_up(key.name, key.file)
        except CredentialError as error:
            sentence = f"{error}; {AT_A_START}" if key.file is None else str(error)
            yield layers.read(config.file).problem(key.path, error.code, sentence)
