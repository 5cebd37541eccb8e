"""Long runs of the committed program, kept so that one that was broken off goes on.

1. A run is kept in the cache of this machine. `record` copies the kept runs of this program into a file of the
   checkout, which can be committed: another machine goes on from there.
2. A run counts only for the program that made it.
"""

import json
import sys
from pathlib import Path
from typing import Any


def record(runs: "KeptRuns | None", what: str) -> int:
    """Write what is kept into the checkout, say so, and return the exit code; without `runs`, say why not."""
    if runs is None:
        sys.stderr.write("files differ from what is committed: nothing that is kept is of them\n")
        return 1
    sys.stdout.write(f"{runs.record()} {what} of this program are in {runs.recorded}\n")
    return 0


class KeptRuns:
    """The runs of one program by name, each a table of JSON values."""

    def __init__(self, program: str, cache: Path, recorded: Path) -> None:
        """`program` is the digest of all that a run depends on, `recorded` the file of the checkout."""
        self.program = program
        self._folder = cache / program
        self.recorded = recorded

    def get(self, name: str) -> dict[str, Any] | None:
        """Return a run, or nothing where this program has not made it."""
        file = self._file(name)
        return dict(json.loads(file.read_text())) if file.exists() else self._of_record().get(name)

    def keep(self, name: str, run: dict[str, Any]) -> None:
        """Keep a run in the cache."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._file(name).write_text(json.dumps(run))

    def record(self) -> int:
        """Write all runs of this program into the file of the checkout, and return how many they are."""
        cached = {file.stem: json.loads(file.read_text()) for file in sorted(self._folder.glob("*.json"))}
        runs = {**self._of_record(), **cached}
        lines = [json.dumps({"program": self.program, "name": name, "run": runs[name]}) for name in sorted(runs)]
        self.recorded.write_text("".join(line + "\n" for line in lines))
        return len(lines)

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.json"

    def _of_record(self) -> dict[str, dict[str, Any]]:
        text = self.recorded.read_text() if self.recorded.exists() else ""
        lines = map(json.loads, text.splitlines())
        return {line["name"]: line["run"] for line in lines if line["program"] == self.program}
