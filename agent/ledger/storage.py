"""The choice of a ledger's place: a file of SQLite, or a schema on a PostgreSQL server."""

from pathlib import Path
from typing import TYPE_CHECKING

from agent.ledger.file.file_storage import FileStorage
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.storage_port import Password, Storage

if TYPE_CHECKING:
    from agent.ledger.server.campaign import Campaign
    from agent.ledger.server_address import ServerAddress


def campaign(place: "Path", server: "ServerAddress", password: Password) -> "Campaign":
    """Return a standby's campaign for the lead of a ledger on a server.

    Raises:
        LedgerError: NO_DRIVER.
    """
    won = of(place, server, password)
    from agent.ledger.server.campaign import Campaign  # noqa: PLC0415 - as below
    from agent.ledger.server.server_storage import ServerStorage  # noqa: PLC0415

    if not isinstance(won, ServerStorage):
        raise TypeError("only a server has a lead")
    return Campaign(won)


def of(place: "Path | Storage", server: "ServerAddress | None" = None, password: Password | None = None) -> Storage:
    """Return the storage of a path, on a server if one is named.

    Raises:
        LedgerError: NO_DRIVER, the extra `gpubid[postgresql]` or its library is not installed.
    """
    if not isinstance(place, Path):
        return place
    if server is None:
        return FileStorage(place)
    try:
        # The driver takes memory and time, and only this needs it.
        from agent.ledger.server.server_storage import ServerStorage  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise LedgerError(
            Code.NO_DRIVER,
            f"[ledger] url names PostgreSQL, and {error.name} is not installed: install gpubid[postgresql]",
        ) from None
    except ImportError:
        # The driver is here, without the compiled half that brings a library of its own.
        sentence = "[ledger] url names PostgreSQL, and libpq is not installed: `apt install libpq5`"
        raise LedgerError(Code.NO_DRIVER, sentence) from None
    return ServerStorage(place, server, password or (lambda *_: ""))
