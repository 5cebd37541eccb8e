"""`gpubid strategy learned` and `reset`: show and delete what gpubid learned about pools, hosts and rivals."""

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.ordering import order_sending
from agent.cli.shared import exits, ledger_questions, session, side_by_side
from agent.domain.work.order import Order

if TYPE_CHECKING:
    from agent.config.settings import Config
    from agent.ledger.reader import Reader

UNTIL_WATCHED = 0.5
"""Hours watched before a pool's own rate is shown instead of the rate of other pools."""


def learned(
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    export: Annotated[Path | None, typer.Option(help="Write everything to a new file.")] = None,
    as_json: session.JsonOption = False,
) -> None:
    """Show what gpubid learned about pools, hosts, their owners, the market and rival bids."""
    shown = ledger_questions.ask(config, "/learned", _learned)
    if export is not None:
        _export(shown, export)
    if as_json:
        session.print_json(shown)
        return
    for market in shown["markets"]:
        _show(market)
    is_known = bool(shown["markets"])
    if is_known:
        _show_rivals(shown["rivals"])
    session.say(
        f"counts of hosts lose half their weight in {shown['half_life_days']} days"
        if is_known
        else "nothing has been learned yet"
    )


def reset(
    market: Annotated[str | None, typer.Option(help="Forget only what was learned about this market.")] = None,
    pool: Annotated[str | None, typer.Option(help="Forget only this pool, named as in `learned`.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    as_json: session.JsonOption = False,
) -> None:
    """Forget what was learned about a pool, about a market and its hosts, or all. An event records who did it."""
    if market is not None and pool is not None:
        exits.stop(exits.BAD_INPUT, ["name --market or --pool, not both"])
    target = f"pool:{pool}" if pool is not None else f"market:{market}" if market is not None else "all"
    question = f"Forget what was learned about {target}? Strategies start again from their shipped numbers"
    if not yes and not typer.confirm(question):
        exits.stop(exits.FAILED, ["nothing was forgotten"])
    order_sending.give([Order("reset", target)], config, as_json=as_json)


async def _learned(_: "Config", reader: "Reader") -> dict[str, Any]:
    from agent.web.reading import learned_json as views

    now, notices, checks = await ledger_questions.present(reader), await reader.notices(), await reader.host_checks()
    return views.learned(await reader.hosts(), await reader.capacity(), now, notices, checks)


def _export(shown: dict[str, Any], file: Path) -> None:
    try:
        with file.open("x") as opened:
            opened.write(json.dumps(shown, indent=1) + "\n")
    except FileExistsError:
        exits.stop(exits.BAD_INPUT, [f"{file} exists; name another"])
    except OSError as error:
        exits.stop(exits.FAILED, [f"{file} cannot be written ({error.strerror}); name another"])


def _show_rivals(law: dict[str, Any]) -> None:
    shares = ", ".join(f"{step['losing_share']:.0%} at +{step['headroom']:.0%}" for step in law["steps"][1:])
    session.say(
        f"rivals: on-demand renters cause {law['displaced_share']:.0%} of the losses of a bid at the floor, "
        f"learned from {law['outbids']:.1f} outbids with a known price and {law['displaced']:.1f} on-demand rents"
    )
    session.say(f"losses that remain with a bid above the floor: {shares}")


def _show(market: dict[str, Any]) -> None:
    session.say(
        f"{market['market']}: {market['losses_per_hour']:.3f} losses to the market an hour, "
        f"learned from {market['interruptible_hours']:.1f} interruptible hours"
    )
    session.say(market["notice"]["sentence"])
    if market["pools"]:
        _show_pools(market["pools"])
    if market["hosts"]:
        _show_hosts(market["hosts"])
    if market["speeds"]:
        _show_speeds(market["speeds"])


def _show_pools(pools: list[dict[str, Any]]) -> None:
    table = session.table(
        "pool", "capacity", "since", "looked", "turns/h", "lost/h seen", "back/h seen", "x losses", "x returns"
    )
    for row in pools:
        since = datetime.fromisoformat(row["since"])
        session.add(
            table, row["pool"], "there" if row["is_there"] else "away",
            f"{since:%m-%d %H:%M}{'' if row['is_begun'] else ' or before'}", f"{row['looks']}",
            f"{row['turns_per_hour']:.3f}", _rate(row["there"]), _rate(row["away"]),
            f"{row['loss_factor']:.2f}", f"{row['return_factor']:.2f}",
        )  # fmt: skip
    side_by_side.show_two_lined(table, ("pool", "since", "looked", "x returns", "x losses"))


def _show_speeds(speeds: list[dict[str, Any]]) -> None:
    table = session.table(
        "host", "GPU", "checks", "TFLOPS", "to GPU GB/s", "from GPU GB/s", "disk MB/s", "PCIe", "slowed by", "of DLPerf"
    )
    for row in speeds:
        rates = (row["matmul_tflops"], row["copy_to_gpu_gbps"], row["copy_from_gpu_gbps"], row["disk_write_mbps"])
        figures = ["" if each is None else f"{each:.1f}" for each in rates]
        share = row["share_of_dlperf"]
        session.add(
            table, row["host"], row["gpu"], f"{row['checks']}", *figures, _link(row), row["slowed_by"] or "",
            "" if share is None else f"{share:.0%}",
        )  # fmt: skip
    side_by_side.show_two_lined(table, ("slowed by", "PCIe", "checks", "disk MB/s"))


def _link(row: dict[str, Any]) -> str:
    """Return the slowest link of a host's GPUs under load, and its share of the most that it could have."""
    if row["pcie_generation"] is None or row["pcie_width"] is None:
        return ""
    share = "" if row["pcie_share"] is None or row["pcie_share"] >= 1.0 else f" ({row['pcie_share']:.0%})"
    return f"{row['pcie_generation']}.0 x{row['pcie_width']}{share}"


def _rate(counts: dict[str, Any]) -> str:
    hours = sum(counts["hours"])
    return f"{sum(counts['ends']) / hours:.3f} ({hours:.0f} h)" if hours >= UNTIL_WATCHED else ""


def _show_hosts(hosts: list[dict[str, Any]]) -> None:
    table = session.table("host", "owner", "ran", "lost", "failed", "losses/h", "starts", "Mb/s")
    for row in hosts:
        speed = f"{row['loaded_mbps']:.0f}" if row["loaded_mbps"] is not None else ""
        session.add(
            table, row["host"], row["owner"], f"{row['running_hours']:.1f} h", f"{row['losses_to_market']:.1f}",
            f"{row['host_failures']:.1f}", f"{row['losses_per_hour']:.3f}", f"{row['start_success']:.0%}", speed,
        )  # fmt: skip
    session.show(table)
