"""The committed tree that a long run was made on: what was played on it is not played again."""

import hashlib
import subprocess
from collections.abc import Collection
from pathlib import Path


def digest(root: Path, *paths: str, without: Collection[str] = ()) -> str:
    """Return one word for the committed tree, or for these paths of it; nothing where the files differ from it.

    Files in `without` do not count.
    """
    within = (*(paths or (".",)), *(f":(exclude){name}" for name in without))
    if _git(root, "status", "--porcelain", "--", *within) != "":
        return ""
    files = _git(root, "ls-tree", "-r", "HEAD", "--", *paths)
    if not files:
        return ""
    counted = [line for line in files.splitlines() if line.split("\t", 1)[1] not in without]
    return hashlib.sha256("\n".join(counted).encode()).hexdigest()[:16]


def _git(root: Path, *words: str) -> str | None:
    told = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    return None if told.returncode else told.stdout
