"""The checks of `gpubid doctor`, one function each; each returns lines and raises nothing."""

import asyncio
import contextlib
import os
import platform
import re
import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from agent import __version__
from agent.cli.shared import session
from agent.domain.market.market_rules import Settlement

if TYPE_CHECKING:
    from agent.config.daemon_paths import DaemonPaths
    from agent.config.notify_settings import Notify
    from agent.config.settings import Config, MarketSettings
    from agent.markets.port import Account, Market
    from agent.outside import Outside

ANSWER_SECONDS = 5.0
MUCH_ROOM, LITTLE_ROOM = 2**30, 2**24
"""Free bytes on the ledger's disk. Below the first a person should look; below the second, writes soon fail."""
SLOW_CLOCK, BAD_CLOCK = 5.0, 60.0
"""Seconds between the market's clock and ours. Beyond the second, gpubid pays for nothing."""
MUCH_USED = 0.9
"""Share of a day's search rows beyond which searches will soon stop for the day."""
STALE_BACKUP = timedelta(days=1)
BOOTED = Path("/run/systemd/system")
"""This folder exists if systemd runs the machine."""
UNITS = ("gpubid.service", "gpubid-backup.timer")


class Verdict(StrEnum):
    """The result of a check."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Line:
    """The result of one check. `fix` says how to fix a problem."""

    name: str
    verdict: Verdict
    sentence: str
    fix: str = ""


def versions() -> list[Line]:
    """Return the running versions."""
    sentence = f"gpubid {__version__}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    return [Line("versions", Verdict.OK, sentence)]


async def market(settings: "MarketSettings", outside: "Outside", bound: Mapping[str, str], slots: int) -> list[Line]:
    """Check one market, where some slots may run: its key, account and permissions, credit, clock and listing."""
    from agent.markets import market_errors, registered_markets
    from agent.systemd import CredentialError

    name = f"market {settings.name}"
    if settings.is_simulated:
        return [Line(name, Verdict.OK, f"simulated ({settings.simulated}): no account, no key, no money")]
    try:
        session.secret(settings)
    except CredentialError as error:
        return [Line(f"key {settings.name}", Verdict.FAIL, str(error), "give the daemon the key")]
    it = outside.connect(settings)
    lines: list[Line] = []
    try:
        account = await it.account()
        lines += [_key(settings.name, account, bound), *_credit(settings.name, account)]
        lines += [*_clock(settings.name, account, outside), await _listing(name, it), *await scope(settings, outside)]
        lines += [*_settlement(settings.name, it), *await _findings(settings, it, slots)]
    except market_errors.Unauthorized as error:
        return [
            Line(
                f"key {settings.name}",
                Verdict.FAIL,
                str(error),
                "make a new key and put it in the old one's place; "
                f"see {registered_markets.record(settings.name).documentation}",
            )
        ]
    except market_errors.MarketError as error:
        fix = "follow the message, or check the market's status page and this machine's network"
        return [*lines, Line(name, Verdict.FAIL, str(error), fix)]
    finally:
        await it.close()
    if not settings.may_spend:
        fix = f"write spend = true in [markets.{settings.name}] when `gpubid plan` shows what you want"
        lines.append(Line(f"spend {settings.name}", Verdict.WARN, "it only reads: nothing is paid for", fix))
    return lines


def _key(name: str, account: "Account", bound: Mapping[str, str]) -> Line:
    mine = bound.get(name, "")
    if mine and account.account_id and mine != account.account_id:
        sentence = f"the key belongs to account {account.account_id}, the ledger to {mine}: nothing is paid for"
        return Line(f"key {name}", Verdict.FAIL, sentence, "use the key of that account, or another [ledger] path")
    return Line(f"key {name}", Verdict.OK, f"valid, of account {account.account_id or 'unknown'}")


def _credit(name: str, account: "Account") -> list[Line]:
    if account.credit is None:
        return []
    if account.credit.micros <= 0:
        return [Line(f"credit {name}", Verdict.FAIL, f"{account.credit} is left", "add credit: nothing can be rented")]
    return [Line(f"credit {name}", Verdict.OK, f"{account.credit} is left")]


def _clock(name: str, account: "Account", outside: "Outside") -> list[Line]:
    if account.market_time is None:
        return []
    skew = abs((account.market_time - outside.clock.now()).total_seconds())
    verdict = Verdict.OK if skew <= SLOW_CLOCK else Verdict.WARN if skew <= BAD_CLOCK else Verdict.FAIL
    fix = "" if verdict is Verdict.OK else "synchronise this machine's clock: apt install systemd-timesyncd"
    return [Line("clock", verdict, f"{skew:.0f} s from that of {name}; beyond {BAD_CLOCK:.0f} s nothing is paid", fix)]


async def _listing(name: str, it: "Market") -> Line:
    count = len(await it.instances())
    return Line(name, Verdict.OK, f"reachable; the account has {count} instance(s), ours and others")


def _settlement(name: str, it: "Market") -> list[Line]:
    """Return a line for a market without credit: only the budgets stop spending there."""
    if it.rules().settlement is Settlement.PREPAID:
        return []
    sentence = f"{name} is paid by a later bill: no credit ends what runs there, only the budgets of this configuration"
    return [Line(f"credit {name}", Verdict.OK, sentence)]


async def _findings(settings: "MarketSettings", it: "Market", slots: int) -> list[Line]:
    """Make the checks that only this market has."""
    from agent.markets import registered_markets

    found = await registered_markets.record(settings.name).findings(it, settings.options, slots)
    verdicts = {(False, False): Verdict.OK, (True, False): Verdict.WARN}
    return [
        Line(f"{each.about} {settings.name}", verdicts.get((bool(each.fix), each.is_failure), Verdict.FAIL), *each[1:3])
        for each in found
    ]


async def scope(settings: "MarketSettings", outside: "Outside") -> list[Line]:
    """Check whether the key may do more than our calls need, as far as read requests show it."""
    from agent.markets import market_errors, registered_markets

    known, name, is_wide = registered_markets.record(settings.name).key_scope, f"scope {settings.name}", None
    if known is not None:
        given = (settings.url, lambda: outside.secret(settings), outside.clock, outside.jitter)
        with contextlib.suppress(market_errors.MarketError):
            is_wide = await known.is_wide(*given)
    if known is None or is_wide is None:
        return [Line(name, Verdict.OK, "the market does not say what the key may do")]
    if not is_wide:
        return [Line(name, Verdict.OK, "the key has only some of the account's permissions")]
    return [
        Line(
            name, Verdict.WARN, "the key may do more than gpubid needs", f"make a key with only {_listed(known.needed)}"
        )
    ]


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"


def ledger(config: "Config | DaemonPaths", now: datetime) -> list[Line]:
    """Check the ledger's file: whether it exists, is readable, undamaged and backed up. One on a server has no file."""
    from agent.ledger.file import ledger_check, sidecar
    from agent.ledger.ledger_errors import LedgerError

    file = config.ledger
    if config.ledger_server is not None:
        return []
    if not session.may_read(file):
        fix = "run this as root or as the daemon's user"
        return [Line("ledger", Verdict.WARN, f"{file} may not be read by this user: not checked", fix)]
    if not file.exists():
        return [
            Line("ledger", Verdict.WARN, f"there is no ledger at {file} yet", "start the daemon once (`gpubid run`)")
        ]
    try:
        verification = ledger_check.verify(file)
    except LedgerError as error:
        return [Line("ledger", Verdict.FAIL, error.sentence, "install the version of gpubid that its daemon runs")]
    rows = sum(verification.counted.values())
    if verification.is_damaged:
        return [
            Line(
                "ledger",
                Verdict.FAIL,
                "; ".join(verification.findings[:3]),
                "restore the newest backup with gpubid ledger restore",
            )
        ]
    backup_at = sidecar.last_backup(file)
    lines = [Line("ledger", Verdict.OK, f"{file} is sound: schema {verification.revision}, {rows} rows")]
    if verification.inconsistencies:
        fix = "keep this ledger; gpubid ledger verify shows which figures to compare"
        lines = [Line("ledger", Verdict.WARN, "; ".join(verification.inconsistencies[:3]), fix)]
    fix = "systemctl enable --now gpubid-backup.timer, or gpubid ledger backup"
    if backup_at is None:
        return [*lines, Line("backup", Verdict.WARN, "there is no backup", fix)]
    is_stale = now - backup_at > STALE_BACKUP
    verdict = Verdict.WARN if is_stale else Verdict.OK
    return [
        *lines,
        Line("backup", verdict, f"the newest is of {backup_at:%Y-%m-%d %H:%M} UTC", fix if is_stale else ""),
    ]


def disk(config: "Config | DaemonPaths") -> list[Line]:
    """Check the free space of the ledger's disk."""
    folder = config.ledger.absolute().parent
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        fix = "start the daemon once (`gpubid run`), or run this as root"
        return [Line("disk", Verdict.WARN, f"{folder} cannot be read ({error.strerror})", fix)]
    verdict = Verdict.OK if free >= MUCH_ROOM else Verdict.WARN if free >= LITTLE_ROOM else Verdict.FAIL
    fix = "" if verdict is Verdict.OK else "free some space: on a full disk nothing is paid for"
    return [Line("disk", verdict, f"{free / 2**20:.0f} MB free at {folder}", fix)]


async def answers(place: "DaemonPaths") -> list[Line]:
    """Check whether a daemon answers on its socket, if the address of its page is not known."""
    from agent.cli.shared import daemon_socket

    if await daemon_socket.get(place, "/running") is not None:
        return [Line("daemon", Verdict.OK, "it runs with its last good file")]
    return [Line("daemon", Verdict.FAIL, "none runs, and none can start with this file", "fix the file, then start it")]


async def daemon(config: "Config") -> list[Line]:
    """Check the running daemon: its health, its version, its last reload."""
    url = address(config)
    try:
        health, metrics = await asyncio.gather(page(f"{url}/healthz"), page(f"{url}/metrics"))
    except (OSError, TimeoutError) as error:
        sentence = f"no program serves metrics at {url}: {_silence(error)}"
        return [Line("daemon", Verdict.FAIL, sentence, "systemctl start gpubid, or gpubid run")]
    if "gpubid_" not in metrics and '"ok"' not in health:
        fix = "end that program, or write another address as listen in [web]"
        return [Line("daemon", Verdict.FAIL, f"another program than gpubid answers at {url}", fix)]
    lines = [
        Line("daemon", Verdict.OK if '"ok": true' in health else Verdict.FAIL, f"metrics at {url}/metrics; {health}")
    ]
    lines += _quotas(metrics)
    if f'gpubid_build_info{{version="{__version__}"}}' not in metrics:
        lines.append(
            Line(
                "daemon's version",
                Verdict.WARN,
                f"it is not {__version__}, as this program is",
                "systemctl restart gpubid",
            )
        )
    if "gpubid_config_last_reload_successful 0.0" in metrics:
        fix = "gpubid check, fix the file, systemctl reload gpubid"
        lines.append(
            Line("reload", Verdict.FAIL, "the last reload was refused; the daemon keeps its last good files", fix)
        )
    return lines


def _silence(error: Exception) -> str:
    """Return what happened in place of an answer."""
    return f"no answer in {ANSWER_SECONDS:.0f} s" if isinstance(error, TimeoutError) else "no program listens there"


def _quotas(metrics: str) -> list[Line]:
    """Check how much of each market's daily search rows is used."""
    from agent.markets import pace

    lines = []
    for name, said in re.findall(r'^gpubid_search_rows_today\{market="(\w+)"\} ([0-9.e+]+)$', metrics, re.MULTILINE):
        used = float(said) / pace.DAILY_ROWS
        verdict = Verdict.OK if used < MUCH_USED else Verdict.WARN
        fix = "" if verdict is Verdict.OK else "let workloads search less; the count starts again at 00:00 UTC"
        sentence = f"{float(said):.0f} of the {pace.DAILY_ROWS} search rows that gpubid allows itself a day"
        lines.append(Line(f"quota {name}", verdict, sentence, fix))
    return lines


def address(config: "Config") -> str:
    """Return the address of the daemon's pages."""
    host = f"[{config.listen.host}]" if ":" in config.listen.host else config.listen.host
    return f"http://{host}:{config.listen.port}"


async def page(url: str) -> str:
    """Return a page of the daemon.

    Raises: OSError, TimeoutError.
    """
    import aiohttp

    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS)) as link,
            link.get(url) as reply,
        ):
            return await reply.text()
    except aiohttp.ClientError as error:
        raise OSError(str(error)) from None


async def units() -> list[Line]:
    """Check the service and its timer, if systemd runs this machine."""
    if not BOOTED.is_dir():  # noqa: ASYNC240 - one look
        return [Line("unit", Verdict.WARN, "systemd does not run this machine", "let a supervisor restart gpubid run")]
    lines = []
    for unit in UNITS:
        said = await run("systemctl", "show", unit, "--property=ActiveState,UnitFileState,NRestarts")
        properties = {key: value for key, _, value in (line.partition("=") for line in said.splitlines())}
        is_up, is_kept = properties.get("ActiveState") == "active", properties.get("UnitFileState") == "enabled"
        verdict = Verdict.OK if is_up and is_kept else Verdict.WARN if is_up or "timer" in unit else Verdict.FAIL
        sentence = f"{properties.get('ActiveState') or 'unknown'}, {properties.get('UnitFileState') or 'not installed'}"
        restarts = f", restarted {properties['NRestarts']} time(s)" if properties.get("NRestarts") else ""
        fix = "" if verdict is Verdict.OK else f"systemctl enable --now {unit}"
        lines.append(Line(f"unit {unit}", verdict, sentence + restarts, fix))
    return lines


async def run(*order: str) -> str:
    """Run a program to its end and return its output, or an empty text if it cannot be run."""
    quiet = asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            *order, stdin=quiet, stdout=asyncio.subprocess.PIPE, stderr=quiet
        )
        out, _ = await asyncio.wait_for(process.communicate(), 2 * ANSWER_SECONDS)
    except (OSError, TimeoutError):
        return ""
    return out.decode("utf-8", "replace")


def credentials(config: "Config") -> list[Line]:
    """Check that every other credential in the configuration can be read. None is shown."""
    from agent.systemd import CredentialError

    named = {config.listen.credential, config.listen.webhook_credential, *config.notify.credentials}
    named |= {name for work in config.workloads for name in work.credentials}
    lines = []
    for name in sorted(named - {""}):
        try:
            session.named(name)
        except CredentialError as error:
            lines.append(Line(f"credential {name}", Verdict.FAIL, str(error), "give the daemon the credential"))
    count = len(named - {""})
    return lines or ([Line("credentials", Verdict.OK, f"all {count} named ones can be read")] if count else [])


async def webhook(notify: "Notify") -> list[Line]:
    """Check whether the webhook's host accepts connections. Nothing is sent."""
    import yarl

    from agent.systemd import CredentialError

    if notify.webhook is None:
        return []
    try:
        url = yarl.URL(notify.webhook.url or session.named(notify.webhook.url_credential))
        _, writer = await asyncio.wait_for(asyncio.open_connection(url.host, url.port), ANSWER_SECONDS)
        writer.close()
    except CredentialError as error:
        return [Line("webhook", Verdict.FAIL, str(error), "give the daemon the credential")]
    except (OSError, TimeoutError, ValueError) as error:
        fix = "fix the address in [notify], then `gpubid notify test`"
        return [Line("webhook", Verdict.FAIL, f"its host cannot be reached ({type(error).__name__})", fix)]
    return [Line("webhook", Verdict.OK, "its host accepts connections")]


def exposed(config: "Config") -> list[Line]:
    """Check whether others can read a key or reach the pages."""
    from agent.config import exposure

    return [Line(each.about, Verdict.WARN, each.sentence, each.fix) for each in exposure.exposures(config)]


def configuration(file: Path) -> list[Line]:
    """Check whether somebody else may change the daemon's files."""
    mode = file.stat().st_mode
    if mode & 0o022:
        return [Line("configuration", Verdict.WARN, f"{file} may be written by others", f"chmod go-w {file}")]
    owner = "root's" if file.stat().st_uid == 0 else "yours" if file.stat().st_uid == os.getuid() else "another user's"
    return [Line("configuration", Verdict.OK, f"{file} is good, and {owner}")]
