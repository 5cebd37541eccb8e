"""The ledger of a configuration, for verbs: its place, its password, and whether we may read or write it."""

import socket
from typing import TYPE_CHECKING

from agent.cli.shared import exits, session

if TYPE_CHECKING:
    from agent.config.daemon_paths import DaemonPaths
    from agent.config.settings import Config
    from agent.ledger.storage_port import Storage


def place_of(config: "Config | DaemonPaths") -> "Storage":
    """Return the place of the ledger's tables.

    Raises:
        LedgerError: NO_DRIVER.
    """
    from agent.ledger import storage

    return storage.of(config.ledger, config.ledger_server, session.ledger_password)


def may_read(config: "Config | DaemonPaths") -> bool:
    """Return whether we may read the ledger. A server answers that itself, when it is asked."""
    return config.ledger_server is not None or session.may_read(config.ledger)


def is_missing(config: "Config | DaemonPaths") -> bool:
    """Return whether it is certain that there is no ledger. A server answers that itself, when it is asked."""
    return config.ledger_server is None and session.is_missing(config.ledger)


def is_led_elsewhere(config: "Config", *, is_first_look: bool) -> bool:
    """Return whether the daemon of another box is seen to lead, so that none of this box will soon listen.

    A leader tells its page once it listens. So a leader of our own host's name with a page is on another box too, if no
    daemon listens here; at the first look it may have told its page a moment after our socket was asked.
    """
    from agent.ledger.ledger_errors import LedgerError
    from agent.systemd import CredentialError

    if config.ledger_server is None:
        return False
    try:
        leader = place_of(config).leading()
    except (LedgerError, CredentialError):
        return False
    if leader is None or not leader.is_shown:
        return False
    return leader.host != socket.gethostname() or (bool(leader.page) and not is_first_look)


def must_own(config: "Config") -> None:
    """End with a message if we may not write the ledger, because an order without a daemon is written there."""
    if config.ledger_server is None and not session.may_write(config.ledger):
        sentence = f"no daemon runs, and you may not write {config.ledger}; start the daemon, or run this as its user"
        exits.stop(exits.FAILED, [sentence])
