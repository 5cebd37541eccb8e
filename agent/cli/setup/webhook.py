"""`gpubid webhook`: register a webhook with a market, and test that a delivery arrives."""

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.shared import exits, session

if TYPE_CHECKING:
    from agent.config.settings import Config, MarketSettings
    from agent.markets.market_record import MarketRecord, Webhooks

app = typer.Typer(no_args_is_help=True, help="Let the market wake the daemon.")


@app.command()
def register(
    url: Annotated[str, typer.Argument(help="Public https address that leads to the daemon's /webhooks/NAME.")],
    secret_file: Annotated[Path, typer.Option(help="A new file for the secret; the market shows it only once.")],
    config: session.ConfigOption = session.DEFAULT_CONFIG,
) -> None:
    """Register a webhook with a market and store its secret in a file of mode 600. The secret is not printed.

    NAME is the market's, such as vast; of several markets that send webhooks the end of the address names one.
    """
    from agent.markets import market_errors

    settings, _ = session.read(config)
    record, webhooks = _sender(settings, url)
    market = settings.market(record.name)
    if market is None or market.is_simulated:
        wanted = f"webhooks need a live [markets.{record.name}]; remove `simulated` there, and name its credential"
        exits.stop(exits.BAD_INPUT, [f"{config}: {wanted}"])
    if secret_file.exists():
        exits.stop(exits.BAD_INPUT, [f"{secret_file} exists; name a new file"])
    _or_stop(lambda: session.secret(market))
    try:
        # Create the file first, because the market shows the secret only once.
        handle = os.open(secret_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        exits.unwritable(secret_file, error)
    try:
        registered = asyncio.run(_register(url, market, webhooks))
    except market_errors.MarketError as error:
        secret_file.unlink()
        exits.stop(exits.FAILED, [str(error)])
    else:
        os.write(handle, registered.encode())
    finally:
        os.close(handle)
    session.say(f"registered; the secret is in {secret_file}")
    session.say(
        "give the file to the daemon as a credential, and write the credential's name in [web] as webhook_credential"
    )


@app.command("test")
def try_out(
    url: Annotated[
        str | None, typer.Argument(help="Where to send the events; by default to the daemon itself.")
    ] = None,
    config: session.ConfigOption = session.DEFAULT_CONFIG,
) -> None:
    """Send a signed test event and one with a wrong signature. The daemon must accept only the first."""
    settings, _ = session.read(config)
    if not settings.listen.webhook_credential:
        exits.stop(
            exits.BAD_INPUT,
            [f"{config}: [web] names no webhook_credential; `gpubid webhook register` makes its secret"],
        )
    record, webhooks = _sender(settings, url or "")
    name = settings.listen.webhook_credential
    secret = _or_stop(lambda: session.named(name))
    good, bad = asyncio.run(_deliver(url or _here(settings, record), secret, webhooks))
    session.say(f"signed: {good}; with a wrong signature: {bad}")
    if good != "HTTP 204" or bad != "HTTP 401":
        raise typer.Exit(exits.FAILED)


def _or_stop(look_up: Callable[[], str]) -> str:
    """Return a key, or end with the sentence of its absence."""
    from agent.systemd import CredentialError

    try:
        return look_up()
    except CredentialError as error:
        exits.stop(exits.BAD_INPUT, [str(error)])


def _sender(config: "Config", url: str) -> "tuple[MarketRecord, Webhooks]":
    """Return the market whose name ends the address; else the first configured one that sends webhooks, or any."""
    from agent.web import webhook_deliveries

    senders = webhook_deliveries.senders()
    used = [sender for sender in senders if config.market(sender[0].name) is not None]
    named = [sender for sender in senders if url.rstrip("/").endswith(webhook_deliveries.path(sender[0]))]
    return (*named, *used, *senders)[0]


def _here(config: "Config", record: "MarketRecord") -> str:
    from agent.web import webhook_deliveries

    listen = config.listen
    name = f"[{listen.host}]" if ":" in listen.host else listen.host
    return f"http://{name}:{listen.port}{webhook_deliveries.path(record)}"


async def _register(url: str, market: "MarketSettings", webhooks: "Webhooks") -> str:
    from agent.clock import SystemClock

    return await webhooks.register(url, market.url, lambda: session.secret(market), SystemClock())


async def _deliver(url: str, secret: str, webhooks: "Webhooks") -> tuple[str, str]:
    from agent.clock import SystemClock

    now = SystemClock().now()
    good, forged = webhooks.trial(secret, now), webhooks.trial(f"{secret} of somebody else", now)
    return await _post(url, good.body, good.headers), await _post(url, forged.body, forged.headers)


async def _post(url: str, raw: bytes, headers: Mapping[str, str]) -> str:
    import aiohttp

    patience = aiohttp.ClientTimeout(total=10)
    try:
        async with (
            aiohttp.ClientSession(timeout=patience) as client,
            client.post(url, data=raw, headers=headers, allow_redirects=False) as answer,
        ):
            return f"HTTP {answer.status}"
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        return f"not reached ({type(error).__name__})"
