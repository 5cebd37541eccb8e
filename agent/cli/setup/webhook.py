"""`gpubid webhook`: register a webhook with Vast.ai, and test that a delivery arrives."""

import asyncio
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.shared import exits, session

if TYPE_CHECKING:
    from agent.config.settings import Config, MarketSettings

app = typer.Typer(no_args_is_help=True, help="Let the market wake the daemon.")


@app.command()
def register(
    url: Annotated[str, typer.Argument(help="Public https address that leads to the daemon's /webhooks/vast.")],
    secret_file: Annotated[Path, typer.Option(help="A new file for the secret; the market shows it only once.")],
    config: session.ConfigOption = session.DEFAULT_CONFIG,
) -> None:
    """Register a webhook with Vast.ai and store its secret in a file of mode 600. The secret is not printed."""
    from agent.markets import market_errors

    settings, _ = session.read(config)
    market = settings.market("vast")
    if market is None or market.is_simulated:
        exits.stop(
            exits.BAD_INPUT,
            [f"{config}: webhooks need a live [markets.vast]; remove `simulated` there, and name its credential"],
        )
    if secret_file.exists():
        exits.stop(exits.BAD_INPUT, [f"{secret_file} exists; name a new file"])
    try:
        # Create the file first, because the market shows the secret only once.
        handle = os.open(secret_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        exits.unwritable(secret_file, error)
    try:
        registered = asyncio.run(_register(url, market))
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
    good, bad = asyncio.run(_deliver(url or _here(settings), session.named(settings.listen.webhook_credential)))
    session.say(f"signed: {good}; with a wrong signature: {bad}")
    if good != "HTTP 204" or bad != "HTTP 401":
        raise typer.Exit(exits.FAILED)


def _here(config: "Config") -> str:
    from agent.web.webhook_deliveries import PATH

    listen = config.listen
    name = f"[{listen.host}]" if ":" in listen.host else listen.host
    return f"http://{name}:{listen.port}{PATH}"


async def _register(url: str, market: "MarketSettings") -> str:
    from agent.clock import SystemClock
    from agent.markets.vast import webhooks

    return await webhooks.register(url, market.url, lambda: session.secret(market), SystemClock())


async def _deliver(url: str, secret: str) -> tuple[str, str]:
    from agent.clock import SystemClock
    from agent.web import webhook_deliveries

    now = SystemClock().now()
    body = {"event_id": f"test-{now.timestamp()}", "notif_type": "client:test", "message": "a test of gpubid"}
    raw = json.dumps(body | {"timestamp": now.timestamp(), "user_id": 0, "subject": "test"}).encode()
    headers = webhook_deliveries.signed(raw, now, secret)
    forged = headers | {"X-Vast-Signature-256": "sha256=" + "0" * 64}
    return await _post(url, raw, headers), await _post(url, raw, forged)


async def _post(url: str, raw: bytes, headers: dict[str, str]) -> str:
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
