"""`gpubid lab fit`: fit laws of capacity and of rival bids to observations, and show how well they fit."""

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.lab import extra, fit_regimes, running
from agent.cli.shared import exits, session
from agent.config import problems

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.lab.traces.lifetimes import Pool, Rivals
    from agent.lab.traces.lomax import Fitted, Goodness

MOST_EVENTS = 1_000_000
CAVEAT = (
    "the column 'distance' uses the same spells that the figures were fitted to, so its bound is too low; "
    "'later' compares spells of the later half with a law fitted to the earlier half"
)


def fit(
    traces: Annotated[
        list[Path] | None, typer.Argument(help="Trace files or folders, or CSV tables of lifetimes.")
    ] = None,
    ledger: Annotated[Path | None, typer.Option(help="Fit to the observations in this ledger instead.")] = None,
    cap_hours: Annotated[
        float | None,
        typer.Option(min=0.01, help="Tables: the age at which the cloud ends an instance by its own rule."),
    ] = None,
    instances: Annotated[
        int,
        typer.Option(
            min=1,
            help="Regimes: this many instances at once count as capacity; by default the most that a folder shows.",
        ),
    ] = 1,
    toml: Annotated[bool, typer.Option("--toml", help="Print the numbers to paste, as TOML.")] = False,
    as_json: session.JsonOption = False,
) -> None:
    """Fit laws of loss and return, and of rivals' bids, and show how well they fit."""
    extra.need("scipy")
    from agent.ledger.ledger_errors import LedgerError

    if bool(traces) is (ledger is not None):
        exits.stop(exits.BAD_INPUT, ["name traces, tables of lifetimes, or one --ledger FILE"])
    with running.honest():
        try:
            pools, rivals = (_read(traces or [], cap_hours), None) if ledger is None else asyncio.run(_ledger(ledger))
        except LedgerError as error:
            exits.refused(error)
    rows = _fitted(pools)
    if not rows and rivals is None:
        exits.stop(
            exits.FAILED, ["too few ends were seen to fit anything: five of a kind are needed; name more traces"]
        )
    regimes = fit_regimes.fitted(traces or [], instances)
    if as_json:
        fits = [_document(pool, law) for pool, law in rows]
        session.print_json({"fits": fits, "rivals": _plain(rivals), "regimes": fit_regimes.document(regimes)})
        return
    (_print_toml if toml else _show)(rows, rivals)
    if regimes is not None:
        for line in fit_regimes.lines(regimes) if toml else ():
            session.say(line)
        if not toml:
            fit_regimes.show(regimes)


def _read(places: "list[Path]", cap_hours: float | None) -> "list[Pool]":
    from agent.lab.traces import lifetimes

    found: list[Pool] = []
    for place in places:
        if not place.exists():
            exits.stop(exits.BAD_INPUT, [f"{place}: there is no such file or folder"])
        is_table = place.suffix == ".csv"
        found += lifetimes.of_table(place, cap_hours) if is_table else lifetimes.of_traces(place)
    return found


async def _ledger(file: Path) -> "tuple[list[Pool], Rivals | None]":
    from agent.lab.traces import lifetimes
    from agent.ledger.reader import open_reader

    reader = await open_reader(file)
    try:
        events = await reader.events(limit=MOST_EVENTS)
        leases = await reader.leases(limit=MOST_EVENTS)
    finally:
        await reader.close()
    return lifetimes.of_ledger(leases, events), lifetimes.rivals(events)


def _fitted(pools: "Sequence[Pool]") -> "list[tuple[Pool, Fitted]]":
    from agent.lab.traces import lifetimes, lomax

    found = []
    kinds = [of for of in (lifetimes.LOSS, lifetimes.RETURN) if any(pool.of == of for pool in pools)]
    for pool in (*(lifetimes.together(pools, of) for of in kinds), *pools):
        try:
            found.append((pool, lomax.fitted(pool.spells, pool.gap)))
        except ValueError:
            continue  # too few ends for a fit
    return found


def _document(pool: "Pool", law: "Fitted") -> dict[str, Any]:
    return {
        "pool": pool.name,
        "of": pool.of,
        "spells": law.spells,
        "ended": law.ended,
        "hours": law.hours,
        "kappa": law.law.kappa,
        "kappa_error": law.law.error,
        "s_hours": law.law.s,
        "log_likelihood": law.law.log_likelihood,
        "memoryless_log_likelihood": law.memoryless,
        "fitted_on": _plain(law.within),
        "later_half": _plain(law.later),
        "caveat": CAVEAT,
    }


def _plain(value: "Goodness | Rivals | None") -> dict[str, Any] | None:
    return None if value is None else asdict(value)


def _print_toml(rows: "list[tuple[Pool, Fitted]]", rivals: "Rivals | None") -> None:
    for pool, law in rows:
        session.say(f"[{pool.of}.{problems.literal(pool.name)}]  # {law.ended} ends in {law.hours:.0f} h")
        session.say(f"kappa = {law.law.kappa:.3g}")
        session.say(f"s_hours = {law.law.s:.3g}")
    if rivals is not None:
        session.say(f"[rivals]  # {rivals.seen} outbids")
        session.say(f"alpha = {rivals.alpha:.3g}")


def _show(rows: "list[tuple[Pool, Fitted]]", rivals: "Rivals | None") -> None:
    table = session.table(
        "pool", "of", "ended", "hours", "kappa", "s h", "gain ln L", "distance", "(5 %)", "later", "(5 %)"
    )
    for pool, law in rows:
        later = (f"{law.later.distance:.3f}", f"{law.later.bound:.3f}") if law.later else ("", "")
        session.add(
            table, pool.name, pool.of, f"{law.ended} of {law.spells}", f"{law.hours:.0f}",
            f"{law.law.kappa:.3f} +- {law.law.error:.3f}", f"{law.law.s:.3f}",
            f"{law.law.log_likelihood - law.memoryless:+.1f}", f"{law.within.distance:.3f}", f"{law.within.bound:.3f}",
            *later,
        )  # fmt: skip
    session.show(table)
    for pool, law in rows:
        if pool.name == "all pools":
            goodness = law.later or law.within
            which = "later half, law of the earlier half" if law.later else "what it was fitted to"
            session.say(f"ends by age of {pool.of}, seen/expected ({which}): {_ages(goodness)}")
    if rivals is not None:
        session.say(
            f"rivals that outbid us ({rivals.seen}): half were higher by over {rivals.median_share:.1%} of our bid; "
            f"alpha {rivals.alpha:.2f} +- {rivals.error:.2f}, distance {rivals.distance:.3f} (5 %: {rivals.bound:.3f})"
        )
    session.say(f"hazard kappa / (age + s); 'gain ln L' is over one constant rate; {CAVEAT}")


def _ages(goodness: "Goodness") -> str:
    parts = [
        f"{each.since:.2g}+ h {each.seen}/{each.expected:.1f}"
        for each in goodness.bins
        if each.seen or each.expected > 0
    ]
    return ", ".join(parts)
