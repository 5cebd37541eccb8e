"""`gpubid estimate`: the cost of a job before it starts, on every market, by every strategy and on other clouds."""

import asyncio
import csv
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.shared import (
    completion,
    exits,
    frontier,
    ledger_access,
    ledger_questions,
    option_text,
    session,
    side_by_side,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from agent.cli.rehearsing.estimate_calendar import Times
    from agent.config.job_table import JobTable
    from agent.config.problems import Problem
    from agent.decide.estimate.job import Reruns
    from agent.decide.estimate.market_options import Missing
    from agent.decide.estimate.option import Estimate
    from agent.decide.pricing.measured_checkpoints import Measured
    from agent.observe.estimate_inputs import Found

FORMULAS = (
    "running hours: Daly, Future Generation Computer Systems 22(3), 2006, eq. 13, over a Gamma posterior of the rate",
    "best time between checkpoints: Young, CACM 17(9), 1974; Daly 2006, eq. 37",
    "nine in ten: over 16 rates of interruption and up to 5 prices the excess is a Gamma of its own mean and variance",
)

_CHECKPOINT_OPTIONS = {
    "checkpoint.interval": "--checkpoint-every",
    "checkpoint.takes": "--checkpoint-takes",
    "checkpoint.size_gb": "--checkpoint-gb",
    "checkpoint.at": "--checkpoint-at",
}
"""The options whose names differ from their keys."""
_BEFORE_UNITS = 4
"""Cells of a row before its dollars per unit."""
WorkloadArgument = Annotated[
    str | None,
    typer.Argument(help="A workload of the configuration to start from.", autocompletion=completion.workloads),
]


def estimate(  # noqa: PLR0913 - one parameter per option
    workload: WorkloadArgument = None,
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    job: Annotated[Path | None, typer.Option(help="A job file (TOML); its keys are these options.")] = None,
    gpu: Annotated[
        list[str] | None, typer.Option(help='A GPU model by its whole name, such as "RTX 4090"; may repeat.')
    ] = None,
    gpus: Annotated[int | None, typer.Option(help="How many GPUs at a time.")] = None,
    hours: Annotated[float | None, typer.Option(help="Hours of useful work on them.")] = None,
    unit: Annotated[str | None, typer.Option(help='Unit of that work, such as "step".')] = None,
    units: Annotated[float | None, typer.Option(help="Units of work in these hours, for dollars per unit.")] = None,
    checkpoint_every: Annotated[
        str | None, typer.Option(help='Time between checkpoints, such as "15m"; by default the best one.')
    ] = None,
    checkpoint_takes: Annotated[str | None, typer.Option(help='How long a checkpoint takes, such as "30s".')] = None,
    checkpoint_gb: Annotated[float | None, typer.Option(help="Gigabytes of a checkpoint.")] = None,
    checkpoint_at: Annotated[str | None, typer.Option(help="Where checkpoints are kept: disk, remote or none.")] = None,
    image_gb: Annotated[float | None, typer.Option(help="Gigabytes of the image.")] = None,
    dataset_gb: Annotated[float | None, typer.Option(help="Gigabytes of data fetched on every new host.")] = None,
    disk_gb: Annotated[float | None, typer.Option(help="Gigabytes of disk.")] = None,
    deadline: Annotated[str | None, typer.Option(help='Time that is allowed from the start, such as "2d".')] = None,
    reruns: Annotated[
        str | None, typer.Option(help='Number of runs, such as "2-3": failed experiments are paid for too.')
    ] = None,
    odds: Annotated[float | None, typer.Option(help="Chance that a run succeeds, in place of --reruns.")] = None,
    price: Annotated[str | None, typer.Option(help="On-demand dollars per GPU-hour, instead of the ledger's.")] = None,
    floor: Annotated[str | None, typer.Option(help="Lowest bid per GPU-hour, instead of the ledger's.")] = None,
    hazard: Annotated[float | None, typer.Option(help="Interruptions per hour, for a bid at the floor.")] = None,
    storage_price: Annotated[str | None, typer.Option(help="Dollars per gigabyte and month.")] = None,
    traffic_price: Annotated[str | None, typer.Option(help="Dollars per gigabyte fetched.")] = None,
    down: Annotated[str | None, typer.Option(help='Time from an interruption to running again, as "5m".')] = None,
    baselines: Annotated[Path | None, typer.Option(help="Your own file of other clouds' prices.")] = None,
    as_json: session.JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print a table for spreadsheets.")] = False,
) -> None:
    """Estimate the cost of a job before it starts: expected dollars, and the sum that nine in ten runs stay under."""
    said = {
        "gpu": gpu or None, "gpus": gpus, "hours": hours, "image_gb": image_gb, "dataset_gb": dataset_gb,
        "disk_gb": disk_gb, "unit": unit, "units": units,
        "deadline": deadline, "reruns": _factors(reruns), "odds": odds, "price": _money("price", price),
        "floor": _money("floor", floor), "hazard": hazard, "storage_price": _money("storage-price", storage_price),
        "traffic_price": _money("traffic-price", traffic_price), "down": down,
    }  # fmt: skip
    checkpoint = {
        "interval": checkpoint_every,
        "takes": checkpoint_takes,
        "size_gb": checkpoint_gb,
        "at": checkpoint_at,
    }
    _show(*_found(workload, config, job, _given(said, checkpoint), baselines), as_json=as_json, as_csv=as_csv)


def _show(
    table: "JobTable",
    models: list["Found"],
    measured: "Mapping[str, Measured]",
    times: "Times | None",
    *,
    as_json: bool,
    as_csv: bool,
) -> None:
    from agent.cli.rehearsing import estimate_calendar

    options = [(one.gpu, option) for one in models for option in one.options]
    if as_json:
        session.print_json(_document(table, models, measured) | {"times": estimate_calendar.document(times, options)})
    elif as_csv:
        _print_csv(table, models, measured)
    else:
        _say(table, models, measured, estimate_calendar.sentences(times, options))


def _given(said: dict[str, Any], checkpoint: dict[str, Any]) -> dict[str, Any]:
    """Return the given options as the keys of a job file."""
    inner = {key: value for key, value in checkpoint.items() if value is not None}
    given = {key: value for key, value in said.items() if value is not None}
    return given | ({"checkpoint": inner} if inner else {})


def _found(
    workload: str | None, config: Path, file: Path | None, given: dict[str, Any], baselines: Path | None
) -> tuple["JobTable", list["Found"], "Mapping[str, Measured]", "Times | None"]:
    from agent import strategy_files
    from agent.baselines import baseline_loading
    from agent.cli.rehearsing import estimate_calendar, listed_prices, unpriced_cards
    from agent.clock import SystemClock
    from agent.config import job_table as jobs
    from agent.config.problems import ConfigError
    from agent.ledger.ledger_errors import LedgerError
    from agent.observe import estimate_inputs

    # Without a configuration, an estimate uses shipped strategies, given prices and baselines.
    is_configured = workload is not None or config != session.DEFAULT_CONFIG or config.exists()
    settings, tuned = session.read(config) if is_configured else (None, strategy_files.load())
    named = {work.name: work for work in settings.workloads} if settings is not None else {}
    if workload is not None and settings is not None:
        workload = ledger_questions.name_of(settings, workload)
    now = SystemClock().now()
    work = None if workload is None else named[workload]
    own = [market.name for market in settings.markets] if settings is not None else ["market"]
    markets = [name for name in own if work is None or work.may_use(name)]
    ledger = ledger_access.place_of(settings) if settings is not None else None
    whole = [name for name, each in named.items() if each.requirements.gpu_models]
    try:
        measured = {} if work is None or ledger is None else asyncio.run(estimate_inputs.measured(ledger, work, now))
        table = jobs.read(file, {} if work is None else estimate_inputs.of_workload(work, now, measured), given)
        catalogue = baseline_loading.load() if baselines is None else baseline_loading.load(baselines)
        asked, untold = ((), ()) if settings is None else asyncio.run(listed_prices.asked(settings, table))
        models = asyncio.run(estimate_inputs.find(table, markets, ledger, tuned, catalogue, now, asked))
    except ConfigError as error:
        exits.stop(exits.BAD_INPUT, list(_mistakes(error.problems, whole if work is None else [], workload)))
    except LedgerError as error:
        exits.refused(error)
    for sentence in untold:
        session.warn(sentence)
    unpriced_cards.refuse(table, models, catalogue, "--gpu" if "gpu" in given else "gpu")
    times = None if work is None or settings is None else estimate_calendar.Times(settings, work, now)
    return table, models, estimate_inputs.used(table, measured), times


def _mistakes(problems: "Sequence[Problem]", workloads: "Sequence[str]", asked: str | None = None) -> "Iterator[str]":
    """Yield each mistake of the options or the job file. `workloads` have all options but the hours.

    `asked` is the workload that the estimate is for.
    """
    from agent.config.job_table import COMMAND_LINE

    for problem in problems:
        if asked is not None and (problem.key, problem.code) == ("gpu", "missing_key"):
            yield f'{asked} accepts any GPU, and an estimate is for one model; name it, for example --gpu "RTX 4090"'
            continue
        yield option_text.sentence(problem, _CHECKPOINT_OPTIONS) if problem.file == COMMAND_LINE else str(problem)
    if workloads and any(problem.code == "missing_key" for problem in problems):
        yield f"a workload of the configuration has all but the hours: `gpubid estimate {workloads[0]} --hours 24`"


def _factors(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(part) for part in text.split("-")]
    except ValueError:
        exits.stop(
            exits.BAD_INPUT, [f'--reruns: {text!r} is not a factor; write "2", or the least and the most as "2-3"']
        )


def _money(name: str, text: str | None) -> Any:  # noqa: ANN401 - what pydantic is to check
    from decimal import Decimal, InvalidOperation

    if text is None:
        return None
    try:
        return Decimal(text)
    except InvalidOperation:
        exits.stop(exits.BAD_INPUT, [f"--{name}: {text!r} is not an amount of dollars; write for example 0.80"])


def _reruns(table: "JobTable") -> "Reruns":
    from agent.domain.market import gpu
    from agent.observe import estimate_inputs

    return estimate_inputs.job_of(table, gpu.model("")).reruns


def _times(dollars: float | None, factor: float | None) -> float | None:
    return None if dollars is None or factor is None else round(dollars * factor, 6)


def _per_unit(one: "Estimate", units: float | None) -> float | None:
    return None if one.dollars is None or units is None else round(one.dollars / units, 12)


def _row(one: "Estimate", reruns: "Reruns", units: float | None) -> dict[str, Any]:
    """Return an option as JSON: money to six decimals, hours to four."""
    row = asdict(one) | {"tenure": one.tenure.value, "cited": list(one.cited), "unknown": list(one.unknown)}
    row["by_age"] = [{"age": age, "interval": interval} for age, interval in one.by_age]
    for key, value in row.items():
        if isinstance(value, float):
            row[key] = round(value, 6 if "dollars" in key else 4)
    return row | {
        "dollars_per_unit": _per_unit(one, units),
        "with_reruns_least_dollars": _times(one.dollars, reruns.least),
        "with_reruns_dollars": _times(one.dollars, reruns.mean),
        "with_reruns_most_dollars": _times(one.dollars, reruns.most),
    }


def _document(table: "JobTable", models: list["Found"], measured: "Mapping[str, Measured]") -> dict[str, Any]:
    from agent.decide.pricing.worth import value_frontier

    reruns = _reruns(table)
    return {
        "job": {
            "hours": table.hours,
            "gpus": table.gpus,
            "reruns_least": reruns.least,
            "reruns_most": reruns.most,
            "unit": table.unit,
            "units": table.units,
        },
        "models": [
            {
                "gpu": one.gpu,
                "options": [_row(option, reruns, table.units) for option in one.options],
                "missing": [asdict(option) for option in one.missing],
                "frontier": [value_frontier.as_json(step) for step in one.frontier],
            }
            for one in models
        ],
        "measured": [{"name": name, **asdict(one)} for name, one in sorted(measured.items())],
        "formulas": list(FORMULAS),
    }


def _print_csv(table: "JobTable", models: list["Found"], measured: "Mapping[str, Measured]") -> None:
    reruns, notes = _reruns(table), _measured_notes(measured)
    rows = [
        {"gpu": one.gpu} | _row(option, reruns, table.units) | {"unit": table.unit, "measured": notes}
        for one in models
        for option in one.options
    ]
    if not rows:
        return
    writer = csv.DictWriter(sys.stdout, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: _in_a_cell(value) if isinstance(value, list) else value for key, value in row.items()})


def _in_a_cell(values: list[Any]) -> str:
    """Return a list as one cell. A step of `by_age` is its age and its interval, in hours."""
    return "; ".join(f"{one['age']:g}: {one['interval']:g}" if isinstance(one, dict) else one for one in values)


def _say(table: "JobTable", models: list["Found"], measured: "Mapping[str, Measured]", times: "Iterable[str]") -> None:
    reruns = _reruns(table)
    if measured:
        session.say("checkpoints as guards measured them, in place of the file's figures:")
    for sentence in _measured_notes(measured):
        session.say(f"  {sentence}")
    for one in models:
        _say_model(table, one, reruns)
    for line in (*times, *FORMULAS):
        session.say(line)


def _say_model(table: "JobTable", one: "Found", reruns: "Reruns") -> None:
    from agent.decide.pricing.worth import value_frontier

    session.say(f"{table.hours:g} h of work on {table.gpus}x {one.gpu}")
    has_units = table.unit is not None or table.units is not None
    options = session.table(
        "option", "as of", "$/h", "expected", *([f"$/{table.unit or 'unit'}"] if has_units else []), "9 in 10 under",
        "with reruns", "hours", "interrupted", "saved every", "late", "notes",
    )  # fmt: skip
    sources: dict[str, int] = {}
    for option in one.options:
        notes = [*_under_limit(option), *option.cited, *option.unknown]
        numbers = [sources.setdefault(note, len(sources) + 1) for note in notes]
        cells = list(_cells(option, reruns))
        if has_units:
            cells.insert(_BEFORE_UNITS, _figure(_per_unit(option, table.units), ".6g"))
        session.add(options, *cells, ",".join(map(str, numbers)))
    side_by_side.show_rows(options)
    for note, number in sources.items():
        session.say(f"  {number}. {note}")
    if has_units and table.units is None:
        session.say(f"dollars per {table.unit} are not known: give --units, their number in {table.hours:g} h of work")
    steps = [value_frontier.as_json(step) for step in one.frontier]
    frontier.say(steps, is_valued=table.value is not None or table.value_per_hour is not None)
    for sentence, names in _by_sentence(one.missing).items():
        session.say(f"not estimated: {names}: {sentence}")
    _say_checkpoints(one.options)


def _by_sentence(options: "Iterable[Missing]") -> dict[str, str]:
    """Return the names of the options that cannot be estimated, by the reason; one market's share its name."""
    strategies: dict[tuple[str, str], list[str]] = {}
    for option in options:
        market, _, strategy = option.name.partition(", ")
        strategies.setdefault((option.sentence, market), []).append(strategy)
    names: dict[str, list[str]] = {}
    for (sentence, market), of_market in strategies.items():
        names.setdefault(sentence, []).append(", ".join(filter(None, (market, *of_market))))
    return {sentence: "; ".join(each) for sentence, each in names.items()}


def _measured_notes(measured: "Mapping[str, Measured]") -> list[str]:
    """Return each measured figure with its observations."""
    names = {"took_seconds": "time to make one", "restore_seconds": "restore", "checkpoint_bytes": "size"}
    figures = {
        name: f"{one.figure / 1e9:.2f} GB" if name == "checkpoint_bytes" else f"{one.figure:.1f} s"
        for name, one in measured.items()
    }
    return [
        f"{names[name]} {figures[name]} (measured; median over {one.voices} owners of {one.hosts} hosts "
        f"with {one.leases} leases)"
        for name, one in sorted(measured.items())
    ]


def _say_checkpoints(options: "Sequence[Estimate]") -> None:
    for option in options:
        if option.young is not None and option.daly is not None:
            best = f"{option.young * 60:.1f} min (Young), {option.daly * 60:.1f} min (Daly)"
            session.say(f"best time between checkpoints, {option.name}: {best}")
        if option.by_age:
            steps = ", ".join(f"{interval * 60:.1f} from {age * 60:.0f} on" for age, interval in option.by_age)
            session.say(f"  by the age of the lease, in minutes: {steps}")


def _under_limit(one: "Estimate") -> list[str]:
    """Return the limit, the expected price and the margin between them; none where the bid is the price."""
    limit, margin, expected = one.limit_dollars_per_hour, one.margin_dollars_per_hour, one.dollars_per_hour
    if limit is None:
        return []
    return [f"limit ${limit:.4f}/h, expected price ${expected:.4f}/h, margin ${margin:.4f}/h"]


def _cells(one: "Estimate", reruns: "Reruns") -> tuple[str, ...]:
    tenure = {"interruptible": "bid", "reserved": "reserved"}.get(one.tenure.value, "on demand")
    tenure = tenure if one.limit_dollars_per_hour is None else "limit"
    least, most = _times(one.dollars, reruns.least), _times(one.dollars, reruns.most)
    again = "" if reruns.most == 1 or least is None else f"{_dollars(least)} - {_dollars(most)}"
    return (
        f"{one.name} ({tenure})",
        one.as_of,
        f"${one.dollars_per_hour:.4f}",
        _dollars(one.dollars) if one.dollars is not None else f"over {_dollars(one.dollars_least)}",
        _dollars(one.dollars_p90),
        again,
        _figure(one.hours, ".1f"),
        _figure(one.interruptions, ".1f"),
        "" if one.interval is None else f"{one.interval * 60:.0f} min",
        "" if one.late is None else f"{one.late:.0%}",
    )


def _dollars(value: float | None) -> str:
    return "?" if value is None else f"${value:,.2f}"


def _figure(value: float | None, how: str) -> str:
    return "?" if value is None else format(value, how)
