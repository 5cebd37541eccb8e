"""One dry cycle on a copy of the ledger. It shows the next decisions, writes nothing and takes no lock."""

import asyncio
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from agent.app import App
from agent.cli.shared import exits, ledger_access, session
from agent.config.settings import Config
from agent.cycle import Pass
from agent.decide.strategy import Tuned
from agent.ledger.file import backup, ledger_check, migrate
from agent.ledger.ledger_errors import LedgerError
from agent.systemd import CredentialError


def preview(config: Config, tuned: Mapping[str, Tuned]) -> Pass:
    """Return the fleet and the decisions of a cycle, or end with a message."""
    session.log_quietly()
    try:
        with session.waiting("asking the market"):
            seen = asyncio.run(_dry_cycle(config, tuned))
    except CredentialError as error:
        exits.stop(exits.BAD_INPUT, [str(error)])
    except LedgerError as error:
        exits.refused(error)
    if not any(view.is_fresh for view in seen.fleet.markets.values()):
        why = [f"{name}: {view.trouble or 'no answer'}" for name, view in seen.fleet.markets.items()]
        exits.stop(exits.FAILED, ["no market could be read; `gpubid doctor` checks each", *why])
    return seen


async def _dry_cycle(config: Config, tuned: Mapping[str, Tuned]) -> Pass:
    with tempfile.TemporaryDirectory(prefix="gpubid-plan-") as directory:
        copy = Path(directory) / "ledger.sqlite"
        if config.ledger_server is not None:
            place = ledger_access.place_of(config)
            await asyncio.to_thread(place.check_readable)
            await asyncio.to_thread(place.copy, copy.with_name(copy.name + ".dry-run"))
        elif config.ledger.exists():
            # Checked here, so that a refusal names the ledger and not the copy.
            ledger_check.refuse_unreadable(
                config.ledger, ", or start the daemon, which answers the members of its group"
            )
            revision = await asyncio.to_thread(migrate.stored_revision, config.ledger)
            migrate.refuse_foreign(config.ledger, revision or "")
            await asyncio.to_thread(backup.copy, config.ledger, copy.with_name(copy.name + ".dry-run"))
        async with session.outside(config, keeps=False) as outside:
            app = await App.open(replace(config, ledger=copy), tuned, outside, is_dry=True)
            for poller in app.pollers:
                poller.searches.is_patient = True
            try:
                return await app.cycle()
            finally:
                await app.close()
