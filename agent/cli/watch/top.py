"""`gpubid top`: the feed on the whole terminal, and keys for orders."""

import os

import typer

from agent.cli.shared import exits, last_good, session


def top(config: session.ConfigOption = session.DEFAULT_CONFIG) -> None:
    """Show slots, money, alerts and events live on the terminal; keys give orders after a confirmation."""
    from agent.cli.watch import feed_client
    from agent.cli.watch.top_screen import Top

    read = last_good.read(config)
    place = read.place if isinstance(read, last_good.Broken) else read[0]
    if not session.is_terminal():
        exits.stop(exits.BAD_INPUT, ["this is no terminal: use `gpubid fleet --watch`"])
    # Without this, Textual shows animations, which are slow over ssh.
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    shown = Top(feed_client.of(place))
    shown.run()
    if shown.trouble:
        exits.stop(exits.FAILED, [shown.trouble])
    if shown.return_code:
        raise typer.Exit(exits.FAILED)
