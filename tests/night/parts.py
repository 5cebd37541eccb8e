"""The parts of a night and what each runs, the longest last."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

FORKED = (sys.executable, "-m", "pytest", "--quiet", "-p", "no:schemathesis", "-p", "no:xdist", "-p",
          "tests.support.forked_run", "--forks", "5", "-m")  # fmt: skip
AT_NIGHT = (*FORKED, "nightly")
IN_CI = (*FORKED, "not nightly and not guest")
COLD = ("cli", "crash", "daemon", "ledger", "simulator", "stories")
SERVED = ("tests/ledger", "tests/rules", "tests/crash", "tests/scenarios")
SEEDS, ON_DISK, ON_SERVER = 10_000, 300, 60
DISK = os.environ.get("TMPDIR", "/var/tmp")  # noqa: S108 - a disk, where /tmp may be memory
_MUTANTS = """\
timeout --signal INT {seconds} .venv/bin/mutmut run >/dev/null 2>&1 || [ $? = 124 ]
.venv/bin/mutmut results --all true | sed 's/.*: //' | sort | uniq -c"""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a night: commands that all must end with 0, and variables of their environment."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    environment: Mapping[str, str] = field(default_factory=dict)


def parts(first: int, mutant_seconds: int) -> tuple[Part, ...]:
    """Return the parts of the night whose disasters begin with the seed `first`."""
    disasters = sys.executable, "-m", "tests.disasters", "--seeds"
    python = sys.executable
    return (
        Part("coverage", (("make", "cover"),)),
        Part("types", ((".venv/bin/pyright", "--pythonpath", python, "agent", "strategies", "migrations"),)),
        Part("guest", (("make", "deploy-test"),)),
        Part("rules", ((*IN_CI, "tests/rules"),), {"GPUBID_EXAMPLES": "25", "GPUBID_WIRED": "1"}),
        Part("scenarios", ((*IN_CI, "tests/scenarios", "tests/daemon", "tests/act"),), {"GPUBID_WIRED": "1"}),
        Part(
            "ledgers",
            (
                (*IN_CI, *SERVED, "-k", "postgresql"),
                (*disasters, str(ON_SERVER), "--first", str(first), "--postgresql"),
            ),
            {"GPUBID_ENGINES": "both", "GPUBID_EXAMPLES": "5"},
        ),
        Part("cold", ((*IN_CI, *(f"tests/{each}" for each in COLD)),), {"GPUBID_COLD": "1"}),
        Part("storm", ((python, "-m", "tests.storm", "--seed", str(first // 10_000 % 366)),)),
        Part("mutants", (("sh", "-euc", _MUTANTS.format(seconds=mutant_seconds)),)),
        Part("slow tests", ((*AT_NIGHT, "tests"),), {"GPUBID_NIGHT": "1"}),
        Part(
            "disasters",
            (
                (*disasters, str(SEEDS), "--first", str(first)),
                (*disasters, str(ON_DISK), "--first", str(first + SEEDS), "--folder", DISK),
            ),
        ),
    )
