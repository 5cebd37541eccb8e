"""The packages of the extras `gpubid[lab]` and `gpubid[dask]`, and the sentence that says how to install them."""

import importlib

from agent.cli.shared import exits


def of_study(storage: str) -> tuple[str, ...]:
    """Return the packages that a study in this storage needs."""
    return ("optuna", "psycopg") if storage.startswith("postgresql") else ("optuna",)


def need(*names: str, of: str = "lab") -> None:
    """End with an install command if one of these packages of an extra is missing."""
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            exits.stop(exits.BAD_INPUT, [f"this needs {name}; install it with pip install 'gpubid[{of}]'"])
