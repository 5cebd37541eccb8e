"""`gpubid notify test`: send one message through each channel of [notify] and report which arrived."""

import asyncio
from typing import TYPE_CHECKING

import typer

from agent.cli.shared import exits, session

if TYPE_CHECKING:
    from agent.config.settings import Config

app = typer.Typer(no_args_is_help=True, help="Send notifications.")


@app.callback()
def _group() -> None:
    """Keep `test` as a separate word: typer would merge a group with only one verb."""


@app.command("test")
def try_out(config: session.ConfigOption = session.DEFAULT_CONFIG) -> None:
    """Send a test message through every configured channel. Exit 1 if one did not arrive."""
    settings, _ = session.read(config)
    if not settings.notify.channels:
        exits.stop(exits.BAD_INPUT, [f"{config}: [notify] sets up no channel: write webhook, apprise or hook"])
    if not asyncio.run(_test(settings)):
        raise typer.Exit(exits.FAILED)


async def _test(config: "Config") -> bool:
    from agent.clock import SystemClock
    from agent.config.notify_settings import Severity
    from agent.notify import channels
    from agent.notify.incidents import Message
    from agent.systemd import CredentialError

    clock = SystemClock()
    now = clock.now()
    is_good = True
    for name, channel in channels.channels(config.notify, session.named, clock).items():
        text = "This is a test: nothing happened."
        message = Message(f"{name}/test/{now:%s}", name, Severity.NOTICE, "gpubid: test", text, now)
        try:
            await channel.deliver(message)
        except (channels.UndeliveredError, CredentialError) as error:
            is_good = False
            session.say(f"{name}: {error}")
        else:
            session.say(f"{name}: delivered")
    return is_good
