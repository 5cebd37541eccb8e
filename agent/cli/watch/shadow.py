"""`gpubid shadow`: the decisions and costs on paper of strategies that spend nothing, beside the live ones."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.shared import completion, ledger_questions, session

if TYPE_CHECKING:
    from agent.ledger.reader import Reader

SHOWN = 20


def shadow(
    workload: Annotated[
        str | None,
        typer.Argument(help="A workload or a slot of it; all by default.", autocompletion=completion.workloads),
    ] = None,
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    as_json: session.JsonOption = False,
) -> None:
    """Compare each shadow strategy, which decides only on paper, with the live strategy over the same time."""
    answer = shadows(config, workload)
    if as_json:
        session.print_json(answer)
        return
    _print(answer)


def shadows(config: Path, workload: str | None) -> Any:  # noqa: ANN401 - JSON
    """Return every shadow, or those of one workload, from the daemon or the ledger; or end with a message."""
    name = workload.partition("/")[0] if workload else None
    query = {"workload": name} if name else None
    return ledger_questions.ask(config, "/shadow", lambda _, reader: _answer(reader, name), query, workload=workload)


async def _answer(reader: "Reader", workload: str | None) -> dict[str, Any]:
    from agent.web.reading import shadow_json

    now = await ledger_questions.present(reader)
    return await shadow_json.shown(reader, (await reader.recollection(now)).leases, now, workload)


def _print(answer: dict[str, Any]) -> None:
    if not answer["shadows"]:
        session.say('no workload has a shadow; write for example shadow = ["hedged"] in a workload')
        return
    table = session.table("workload", "strategy", "since", "spent", "useful h", "lost h", "interruptions", "$/useful h")
    for one in answer["shadows"]:
        for name, figures in ((one["strategy"], one["paper"]), ("(live)", one["live"])):
            each = figures["dollars_per_useful_hour"]
            session.add(
                table, one["workload"], name, one["since"][:16], f"${figures['dollars']:.4f}",
                f"{figures['useful_hours']:.2f}", f"{figures['lost_hours']:.2f}", f"{figures['interruptions']}",
                "" if each is None else f"{each:.4f}",
            )  # fmt: skip
    session.show(table)
    for one in answer["shadows"]:
        for decision in one["last"][:SHOWN]:
            who = f"{decision['at'][:19]} {decision['slot']} {one['strategy']}"
            session.say(f"{who} would {decision['kind']}: {decision['sentence']}")
    for rule in answer["rules"]:
        session.say(f"  {rule}")
