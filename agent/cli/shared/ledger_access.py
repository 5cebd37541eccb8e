"""The ledger of a configuration, for verbs: its place, its password, and whether we may read or write it."""

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


def must_own(config: "Config") -> None:
    """End with a message if we may not write the ledger, because an order without a daemon is written there."""
    if config.ledger_server is None and not session.may_write(config.ledger):
        sentence = f"no daemon runs, and you may not write {config.ledger}; start the daemon, or run this as its user"
        exits.stop(exits.FAILED, [sentence])
