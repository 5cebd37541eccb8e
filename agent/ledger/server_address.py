"""The address of a ledger on a PostgreSQL server, as the configuration names it. It contains no password."""

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

SCHEMES = ("postgresql", "postgres")
DEFAULT_SCHEMA = "gpubid"
_PASSWORDS = frozenset({"password", "passfile", "sslpassword"})
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,40}")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A database, the schema of one fleet in it, and the credentials of the roles that write and read it.

    `credential` and `credential_file` name the password of the role in the URL. Both are empty where the server asks
    for none. `reader` is the role of verbs that only read; empty means the same role in a read-only session.
    """

    url: str
    schema: str = DEFAULT_SCHEMA
    credential: str = ""
    credential_file: Path | None = None
    reader: str = ""
    reader_credential: str = ""

    @property
    def shown(self) -> str:
        """The address for messages: hosts, database and schema."""
        parts = urlsplit(self.url)
        place = parts.netloc.rpartition("@")[2]
        return f"postgresql://{place}{parts.path}, schema {self.schema}"


def flaw(url: str) -> tuple[str, str] | None:
    """Return the code and the sentence of a mistake in an address, or None."""
    scheme, found, _ = url.partition("://")
    if not found or scheme not in SCHEMES:
        return "bad_url", 'is no PostgreSQL address; write url = "postgresql://USER@HOST/DATABASE"'
    parts = urlsplit(url)
    user = parts.netloc.rpartition("@")[0]
    given = {key for key, _ in parse_qsl(parts.query, keep_blank_values=True)}
    if ":" in user or given & _PASSWORDS:
        sentence = 'contains a password; take it out and name it: credential = "NAME" or credential_file = "FILE"'
        return "password_in_url", sentence
    if "options" in given:
        return "bad_url", "must not have options: gpubid sets those of its sessions; take options=... out"
    return None


def is_schema(name: str) -> bool:
    """Return whether a schema may have this name: lower case, digits and underscores."""
    return _SCHEMA.fullmatch(name) is not None and not name.startswith("pg_")
