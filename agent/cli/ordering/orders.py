"""Orders of a person: drain, pause, resume, release, adopt, lock, unlock, done, progress, retry, absent, demand."""

import math
from datetime import timedelta
from typing import Annotated

import typer

from agent.cli.ordering import confirmation, kill, order_sending
from agent.cli.shared import completion, exits, instants, session
from agent.domain.record.hold import EVERYTHING
from agent.domain.work.order import Order

Target = Annotated[
    str,
    typer.Argument(
        help="NAME, NAME/SLOT, a lease or instance id, host:MARKET/ID, owner:MARKET/ID or market:NAME.",
        autocompletion=completion.places,
    ),
]


def drain(
    target: Target,
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    yes: confirmation.YesOption = False,
    as_json: session.JsonOption = False,
) -> None:
    """Rent nothing more for the target. Its leases continue until they end. `resume` ends the drain."""
    orders = [Order("drain", target)]
    order_sending.give(orders, config, as_json=as_json, yes=yes)


def pause(
    target: Target,
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    yes: confirmation.YesOption = False,
    as_json: session.JsonOption = False,
) -> None:
    """Stop the target's instances and keep their disks until `resume`. Disks still bill."""
    orders = [Order("pause", target)]
    order_sending.give(orders, config, as_json=as_json, yes=yes)


def resume(
    target: Annotated[
        str | None,
        typer.Argument(
            help="As for `pause`; without a target, an earlier kill is lifted.", autocompletion=completion.places
        ),
    ] = None,
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    as_json: session.JsonOption = False,
) -> None:
    """End a pause, a drain, a hold or a `done`. Without a target, end an earlier `kill`.

    What is done stays done while something else holds it; the tasks of an array run again one by one.
    """
    if target is None or target == str(EVERYTHING):
        kill.kill(None, config, keep_disks=False, lift=True, as_json=as_json)
        return
    order_sending.give([Order("resume", target)], config, as_json=as_json)


def release(
    targets: Annotated[
        list[str],
        typer.Argument(
            help="Lease or instance ids, NAME, NAME/SLOT, host:MARKET/ID, owner:MARKET/ID or market:NAME.",
            autocompletion=completion.places,
        ),
    ],
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    yes: confirmation.YesOption = False,
    is_gone: Annotated[
        bool, typer.Option("--gone", help="Declare that nothing of it is left on the market. Look there first.")
    ] = False,
    as_json: session.JsonOption = False,
) -> None:
    """End leases for good, with their disks. The daemon fills a slot again if the configuration still has it."""
    orders = [Order("release", target, is_gone=is_gone) for target in targets]
    order_sending.give(orders, config, as_json=as_json, yes=yes)


def adopt(
    target: Annotated[str, typer.Argument(help="A held lease: its id or its instance's id.")],
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    into: Annotated[str, typer.Option(help="NAME/SLOT to adopt it into; by default the slot in its label.")] = "",
    as_json: session.JsonOption = False,
) -> None:
    """Put a held orphan into its empty slot."""
    order_sending.give([Order("adopt", target, into=into)], config, as_json=as_json)


def lock(
    target: Target,
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    span: Annotated[
        str,
        typer.Option(
            "--for", metavar="TIME", help="A duration (90m, 2h) or an end (a day); without it, until `unlock`."
        ),
    ] = "",
    as_json: session.JsonOption = False,
) -> None:
    """Use the target for nothing new: no rent, no start, no higher bid. Running leases continue."""
    order_sending.give([Order("lock", target, _span(span))], config, as_json=as_json)


def unlock(
    target: Annotated[str, typer.Argument(help="A locked target, or a cooldown as `gpubid fleet` shows it.")],
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    as_json: session.JsonOption = False,
) -> None:
    """End a lock, or a cooldown that gpubid began."""
    order_sending.give([Order("unlock", target)], config, as_json=as_json)


def done(
    target: Annotated[
        str,
        typer.Argument(
            help="A batch workload, a NAME/SLOT of it, or one of its leases.", autocompletion=completion.places
        ),
    ],
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    yes: confirmation.YesOption = False,
    as_json: session.JsonOption = False,
) -> None:
    """Mark a batch as finished: release it and never fill it again. At a terminal it asks first."""
    order_sending.give([Order("done", target)], config, as_json=as_json, yes=yes)


def progress(
    workload: Annotated[
        str, typer.Argument(help="A workload with a deadline, or a slot of it.", autocompletion=completion.workloads)
    ],
    hours: Annotated[float, typer.Argument(help="Hours of work that are done, on the reference GPU.")],
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    as_json: session.JsonOption = False,
) -> None:
    """Report the progress of a workload with a deadline. A later report by the workload itself replaces this one."""
    if not math.isfinite(hours) or hours < 0:
        exits.stop(exits.BAD_INPUT, ["HOURS: must be a finite number from 0, such as 1.5"])
    order_sending.give([Order("progress", workload, hours=hours)], config, as_json=as_json)


def retry(
    target: Annotated[
        str, typer.Argument(help="A workload with a guard, or a NAME/SLOT of it.", autocompletion=completion.places)
    ],
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    as_json: session.JsonOption = False,
) -> None:
    """Do the work again from the beginning: slots start without a checkpoint. Their holds and `done` end."""
    order_sending.give([Order("retry", target)], config, as_json=as_json)


def absent(
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    until: Annotated[
        str,
        typer.Option("--until", metavar="TIME", help="How long the daemon will be away (90m, 2h), or the end (a day)."),
    ] = "",
    is_over: Annotated[bool, typer.Option("--end", help="End an announced absence.")] = False,
    as_json: session.JsonOption = False,
) -> None:
    """Announce an absence of the daemon: no dead man's switch fires before its end, and running work continues."""
    if bool(until) is is_over:
        exits.stop(exits.BAD_INPUT, ["write either --until TIME, for example --until 12h, or --end"])
    span = instants.ahead("--until", until) if until else None
    order_sending.give([Order("absent", str(EVERYTHING), span)], config, as_json=as_json)


def demand(
    workload: Annotated[str, typer.Argument(help="A workload with a demand.", autocompletion=completion.places)],
    slots: Annotated[int | None, typer.Argument(min=0, help="The wanted number of slots.")] = None,
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    lasts: Annotated[str, typer.Option("--for", metavar="SPAN", help="How long the number counts: 90m, 2h, 1d.")] = "",
    is_over: Annotated[
        bool, typer.Option("--end", help="End the number set by hand: the answers of the demand count again.")
    ] = False,
    as_json: session.JsonOption = False,
) -> None:
    """Set the wanted number of slots of a workload by hand, for a time. The answers of its demand do not count then."""
    if is_over is (slots is not None) or bool(lasts) is not (slots is not None):
        exits.stop(exits.BAD_INPUT, ["write NAME N --for SPAN, for example workers 5 --for 1h, or NAME --end"])
    order_sending.give([Order("demand", workload, _span(lasts), slots=slots)], config, as_json=as_json)


def _span(text: str) -> timedelta | None:
    return instants.ahead("--for", text) if text else None
