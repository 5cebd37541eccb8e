"""`gpubid explain`: why, in terms: candidates with their reckoning, every refusal, the last decisions."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli import exits, session, wire

if TYPE_CHECKING:
    from rich.table import Table

    from agent.config.settings import Config
    from agent.decide.explain import Explanation
    from agent.ledger.decisions import RecordedDecision


MOST_REFUSED = 20


def explain(
    workload: Annotated[str | None, typer.Argument(help="A workload's name; all of them by default.")] = None,
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    as_json: session.JsonOption = False,
) -> None:
    """Say why the next cycle would do what it would, and what was decided last."""
    from agent.cli.preview import preview
    from agent.decide import explain as explaining
    from agent.ledger.errors import LedgerError

    settings, tuned = session.read(config)
    names = [work.name for work in settings.workloads]
    if workload is not None and workload not in names:
        exits.stop(exits.BAD_INPUT, [f"there is no workload {workload!r}; there is {', '.join(names)}"])
    if not session.may_read(settings.ledger):
        shown = asyncio.run(wire.get(settings, "/explain", {"workload": workload} if workload else None))
        if shown is not None:
            # Somebody who may not read the ledger, nor the keys: the daemon tells of its last cycle.
            session.print_json(shown)
            return
    seen = preview(settings, tuned)
    chosen = [work for work in settings.workloads if workload in {None, work.name}]
    told = [explaining.explain(seen.fleet, seen.plan, work) for work in chosen]
    try:
        last = asyncio.run(_last(settings))
    except LedgerError as error:
        exits.refused(error)
    if as_json:
        decided = [_decided(made) for made in last if workload in {None, made.slot.workload}]
        session.print_json({"now": _explained(told), "last": decided})
        return
    _print(told, [made for made in last if workload in {None, made.slot.workload}])


def _explained(told: "list[Explanation]") -> list[dict[str, Any]]:
    from agent.decide import explain as explaining

    return [explaining.explanation_json(one) for one in told]


async def _last(config: "Config") -> "list[RecordedDecision]":
    from agent.ledger.reader import open_reader

    if not config.ledger.exists():
        return []
    reader = await open_reader(config.ledger)
    try:
        return await reader.decisions()
    finally:
        await reader.close()


def _decided(made: "RecordedDecision") -> dict[str, Any]:
    return {
        "at": made.at.isoformat(),
        "slot": str(made.slot),
        "kind": made.kind,
        "code": made.reason.code,
        "sentence": made.reason.sentence,
        "strategy": made.strategy,
        "strategy_file": made.strategy_file,
        "params_digest": made.params_digest,
        "options": [{"name": option.name, "dollars": option.dollars} for option in made.reason.options],
    }


def _print(told: "list[Explanation]", last: "list[RecordedDecision]") -> None:
    from agent.decide import explain as explaining

    for one in told:
        session.say(f"{one.workload}: {one.offers} offers seen")
        for made in one.decisions:
            session.say(f"  now: {explaining.sentence(made)}")
        if one.candidates:
            session.show(_candidates(one))
        for refused in one.refused[:MOST_REFUSED]:
            session.say(f"  refused {refused.why.code}: host {refused.offer.host_id} {refused.why.sentence}")
        if len(one.refused) > MOST_REFUSED:
            session.say(f"  {len(one.refused) - MOST_REFUSED} more refused; --json names them all")
    for row in last:
        digest = f"{row.strategy} {row.params_digest[:12]}" if row.strategy else ""
        why = f"{row.reason.code}: {row.reason.sentence}"
        session.say(f"last: {row.at:%Y-%m-%d %H:%M:%S} {row.slot} {row.kind}, {why} [{digest}]")


def _candidates(one: "Explanation") -> "Table":
    """Return the terms of the best candidates side by side, best first."""
    table = session.table("term", *(f"{row.offer.gpu} on {row.offer.host_id}" for row in one.candidates))
    session.add(table, "tenure", *(row.way.tenure.value for row in one.candidates))
    session.add(table, "price", *(str(row.way.rate) for row in one.candidates))
    session.add(table, "reliability", *(f"{row.offer.reliability:.4f}" for row in one.candidates))
    for rows in zip(*(row.reckoning.terms() for row in one.candidates), strict=True):
        session.add(
            table,
            f"{rows[0].name} [{rows[0].unit}]".replace("[", "(").replace("]", ")"),
            *(f"{term.figure:.4f}" for term in rows),
        )
    return table
