"""What `gpubid[lab]` brings, or the sentence that tells to install it."""

import importlib

from agent.cli import exits


def need(*names: str) -> None:
    """End with what to install where one of these packages is not there."""
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            exits.stop(exits.BAD_INPUT, [f"this needs {name}; install it with pip install 'gpubid[lab]'"])
