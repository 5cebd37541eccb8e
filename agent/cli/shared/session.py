"""Shared beginnings of verbs: configuration, strategies, keys, and markets, embedded if they are simulated."""

import contextlib
import dataclasses
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from agent import systemd
from agent.cli.shared import exits
from agent.config.problems import ConfigError
from agent.config.settings import Config, MarketSettings
from agent.decide.strategy import Tuned
from agent.telemetry import redaction
from agent.telemetry.plain_text import plain

if TYPE_CHECKING:
    from rich.table import Column, Table

    from agent.outside import Outside
    from agent.simulator.market_server import Simulator
    from agent.simulator.saved_market import Saved

ConfigOption = Annotated[
    Path,
    typer.Option(
        "--config", "-c", help="The configuration file.", envvar="GPUBID_CONFIG", show_default=True, readable=False
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, stable from version to version.")]
DEFAULT_CONFIG = Path("agent.toml")
SIMULATED_KEY = "simulated-key"
SEED = 7
WIDEST = 10_000
"""Width in characters of a table in which no column may break lines."""
FOLDED_LEAST = 24
"""The least characters of a column that may break lines. A narrower table is printed row by row."""
REDACTOR = redaction.Redactor()
STORE = systemd.STORE


def shipped_folder() -> Path:
    """Return the folder of agent.toml and deploy/: the checkout, or the installed program's environment."""
    import agent

    checkout = Path(agent.__file__).parents[1]
    return checkout if (checkout / "deploy/systemd").is_dir() else Path(sys.prefix) / "share/gpubid"


def shipped_config() -> Path:
    """Return the shipped configuration."""
    return shipped_folder() / "agent.toml"


def is_service(config: Path) -> bool:
    """Return whether a configuration is that of the systemd unit."""
    from agent.config import loading

    return config.absolute().parent == loading.SERVICE


def read(path: Path) -> tuple[Config, Mapping[str, Tuned]]:
    """Return the configuration and the tuned strategies, or end with 2 and every mistake."""
    from agent.simulator import climate_files

    try:
        return parse(path, climate_files.names())
    except ConfigError as error:
        exits.stop(exits.BAD_INPUT, [str(problem) for problem in error.problems])


def parse(path: Path, climates: list[str]) -> tuple[Config, Mapping[str, Tuned]]:
    """Return the configuration and the tuned strategies.

    Raises:
        ConfigError: with every mistake in every file.
    """
    from agent import strategy_files
    from agent.config import loading

    try:
        config = loading.load(
            path,
            strategies=strategy_files.installed().keys(),
            climates=climates,
            runs_processes=_runs_processes,
            check_query=_check_query,
        )
    except ConfigError as error:
        raise ConfigError(tuple(map(strategy_files.with_place_of_number, error.problems))) from None
    return config, strategy_files.load_for(config)


def _runs_processes(climate_name: str) -> bool:

    from agent.simulator import climate_files

    return climate_files.named(climate_name).processes


def _check_query(text: str) -> None:
    """Refuse a query that no installed market's grammar knows. Raises: ValueError."""
    from agent.markets import registered_markets

    checks = [each.check_query for each in registered_markets.installed().values() if each.check_query is not None]
    refusals = []
    for check in checks:
        try:
            check(text)
        except ValueError as error:
            refusals.append(error)
    if checks and len(refusals) == len(checks):
        raise refusals[0]


def secret(settings: MarketSettings) -> str:
    """Return the key of a market: the simulator's own, or a credential by its name. Logs never show it from here on.

    It is read for every request, so that a key may be replaced while the daemon runs.

    Raises:
        CredentialError: no usable key is found.
    """
    if settings.is_simulated:
        return SIMULATED_KEY
    return looked_up(settings.credential, settings.credential_file)


def named(name: str) -> str:
    """Return a credential that a workload names. Logs never show it from here on.

    Raises:
        CredentialError: no usable credential is found.
    """
    return looked_up(name, None)


def looked_up(name: str, file: Path | None) -> str:
    """Return a key from `file` if that is named, else the credential. Logs never show it from here on.

    Raises:
        CredentialError: no usable key is found.
    """
    key = systemd.credential(name, file, os.environ)
    REDACTOR.register(key)
    return key


def ledger_password(name: str, file: Path | None) -> str:
    """Return the password of a ledger on a server. Logs never show it from here on.

    Raises:
        CredentialError: no usable password is found.
    """
    return looked_up(name, file)


def has_keys(config: Config) -> bool:
    """Return whether this process has every key that the configuration names."""
    try:
        _look_up_keys(config)
    except systemd.CredentialError:
        return False
    return True


def _look_up_keys(config: Config) -> None:
    for settings in config.markets:
        secret(settings)
    for work in config.workloads:
        for name in work.credentials:
            named(name)


def _named_while_running(name: str) -> str:
    from agent.markets import market_errors
    from agent.systemd import CredentialError

    try:
        return named(name)
    except CredentialError as error:
        raise market_errors.Rejected("no_credential", str(error)) from None


def _secret_while_running(settings: MarketSettings) -> str:
    """Return the key. If it is missing after the start, the market is unreadable, but the daemon does not end."""
    from agent.markets import market_errors
    from agent.systemd import CredentialError

    try:
        return secret(settings)
    except CredentialError as error:
        raise market_errors.Unauthorized(str(error)) from None


@contextlib.asynccontextmanager
async def outside(config: Config, *, keeps: bool = True) -> AsyncIterator["Outside"]:
    """Yield the outside world: the machine's clock, and a simulator for each simulated market.

    A simulated market is saved beside the ledger if `keeps`; a process that only reads does not save it.

    Raises:
        CredentialError: a market has no key that can be used.
    """
    from agent.clock import SystemClock
    from agent.outside import Outside
    from agent.simulator.saved_market import Saved

    _look_up_keys(config)
    async with contextlib.AsyncExitStack() as stack:
        embedded: dict[str, Saved] = {}
        urls = {}
        for settings in config.markets:
            if settings.is_simulated:
                climate = settings.simulated
                if climate not in embedded:
                    embedded[climate] = await stack.enter_async_context(_embedded(climate, config, keeps=keeps))
                urls[settings.name] = embedded[climate].simulator.url(settings.name)
        anew = frozenset(each.name for each in config.markets if each.is_simulated and embedded[each.simulated].is_anew)
        named, hidden = _named_while_running, REDACTOR.concealed
        yield Outside(
            SystemClock(),
            _secret_while_running,
            urls,
            credential=named,
            anew=anew,
            ledger_password=ledger_password,
            concealed=hidden,
        )


def outside_of_markets(config: Config) -> "contextlib.AbstractAsyncContextManager[Outside]":
    """Yield the outside world for a verb that only ends leases. It needs the markets' keys, no workload's credentials.

    Raises:
        CredentialError: a market has no key that can be used.
    """
    # Ending leases creates no file: a simulated market is saved only if it already was.
    keeps = any(config.ledger.parent.glob(f"{config.ledger.name}*"))
    return outside(dataclasses.replace(config, workloads=()), keeps=keeps)


@contextlib.asynccontextmanager
async def _embedded(climate_name: str, config: "Config", *, keeps: bool) -> AsyncIterator["Saved"]:
    from agent.cli.shared import simulated_volumes
    from agent.simulator import climate_files
    from agent.simulator.saved_market import Saved
    from agent.simulator.simulated_clock import ScaledClock

    def prepare(simulator: "Simulator") -> None:
        """Give the account what it needs before its first call."""
        simulated_volumes.put(simulator, config.workloads)

    file = config.ledger.with_name(f"{config.ledger.name}.market-{climate_name}.jsonl")
    own, hidden = climate_files.named(climate_name), REDACTOR.concealed
    saved = Saved(file, own, SEED, ScaledClock(), hidden, keeps=keeps, prepare=prepare)
    try:
        await saved.open()
    except OSError as error:
        from agent.ledger.file import sidecar

        raise sidecar.unwritable(file, error) from None
    async with saved.simulator:
        yield saved


def may_write(file: Path) -> bool:
    """Return whether we may write a file, or whether it does not exist."""
    try:
        return not file.exists() or os.access(file, os.W_OK)
    except PermissionError:
        return False


def is_missing(file: Path) -> bool:
    """Return whether a file does not exist. A file in a folder that we may not open counts as existing."""
    try:
        return not file.exists()
    except PermissionError:
        return False


def may_read(file: Path) -> bool:
    """Return whether we may read a file. A missing file counts as readable, and the caller finds it missing."""
    try:
        return not file.exists() or os.access(file, os.R_OK)
    except PermissionError:
        return False


def log_quietly() -> None:
    """Log only errors, because a verb prints its own messages."""
    from agent.clock import SystemClock
    from agent.telemetry import logging

    logging.configure(REDACTOR, SystemClock().now, level="ERROR")


def print_json(value: Any) -> None:  # noqa: ANN401 - whatever a verb has to say
    """Print one JSON document in ASCII. A market's text must not control the terminal, and escapes lose nothing."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def is_terminal(stream: TextIO | None = None) -> bool:
    """Return whether a person watches a stream, standard output by default."""
    return (stream or sys.stdout).isatty() and os.environ.get("TERM") != "dumb"


@contextlib.contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show at a terminal that work is under way. Show nothing elsewhere."""
    from rich.console import Console

    if not is_terminal(sys.stderr):
        yield
        return
    with Console(stderr=True).status(what):
        yield


def say(line: str) -> None:
    """Print one line as plain text."""
    sys.stdout.write(plain(line) + "\n")


def warn(line: str) -> None:
    """Print one line to standard error as plain text."""
    sys.stderr.write(f"gpubid: {plain(line)}\n")
    sys.stderr.flush()


def table(*names: str, folded: str = "") -> "Table":
    """Return an empty table with these columns. Only the `folded` columns may break lines."""
    from rich.table import Table

    new_table = Table(box=None, pad_edge=False)
    for name in names:
        new_table.add_column(name, no_wrap=name != folded, overflow="fold")
    return new_table


def add(rows: "Table", *cells: str) -> None:
    """Add a row. Its cells become plain text."""
    rows.add_row(*(plain(cell) for cell in cells))


def show(printed: "Table") -> None:
    """Print a table. On a narrow terminal, print it row by row, one line for each column: no figure is cut."""
    from rich.console import Console

    console = Console(width=None if is_terminal() else 160, markup=False, highlight=False)
    if is_terminal() and least_width(printed) > console.width:
        for line in stacked(printed):
            say(line)
        return
    if all(column.no_wrap for column in printed.columns):
        console.width = max(console.width, least_width(printed))
    console.print(printed)


def least_width(printed: "Table") -> int:
    """Return the least width in characters at which no figure is cut and no word of a folded column is broken."""
    from rich.console import Console
    from rich.measure import Measurement

    console = Console(width=WIDEST, markup=False, highlight=False)
    folded = [column for column in printed.columns if not column.no_wrap]
    least = sum(max(_width(column) - max(FOLDED_LEAST, _longest_word(column)), 0) for column in folded)
    return Measurement.get(console, console.options, printed).maximum - least


def stacked(printed: "Table") -> Iterator[str]:
    """Yield a table row by row, with a line for each column and an empty line after each row."""
    names = [str(column.header) for column in printed.columns]
    room = max(map(len, names), default=0)
    for row in zip(*(column.cells for column in printed.columns), strict=True):
        for name, cell in zip(names, map(str, row), strict=True):
            if cell:
                yield f"{name:<{room}}  {cell}"
        yield ""


def _width(column: "Column") -> int:
    from rich.cells import cell_len

    return max(cell_len(str(text)) for text in (column.header, *column.cells))


def _longest_word(column: "Column") -> int:
    from rich.cells import cell_len

    return max((cell_len(word) for text in column.cells for word in str(text).split()), default=0)
