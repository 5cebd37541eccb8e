"""`gpubid plan`: the decisions of the next cycle."""

from agent.cli.shared import last_good, ledger_questions, session


def plan(config: session.ConfigOption = session.DEFAULT_CONFIG, as_json: session.JsonOption = False) -> None:
    """Show what the next cycle would do, and do nothing."""
    from agent.cli.watch.preview import preview
    from agent.decide import explain
    from agent.web.reading import verb_json

    read = last_good.read(config)
    if isinstance(read, last_good.Broken):
        shown = read.asked("/plan")
    else:
        # A person who may not read the ledger or lacks a key gets the decisions of the daemon's last cycle.
        shown = ledger_questions.daemon(read[0], "/plan", first=not session.has_keys(read[0]))
        shown = shown if shown is not None else verb_json.plan(preview(*read))
    if as_json:
        session.print_json(shown)
        return
    for decision in shown["decisions"]:
        session.say(explain.as_line(decision))
    for row in shown["credit"]:
        session.say(row["sentence"])
