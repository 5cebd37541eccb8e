"""The rounds that were played on what is committed, and the evidence of each: what was asked, recorded and logged.

1. A round is kept by the digest of all that it depends on, so a change of a page or of another test keeps it.
2. The evidence of a round is kept beside it, so that a judgement can be looked into, or made again.
"""

import gzip
import json
import os
from pathlib import Path
from typing import Any

from tests.support import committed

ROOT = Path(__file__).parents[2]
KEPT = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpubid" / "failovers"
SUPPORT = (
    *("boxes", "committed", "engines", "forkserver", "launch", "network", "ports", "postgres", "programs"),
    *("relay", "standby_names", "stories"),
)
PLAYED = (
    *("agent", "strategies", "migrations", "agent.toml", "requirements.lock", "tests/failovers"),
    *(f"tests/support/{name}.py" for name in SUPPORT),
    "tests/support/machine",
)
"""All that a round depends on."""


def file(way: str) -> Path | None:
    """Return where rounds of a way are kept, or nothing where the files differ from what is committed."""
    name = committed.digest(ROOT, *PLAYED)
    return KEPT / f"{name}-{way}.json" if name else None


def rounds(place: Path | None) -> list[dict[str, Any]]:
    """Return the rounds that are kept in a file."""
    return list(json.loads(place.read_text())) if place is not None and place.exists() else []


def keep(place: Path | None, played: list[dict[str, Any]], evidence: dict[str, Any]) -> None:
    """Keep the rounds so far, and the evidence of the last one."""
    if place is None:
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(played))
    its_own = place.with_name(f"{place.stem}-{len(played) - 1}.json.gz")
    its_own.write_bytes(gzip.compress(json.dumps(evidence, default=str).encode()))
