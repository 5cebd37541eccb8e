"""Slow preparations, made once a run: the first worker that needs one makes it, and each worker gets a copy."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """Return a copy of the folder that `make` filled. Wait if another worker is making it now."""
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, is_whole = shared / f"once-{name}", shared / f"once-{name}.whole"
    with (shared / f"once-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_whole.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            is_whole.touch()
    return Path(shutil.copytree(folder, factory.mktemp(name), dirs_exist_ok=True))
