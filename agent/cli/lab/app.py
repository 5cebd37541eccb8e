"""The verbs of `gpubid lab`."""

import typer

from agent.cli.lab import bench

app = typer.Typer(no_args_is_help=True, help="Compare and tune strategies on recorded or rehearsed markets.")
app.command()(bench.bench)
