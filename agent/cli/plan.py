"""`gpubid plan`: what the next cycle would do."""

import asyncio

from agent.cli import session, wire


def plan(config: session.ConfigOption = session.DEFAULT_CONFIG, as_json: session.JsonOption = False) -> None:
    """Say what the next cycle would do, and do nothing."""
    from agent.cli.preview import preview
    from agent.decide import explain
    from agent.web import views

    settings, tuned = session.read(config)
    shown = None if session.may_read(settings.ledger) else asyncio.run(wire.get(settings, "/plan"))
    # Somebody who may not read the ledger, nor the keys: the daemon tells what its last cycle decided.
    shown = shown if shown is not None else views.plan(preview(settings, tuned))
    if as_json:
        session.print_json(shown)
        return
    for made in shown["decisions"]:
        session.say(explain.told(made))
    for row in shown["credit"]:
        session.say(row["sentence"])
