"""The committed tree that a long run was made on: what was played on it is not played again."""

import subprocess
from pathlib import Path


def digest(root: Path, *paths: str) -> str:
    """Return one word for the committed tree, or for these paths of it; nothing where the files differ from it."""
    git = ("git", "-C", str(root))
    changed = subprocess.run(
        [*git, "status", "--porcelain", "--", *(paths or (".",))], capture_output=True, text=True, check=False
    )
    if changed.returncode or changed.stdout:
        return ""
    names = [f"HEAD:{path}" for path in paths] or ["HEAD^{tree}"]
    told = subprocess.run([*git, "rev-parse", *names], capture_output=True, text=True, check=True)
    return "-".join(line[:12] for line in told.stdout.split())
