"""`gpubid init`: write a first configuration from questions or options. The key is checked before a file is written."""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from agent.cli.setup import check, first_config
from agent.cli.shared import exits, session
from agent.config import exposure
from agent.config.linting import lint
from agent.config.problems import ConfigError
from agent.markets import registered_markets
from agent.markets.market_record import AT_A_BID, Question

if TYPE_CHECKING:
    from agent.config.settings import Config
    from agent.markets.port import Account

T = TypeVar("T")
CHECKPOINT = "Where checkpoints are kept (none: an interruption loses all work)"
PLACES = ("none", "remote", "disk")
MOST_SLOTS = 1000


def init(  # noqa: PLR0913 - a flag for each question
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    market: Annotated[str | None, typer.Option(help="simulated, or the name of a market's table.")] = None,
    workload: Annotated[str | None, typer.Option(help="The workload's name.")] = None,
    image: Annotated[str | None, typer.Option(help="The container image.")] = None,
    command: Annotated[str | None, typer.Option(help="The command to run; empty means the image's own.")] = None,
    gpu: Annotated[list[str] | None, typer.Option(help="A GPU model to accept; may repeat.")] = None,
    slots: Annotated[int | None, typer.Option(min=1, max=MOST_SLOTS, help="How many slots must run.")] = None,
    max_price: Annotated[str | None, typer.Option(help="The most that one slot may cost an hour, in dollars.")] = None,
    budget: Annotated[
        str | None, typer.Option(help="The most that everything may cost in a UTC day, in dollars.")
    ] = None,
    checkpoint: Annotated[str | None, typer.Option(help="Where checkpoints are kept: none, remote or disk.")] = None,
    key_file: Annotated[Path | None, typer.Option(help="A file with only the market's key.")] = None,
    key: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A key that only this market has; may repeat."),
    ] = None,
    url: Annotated[str, typer.Option(help="The market's address, if it is not the vendor's own.")] = "",
    spend: Annotated[bool, typer.Option("--spend", help="Allow spending from the first start on.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask. Missing options have the shipped values.")
    ] = False,
) -> None:
    """Write a first configuration with comments. The key is checked with requests that only read."""
    shipped = session.shipped_config().read_text()
    _refuse_taken(config, shipped)
    ask = _Asker(is_silent=yes or not sys.stdin.isatty())
    chosen = _market(ask, market, {"--key-file": key_file, "--url": url, "--set": key, "--spend": spend})
    is_live = chosen != first_config.SIMULATED
    price, day, strategy = registered_markets.record(chosen).first_answers if is_live else AT_A_BID
    answers = first_config.Answers(
        market=chosen,
        workload=ask("The workload's name", workload, "train", _named),
        image=ask("The container image", image, "pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime", _text),
        command=ask("The command to run (empty: the image's own)", command, "", _text),
        gpu=tuple(gpu or ask("GPU models to accept, separated by commas", None, "RTX 4090", _words)),
        slots=ask("How many slots must run", None if slots is None else str(slots), "1", _count),
        max_price=ask("The most dollars an hour that one slot may cost", max_price, price, _dollars("--max-price")),
        per_day=ask("The most that everything may cost in a UTC day, in dollars", budget, day, _dollars("--budget")),
        checkpoint=ask(CHECKPOINT, checkpoint, "none", _among(PLACES)),
        strategy=strategy,
        may_spend=spend,
        url=url,
        own=_own(chosen, key or [], ask) if is_live else (),
        schema=_schema(shipped, config),
    )
    known = _key(chosen, key_file, ask, config) if is_live else ("", None)
    _carry_out(config, shipped, answers, known)


def _carry_out(config: Path, shipped: str, answers: first_config.Answers, known: tuple[str, Path | None]) -> None:
    """Check the key, store it, and write the file, in this order. A failure leaves nothing behind."""
    key, file = known
    if file is not None and file.parent != session.STORE:
        answers = replace(answers, credential_file=str(file))
    text = first_config.written(shipped, answers)
    settings = _parsed(text, config, answers)
    is_live = answers.market != first_config.SIMULATED
    if is_live:
        session.say(_greeting(answers.market, _account(settings, key)))
        if file is not None and not file.exists():
            _write_new(file, key + "\n", 0o600)
            session.say(f"the key is kept in {file}")
    _write_config(config, text, shipped)
    if answers.strategy != AT_A_BID.strategy:
        session.say(f'{_why_no_bids(answers.market)}, so the strategy is "{answers.strategy}"')
    what = f"{answers.slots} x {answers.workload} on {answers.market}, at most ${answers.per_day} a day"
    session.say(f"{config} is written: {what}")
    _warn(replace(settings, file=config))
    if is_live and not answers.may_spend:
        session.say("nothing is paid for until you write spend = true there; `gpubid plan` shows what it would do")
    for record in registered_markets.installed().values():
        if record.fallback_page and record.name != answers.market:
            keys = f"[markets.{record.name}] and fallback_markets"
            session.say(f'other clouds may be a fallback: {keys}; handbook, "{record.fallback_page}"')
    where = "" if config == session.DEFAULT_CONFIG else f" --config {config}"
    first, why = ("plan", "what it would do now") if is_live else ("rehearse", "a day on the simulated market")
    session.say(f"next: gpubid {first}{where}   # {why}")
    session.say(f"then: gpubid run{where}   # the daemon, until Ctrl-C")


def _warn(settings: "Config") -> None:
    """Print the exposures and the probable mistakes that `gpubid check` would print."""
    for each in exposure.exposures(settings):
        session.warn(f"{each.sentence}; {each.fix}")
    for sentence in check.placed(settings, lint.findings(settings, check.facts(settings))):
        session.warn(sentence)


def _why_no_bids(market: str) -> str:
    if registered_markets.record(market).rules.is_listed:
        return f"{market} takes no bids: its prices are listed"
    return f"{market} sells on-demand capacity only"


class _Asker:
    """Asks on the terminal for missing options. Without a terminal it takes the shipped values."""

    def __init__(self, *, is_silent: bool) -> None:
        self._is_silent = is_silent

    def __call__(self, question: str, given: str | None, default: str, read: Callable[[str], T]) -> T:
        """Return the answer as `read` parses it. If `read` raises ValueError, print its message and ask again."""
        is_asked = given is None and not self._is_silent
        while True:
            said = given if given is not None else default
            if is_asked:
                said = str(typer.prompt(question, default=default, show_default=bool(default)))
            try:
                return read(said.strip())
            except ValueError as error:
                if not is_asked:
                    exits.stop(exits.BAD_INPUT, [str(error)])
                session.say(f"{error}; please answer again")

    def hidden(self, question: str) -> str:
        """Ask for a key without showing it. Without a terminal, return an empty text."""
        return "" if self._is_silent else str(typer.prompt(question, hide_input=True)).strip()


def _market(ask: _Asker, given: str | None, of_live: Mapping[str, object]) -> str:
    """Return the chosen market; end if an option was given that only a live market has."""
    live, simulated = registered_markets.names(), first_config.SIMULATED
    chosen = ask("Market (simulated costs nothing)", given, simulated, _among((simulated, *live)))
    if chosen == simulated and any(of_live.values()):
        *names, last = of_live
        wrong = f"{', '.join(names)} and {last} are for a live market: add --market {' or '.join(live)}"
        exits.stop(exits.BAD_INPUT, [wrong])
    return chosen


def _own(market: str, given: list[str], ask: _Asker) -> tuple[tuple[str, str], ...]:
    """Return the keys that only this market has, as TOML, from the options and the questions of its record."""
    said = {key.strip(): value.strip() for key, _, value in (each.partition("=") for each in given)}
    questions = {each.key: each for each in registered_markets.record(market).questions}
    for unknown in said.keys() - questions.keys():
        its_own = ", ".join(questions) or "none"
        exits.stop(exits.BAD_INPUT, [f"--set: {unknown!r} is no key that only {market} has; it has {its_own}"])
    answers = ((each, ask(each.text, said.get(each.key), each.default, _answered(each))) for each in questions.values())
    return tuple((each.key, value) for each, value in answers if value)


def _answered(question: Question) -> Callable[[str], str]:
    """Return how an answer becomes a TOML value; an empty one without a default is refused."""

    def read(said: str) -> str:
        if not said and not question.is_optional:
            raise ValueError(f"{question.key} must be answered: {question.text}; give it as --set {question.key}=VALUE")
        if question.is_list and said:
            return json.dumps(_words(said), ensure_ascii=False)
        if not question.is_number or not said:
            return json.dumps(said, ensure_ascii=False) if said else ""
        return str(_dollars(f"--set {question.key}")(said))

    return read


def _refuse_taken(config: Path, shipped: str) -> None:
    """End unless the file may be written: it does not exist, or is byte for byte the shipped one."""
    try:
        if config.read_text() == shipped:
            return
    except FileNotFoundError:
        return
    except (OSError, ValueError):
        pass
    exits.stop(exits.BAD_INPUT, [f"{config} exists, and nothing is overwritten: name another with --config"])


def _words(said: str) -> list[str]:
    return [word.strip() for word in said.split(",") if word.strip()]


def _text(said: str) -> str:
    return said


def _named(said: str) -> str:
    if not said:
        raise ValueError("a workload needs a name such as train")
    return said


def _among(names: tuple[str, ...]) -> Callable[[str], str]:
    def read(said: str) -> str:
        if said not in names:
            raise ValueError(f"{said!r} is none of {', '.join(names)}")
        return said

    return read


def _count(said: str) -> int:
    number = int(said) if said.isascii() and said.isdecimal() and len(said) <= 4 else 0  # noqa: PLR2004 - digits
    if not 1 <= number <= MOST_SLOTS:
        raise ValueError(f"--slots: {said!r} is not a number from 1 to {MOST_SLOTS}")
    return number


def _dollars(flag: str) -> Callable[[str], Decimal]:
    def read(said: str) -> Decimal:
        try:
            amount = Decimal(said.removeprefix("$"))
        except InvalidOperation:
            amount = Decimal("nan")
        if not amount.is_finite() or amount <= 0:
            raise ValueError(f"{flag}: {said!r} is not an amount of dollars such as 0.45")
        return amount

    return read


def _schema(shipped: str, config: Path) -> str:
    """Return the first line, which points an editor to the schema even from another folder."""
    mark, _, place = shipped.partition("\n")[0].partition(" ")
    folder = session.shipped_config().parent
    return f"{mark} {place if config.absolute().parent == folder else folder / place}"


def _key(market: str, given: Path | None, ask: _Asker, config: Path) -> tuple[str, Path | None]:
    """Return the key, and the file to store it in, or None if it is already a credential."""
    from agent import systemd

    record = registered_markets.record(market)
    name = record.credential
    try:
        if given is None:
            key = systemd.credential(name, None, os.environ)
            session.REDACTOR.register(key)
            return key, None
        key = systemd.credential(name, given.absolute(), os.environ)
    except systemd.CredentialError as error:
        key = ask.hidden(f"The key of {market} (it is not shown)") if given is None else ""
        if not key:
            exits.stop(exits.BAD_INPUT, [f"{error}, or give --key-file; how to make one: {record.documentation}"])
    session.REDACTOR.register(key)
    if session.is_service(config):
        return key, session.STORE / name
    return key, given.absolute() if given is not None else config.absolute().with_name(name)


def _parsed(text: str, config: Path, answers: first_config.Answers) -> "Config":
    """Return the configuration, or end with its mistakes as bad input, each under the option that gave the value."""
    from agent.simulator import climate_files

    options = first_config.options(answers)
    with tempfile.TemporaryDirectory(prefix="gpubid-init-") as folder:
        draft = Path(folder) / "agent.toml"
        draft.write_text(text)
        try:
            return session.parse(draft, climate_files.names())[0]
        except ConfigError as error:
            # The draft is gone, so its name and its lines would lead nowhere.
            found = [f"{options.get(each.key, f'{config}: {each.key}')}: {each.sentence}" for each in error.problems]
            exits.stop(exits.BAD_INPUT, [*found, f"{config} is not written"])


def _account(settings: "Config", key: str) -> "Account":
    from agent.clock import SystemClock
    from agent.markets import market_errors
    from agent.outside import Outside

    async def asked() -> "Account":
        market = Outside(SystemClock(), lambda _: key, {}).connect(settings.markets[0])
        try:
            account = await market.account()
            # A key may be good and yet list nothing, such as one for another project.
            await market.instances()
            return account
        finally:
            await market.close()

    session.log_quietly()
    try:
        with session.waiting("asking the market about the key"):
            return asyncio.run(asked())
    except market_errors.Unauthorized as error:
        exits.stop(exits.BAD_INPUT, [f"the key is refused, nothing was written: {error}"])
    except market_errors.MarketError as error:
        exits.stop(exits.FAILED, [f"{settings.markets[0].name} could not be read, nothing was written: {error}"])


def _greeting(market: str, account: "Account") -> str:
    credit = f", credit {account.credit}" if account.credit is not None else ""
    return f"the key is good: account {account.account_id} of {market}{credit}"


def _write_config(config: Path, text: str, shipped: str) -> None:
    try:
        config.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        exits.unwritable(config.parent, error)
    if config.exists() and config.read_text() == shipped:
        config.unlink()
    _write_new(config, text, 0o644)


def _write_new(file: Path, text: str, mode: int) -> None:
    try:
        stream = os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "w")
    except FileExistsError:
        exits.stop(exits.BAD_INPUT, [f"{file} exists, and nothing is overwritten; move it away, or name another file"])
    except OSError as error:
        exits.unwritable(file, error)
    try:
        with stream:
            stream.write(text)
    except OSError as error:
        # A half file would be refused by the next `check`, and stop the next `init`.
        file.unlink(missing_ok=True)
        exits.unwritable(file, error)
