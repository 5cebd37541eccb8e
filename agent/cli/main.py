"""The command line: one file per verb; each verb imports heavy libraries only when it runs."""

import os
import sys

import typer

from agent import __version__
from agent.cli import run, strategy
from agent.cli.lab import app as lab
from agent.cli.ordering import kill, orders, reload
from agent.cli.rehearsing import estimate, rehearse, replay, simulate
from agent.cli.setup import check, deploy, doctor, init, notify, webhook
from agent.cli.shared import exits
from agent.cli.watch import container, explain, fleet, ledger, plan, report, shadow, spend, status

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Keeps GPU workloads alive on interruptible marketplace capacity, and proves what it spent.",
    epilog="Exit codes: 0 done, 1 it could not be done, 2 bad input and nothing changed, 3 the ledger is damaged.",
)
app.command()(run.run)
app.command()(rehearse.rehearse)
app.command()(init.init)
app.command()(check.check)
app.command()(doctor.doctor)
app.command()(report.report)
app.command()(plan.plan)
app.command()(explain.explain)
app.command()(shadow.shadow)
app.command()(replay.replay)
app.command()(estimate.estimate)
app.command()(status.status)
app.command()(reload.reload)
app.command()(fleet.fleet)
app.add_typer(ledger.app, name="ledger")
app.add_typer(strategy.app, name="strategy")
app.add_typer(deploy.app, name="deploy")
app.add_typer(notify.app, name="notify")
app.add_typer(webhook.app, name="webhook")
app.add_typer(lab.app, name="lab")
for verb in (
    orders.drain,
    orders.pause,
    orders.resume,
    orders.release,
    orders.adopt,
    orders.lock,
    orders.unlock,
    orders.done,
    orders.progress,
    kill.kill,
):
    app.command()(verb)
app.command()(spend.spend)
app.command()(spend.savings)
app.command()(container.ssh)
app.command()(container.logs)
app.command()(simulate.simulate)


@app.callback(invoke_without_command=True)
def version(*, shown: bool = typer.Option(False, "--version", help="Print the version and end.")) -> None:
    """Print the version."""
    if shown:
        sys.stdout.write(f"gpubid {__version__}\n")
        raise typer.Exit(exits.DONE)


def main() -> None:
    """Run the command line."""
    try:
        app()
    finally:
        _let_go_of_output()


def _let_go_of_output() -> None:
    """Flush the output; a closed reader (`| head`) is not reported as an error."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
