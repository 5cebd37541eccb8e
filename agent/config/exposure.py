"""Exposures in a configuration: key files that every user may read, pages that every network reaches."""

import ipaddress
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.config.settings import Config
from agent.systemd import STORE


@dataclass(frozen=True, slots=True)
class Exposure:
    """One exposure: the part of the configuration, what is open to whom, and the command or line that closes it."""

    about: str
    sentence: str
    fix: str


def exposures(config: Config, store: Path = STORE) -> tuple[Exposure, ...]:
    """Return the exposed key files, then an exposed page. No part of a key is read."""
    return (*_keys(config, store), *_listen(config))


def _keys(config: Config, store: Path) -> Iterator[Exposure]:
    named = {config.listen.credential, config.listen.webhook_credential, *config.notify.credentials}
    named |= {market.credential for market in config.markets}
    named |= {name for work in config.workloads for name in work.credentials}
    files = {market.credential_file for market in config.markets if market.credential_file is not None}
    server = config.ledger_server
    if server is not None:
        named |= {server.credential, server.reader_credential}
        files |= {server.credential_file} if server.credential_file is not None else set()
    files |= {store / name for name in named if name}
    for file in sorted(files):
        try:
            mode = file.stat().st_mode
        except OSError:
            # Other checks report a key file that is missing or that this user may not see.
            continue
        if stat.S_ISREG(mode) and mode & stat.S_IRWXO:
            sentence = f"{file} holds a key and is open to every user (mode {stat.S_IMODE(mode):04o})"
            yield Exposure("key file", sentence, f"chmod 600 {file}")


def _listen(config: Config) -> Iterator[Exposure]:
    try:
        is_open = ipaddress.ip_address(config.listen.host).is_unspecified
    except ValueError:
        return
    if is_open:
        sentence = f"[web] listens on {config.listen.host}: every network of this machine reaches spend and addresses"
        yield Exposure("web", sentence, 'write listen = "127.0.0.1:9477" in [web], and use `ssh -L` or a proxy')
