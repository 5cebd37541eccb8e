"""`gpubid explain`: the reasons: candidates with their terms, every refusal, the last decisions."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.shared import completion, frontier, last_good, ledger_access, ledger_questions, session, side_by_side
from agent.cli.watch import fleet
from agent.domain import span_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.table import Table

    from agent.config.settings import Config
    from agent.decide.strategy import Tuned
    from agent.domain.record.shadow_account import ShadowDecision
    from agent.ledger.reader import Reader
    from agent.ledger.tables.decisions import RecordedDecision


MOST_REFUSED = 20


def explain(
    workload: Annotated[
        str | None,
        typer.Argument(help="NAME or NAME/SLOT; all workloads by default.", autocompletion=completion.places),
    ] = None,
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    as_json: session.JsonOption = False,
) -> None:
    """Show the reasons of the next cycle's decisions, the last decisions, and the holds of one slot."""
    query = {"workload": workload} if workload else None
    read = last_good.read(config)
    shown = read.asked("/explain", query) if isinstance(read, last_good.Broken) else _shown(*read, workload, query)
    if as_json:
        session.print_json(shown)
        return
    is_slot = workload is not None and workload in {row["slot"] for row in shown["slots"]}
    (_print_slot if is_slot else _print)(shown)


def _shown(
    settings: "Config", tuned: "Mapping[str, Tuned]", workload: str | None, query: dict[str, str] | None
) -> dict[str, Any]:
    from agent.cli.watch.preview import preview
    from agent.web.reading import verb_json

    if workload is not None:
        ledger_questions.name_of(settings, workload)
    # A person who may not read the ledger or lacks a key gets the daemon's last cycle.
    answer = ledger_questions.daemon(settings, "/explain", query, first=not session.has_keys(settings))
    if answer is not None:
        return dict(answer)
    seen = preview(settings, tuned)
    has_none = ledger_access.is_missing(settings)
    decided, weighed, beside = ([], [], []) if has_none else ledger_questions.ledger(settings, _last)
    return verb_json.explained(seen, decided, weighed, workload, beside)


async def _last(
    reader: "Reader",
) -> "tuple[list[RecordedDecision], list[RecordedDecision], list[ShadowDecision]]":
    return await reader.decisions(), await reader.weighed(), await reader.last_shadow_decisions()


def _print(shown: dict[str, Any]) -> None:
    for one in shown["now"]:
        _print_now(one)
    _print_weighed(shown)
    for row in shown["last"]:
        session.say(f"last: {_decided(row)}")
    _print_beside(shown)


def _print_slot(shown: dict[str, Any]) -> None:
    """Print one slot: its lease, its last decision, its holds, and then the reasons of the next cycle."""
    for row in shown["slots"]:
        session.say(_standing(row))
        for decision in shown["last"]:
            session.say(f"  last: {_decided(decision)}")
        for kept in row["kept_by"]:
            session.say(f"  kept by a {fleet.kept_back(kept, shown['at'])}")
        for doubt in row["in_doubt"]:
            session.say(f"  in doubt: {doubt['kind']} {doubt['intent']}")
        if not row["kept_by"] and not row["in_doubt"]:
            session.say("  no hold, no cooldown and no order in doubt keeps it")
    for one in shown["now"]:
        _print_now(one)
    _print_weighed(shown)
    _print_beside(shown)


def _standing(row: dict[str, Any]) -> str:
    if row["lease"] is None:
        return f"{row['slot']}: empty"
    where = f"{row['gpus']}x {row['gpu']} on {row['market']}/{row['host']}"
    rate = f"${row['dollars_per_hour']:.4f}/h"
    return f"{row['slot']}: {row['state']} since {row['since'][:19]}Z, lease {row['lease']}, {where}, {rate}"


def _print_weighed(shown: dict[str, Any]) -> None:
    for row in shown["weighed"]:
        session.say(f"last choice in money: {_decided(row)}")
        side_by_side.show(_options(row["options"]))


def _print_beside(shown: dict[str, Any]) -> None:
    for row in shown["beside"]:
        session.say(
            f"beside, on paper: {row['at'][:19]} {row['slot']} {row['strategy']} {row['kind']}: {row['sentence']}"
        )


def _print_now(one: dict[str, Any]) -> None:
    from agent.decide import explain as explaining

    session.say(f"{one['workload']}: {one['offers_seen']} offers seen")
    if one["value_dollars_per_hour"] is not None:
        share = one["value_share_of_on_demand"]
        key = "value_per_hour" if share is None else f"{share:g} x on_demand"
        session.say(f"  an hour of its work is worth ${one['value_dollars_per_hour']:.4f} ({key})")
    for sentence in _of_markets(one):
        session.say(f"  {sentence}")
    for decision in one["decisions"]:
        session.say(f"  now: {explaining.as_line(decision)}")
        if len(decision["options"]) > 1:
            side_by_side.show(_options(decision["options"]))
    if one["candidates"]:
        side_by_side.show(_candidates(one["candidates"]))
    frontier.say(one["frontier"], is_valued=one["value_dollars_per_hour"] is not None)
    _print_checkpoints(one)
    for refused in one["refused"][:MOST_REFUSED]:
        session.say(f"  refused {refused['code']}: host {refused['host']} {refused['sentence']}")
    if len(one["refused"]) > MOST_REFUSED:
        session.say(f"  {len(one['refused']) - MOST_REFUSED} more refused; --json shows them all")


def _print_checkpoints(one: dict[str, Any]) -> None:
    for row in one["checkpoints"]:
        by_age = ", ".join(f"{each['seconds']} s from {each['age_seconds'] / 60:.0f} min on" for each in row["by_age"])
        session.say(
            f"  checkpoints of {row['slot']} on host {row['host']}: every {row['seconds']} s at "
            f"{row['losses_per_hour']:.3f} losses an hour; by its age {by_age}"
        )
    if one["measured"]:
        session.say(f"  measured by guards: {', '.join(map(_measured, one['measured']))}")
    for row in one["speeds"]:
        share = f"{row['share_of_dlperf']:.0%}"
        session.say(
            f"  measured by guards: host {row['host']} counts as {share} of the DLPerf that its market promises"
        )
    services = [row["sentence"] for row in one["services"]]
    told = (*one["notice"], *one["arrears"], *one["not_sold"], *filter(None, [one["network_volume"]]), *services)
    for sentence in told:
        session.say(f"  {sentence}")


def _measured(row: dict[str, Any]) -> str:
    """Return one measured figure with its observations, and whether it replaces the file's figure."""
    figure = f"{row['median'] / 1e9:.2f} GB" if row["unit"] == "B" else f"{row['median']:.1f} s"
    name = {"took_seconds": "checkpoint", "upload_seconds": "upload", "restore_seconds": "restore"}.get(row["figure"])
    used = ", used" if row["is_used"] else ""
    return f"{name or 'size'} {figure} (median of {row['leases']} leases on {row['hosts']} hosts{used})"


def _why_not(funnel: dict[str, Any]) -> str:
    """Return how many offers of a sample meet each requirement, the sample's age, and which requirement to drop."""
    sentence = f"asked {span_text.of(timedelta(seconds=funnel['age_seconds']))} ago, a sample: {funnel['sentence']}"
    if funnel["loosen_key"] is None or funnel["fits"]:
        return sentence
    price = f"${funnel['loosen_dollars_per_hour']:.4f}/h"
    return f"{sentence}; without {funnel['loosen_key']} {funnel['loosen_fits']} would fit, from {price}"


def _of_markets(one: dict[str, Any]) -> "Iterator[str]":
    """Yield what the markets have for a workload, and what clouds ask for like GPUs."""
    if one["funnel"]["sampled_at"]:
        yield _why_not(one["funnel"])
    if one["clouds"]:
        yield _on_clouds(one["clouds"])


def _on_clouds(rows: list[dict[str, Any]]) -> str:
    """Return the lowest prices of clouds: what the server's last offers ask, or what was published, with its date."""
    if rows[0]["dated"] is None:
        seen = min(datetime.fromisoformat(row["seen_at"]) for row in rows)
        return f"on clouds, by the server's offers at {seen:%Y-%m-%d %H:%M} UTC: {', '.join(map(_cloud_price, rows))}"
    said = ", ".join(f"{_cloud_price(row)} in {row['dated']}" for row in rows)
    return f"on clouds, as published: {said}"


def _cloud_price(row: dict[str, Any]) -> str:
    tenure = "on demand" if row["tenure"] == "on_demand" else "spot"
    return f"{row['cloud']} {row['gpus']}x {row['gpu']} ${row['dollars_per_hour']:.4f}/h {tenure}"


def _decided(row: dict[str, Any]) -> str:
    digest = f"{row['strategy']} {row['params_digest'][:12]}" if row["strategy"] else ""
    at = f"{datetime.fromisoformat(row['at']):%Y-%m-%d %H:%M:%S}"
    return f"{at} {row['slot']} {row['kind']}, {row['code']}: {row['sentence']} [{digest}]"


def _named(term: dict[str, Any]) -> str:
    return f"{term['name']} ({term['unit']})" if term["unit"] else str(term["name"])


def _options(options: list[dict[str, Any]]) -> "Table":
    """Return the compared options side by side, each with its dollars and terms."""
    table = session.table("term", *(option["name"] for option in options))
    session.add(table, "dollars", *(f"${option['dollars']:.4f}" for option in options))
    terms = [{_named(term): term["figure"] for term in way["terms"]} for way in options]
    for name in dict.fromkeys(name for way in terms for name in way):
        session.add(table, name, *(f"{way[name]:.4f}" if name in way else "" for way in terms))
    return table


def _candidates(rows: list[dict[str, Any]]) -> "Table":
    """Return the terms of the best candidates side by side, best first."""
    table = session.table("term", *(f"{row['gpu']} on {row['host']}" for row in rows))
    session.add(table, "tenure", *(row["tenure"] for row in rows))
    session.add(table, "price", *(f"${row['dollars_per_hour']:.4f}/h" for row in rows))
    if any(row.get("limit_dollars_per_hour") is not None for row in rows):
        for name in ("limit", "margin"):
            session.add(table, name, *(_rate(row[f"{name}_dollars_per_hour"]) for row in rows))
    session.add(table, "reliability", *(f"{row['reliability']:.4f}" for row in rows))
    # Only some candidates may have a term, such as a measured speed.
    terms = [{f"{term['name']} ({term['unit']})": term["figure"] for term in row["terms"]} for row in rows]
    for name in dict.fromkeys(name for row in terms for name in row):
        session.add(table, name, *(f"{row[name]:.4f}" if name in row else "" for row in terms))
    return table


def _rate(dollars: float | None) -> str:
    return "" if dollars is None else f"${dollars:.4f}/h"
