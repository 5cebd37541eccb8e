"""Where a secret could come out in containers that really run: environments, command lines and files."""

from collections.abc import Iterator
from pathlib import Path

MOST_BYTES = 1 << 20


def shown(disks: Path) -> Iterator[tuple[str, bytes]]:
    """Yield what the processes of containers with a disk in a folder show, and what the files there have."""
    mark = str(disks).encode()
    for folder in Path("/proc").iterdir():
        try:
            environment = (folder / "environ").read_bytes() if folder.name.isdigit() else b""
            if mark in environment:
                yield f"{folder.name} environ", environment
                yield f"{folder.name} cmdline", (folder / "cmdline").read_bytes()
        except OSError:
            continue
    for path in disks.rglob("*"):
        try:
            if path.is_file() and not path.is_symlink():
                yield str(path), path.read_bytes()[:MOST_BYTES]
        except OSError:
            continue
