"""The command line: one file per verb; each verb imports heavy libraries only when it runs."""

import errno
import os
import signal
import sys
from typing import NoReturn

import typer

from agent import __version__
from agent.cli import run, strategy
from agent.cli.lab import lab_app as lab
from agent.cli.ordering import kill, orders, reload
from agent.cli.rehearsing import estimate, rehearse, replay, simulate
from agent.cli.setup import check, deploy, doctor, guard, init, notify, webhook
from agent.cli.shared import exits, stray_path, verb_hints
from agent.cli.tune_loop import tune
from agent.cli.watch import bug_report, container, explain, fleet, ledger, plan, shadow, spend, status, top

LOOK, ACT, MONEY, TUNE, SET_UP = "Look", "Act", "Money", "Tune", "Set up"
VERBS = {
    LOOK: (status.status, fleet.fleet, top.top, plan.plan, explain.explain, container.logs, container.ssh),
    ACT: (
        run.run,
        reload.reload,
        orders.drain,
        orders.pause,
        orders.resume,
        orders.release,
        orders.adopt,
        orders.lock,
        orders.unlock,
        orders.done,
        orders.progress,
        orders.retry,
        orders.absent,
        orders.demand,
        kill.kill,
    ),
    MONEY: (spend.spend, spend.savings, estimate.estimate),
    TUNE: (tune.tune, rehearse.rehearse, simulate.simulate, shadow.shadow, replay.replay),
    SET_UP: (init.init, check.check, doctor.doctor),
}
"""The verbs by task, in the order of `--help`. In each group, verbs with verbs of their own come last."""


app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Keeps GPU workloads alive on interruptible marketplace capacity, and proves what it spent.",
    epilog="Exit codes: 0 done, 1 it could not be done, 2 bad input and nothing changed, 3 the ledger is damaged.",
)
for shown_in, verbs in VERBS.items():
    for verb in verbs:
        app.command(rich_help_panel=shown_in)(verb)
app.command("bug-report", rich_help_panel=SET_UP)(bug_report.bug_report)
app.command("report", hidden=True)(bug_report.bug_report)
app.add_typer(ledger.app, name="ledger", rich_help_panel=LOOK)
app.add_typer(strategy.app, name="strategy", rich_help_panel=TUNE)
app.add_typer(lab.app, name="lab", rich_help_panel=TUNE)
app.add_typer(deploy.app, name="deploy", rich_help_panel=SET_UP)
app.add_typer(guard.app, name="guard", rich_help_panel=SET_UP)
app.add_typer(notify.app, name="notify", rich_help_panel=SET_UP)
app.add_typer(webhook.app, name="webhook", rich_help_panel=SET_UP)
stray_path.watch_for(app)

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""The errors of a full disk, which any file or the output may be on."""


@app.callback(invoke_without_command=True)
def version(*, shown: bool = typer.Option(False, "--version", help="Print the version and end.")) -> None:
    """Print the version."""
    # The entry took Ctrl-C away while it loaded; from here on a verb may have something to end.
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if shown:
        sys.stdout.write(f"gpubid {__version__}\n")
        raise typer.Exit(exits.DONE)


def main() -> None:
    """Run the command line."""
    verb_hints.refuse(sys.argv[1:])
    try:
        app()
    except OSError as error:
        if error.errno not in _FULL:
            raise
        _discard_output()
        _stop_full(error)
    finally:
        _let_go_of_output()


def _let_go_of_output() -> None:
    """Flush the output. A closed reader (`| head`) is no error."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
    except OSError as error:
        _discard_output()
        _stop_full(error)


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _stop_full(error: OSError) -> NoReturn:
    name = error.filename or "the output"
    sys.stderr.write(f"gpubid: {name} cannot be written ({error.strerror}): free space there, then type it again\n")
    sys.exit(exits.FAILED)
