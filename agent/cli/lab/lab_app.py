"""The verbs of `gpubid lab`."""

import typer

from agent.cli.lab import bench, check, cross_validate, fit, import_traces, record, report, show, tune, verify

app = typer.Typer(no_args_is_help=True, help="Compare and tune strategies on recorded or rehearsed markets.")
app.command()(bench.bench)
app.command("cross-validate")(cross_validate.cross_validate)
app.command()(fit.fit)
app.command()(report.report)
app.command()(show.show)
app.command()(check.check)
app.command()(tune.tune)
app.command()(verify.verify)
app.command()(record.record)
app.command("import")(import_traces.bring)
