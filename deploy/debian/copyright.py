"""Write the package's copyright file: our licence, and that of every package in its environment.

    copyright.py ENVIRONMENT LICENSE

It ends with 1 when a package's licence is none of those that may ride along.
"""

import importlib.metadata
import re
import sys
from collections.abc import Iterator
from pathlib import Path

FREE = re.compile(
    r"\b(MIT|BSD|Apache|ISC|PSF|Python Software Foundation|MPL|Mozilla|0BSD|Unlicense|Zlib)\b", re.IGNORECASE
)
WHOLE = {"psycopg": "LGPL-3.0-only"}
"""Libraries of the LGPL that ride along whole, as source with their licence, which anybody may exchange there."""
LIBRARIES = {
    "libscipy_openblas": "OpenBLAS, BSD-3-Clause, with LAPACK, BSD-3-Clause-Open-MPI",
    "libgfortran": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libquadmath": "LGPL-2.1-or-later",
}
"""Shared libraries that numpy's wheel brings along, as its own LICENSE.txt names them."""
BOUND = re.compile(r"\b(A?GPL|Affero|commercial|proprietary)\b", re.IGNORECASE)
VENDORED = ("uPlot 1.6.32, agent/web/static/uplot: MIT",)
"""Files of others inside our own package, each with its licence beside it."""
OWN = "gpubid"


def licence(package: importlib.metadata.Distribution) -> str:
    """Return what a package says of its licence, in one line."""
    said = package.metadata
    classifiers = [line.rpartition(" :: ")[2] for line in said.get_all("Classifier", []) if "License ::" in line]
    text = said["License-Expression"] or ", ".join(classifiers) or (said["License"] or "").strip().partition("\n")[0]
    return str(text)


def is_allowed(name: str, text: str) -> bool:
    """Return whether a package may ride along under its licence."""
    return WHOLE.get(name) == text or (FREE.search(text) is not None and BOUND.search(text) is None)


def bundled(environment: Path) -> Iterator[tuple[str, str, str]]:
    """Yield name, version and licence of every package, by name."""
    folders = [str(folder) for folder in environment.glob("lib/python3.*/site-packages")]
    found = importlib.metadata.distributions(path=folders)
    for package in sorted(found, key=lambda one: one.metadata["Name"].lower()):
        yield package.metadata["Name"], package.version, licence(package)


def libraries(environment: Path) -> Iterator[tuple[str, str]]:
    """Yield each shared library that a wheel brought along beside its package, with its licence or nothing."""
    for file in sorted(environment.glob("lib/python3.*/site-packages/*.libs/*")):
        yield file.name, next((text for name, text in LIBRARIES.items() if file.name.startswith(name)), "")


def main() -> int:
    """Print the file."""
    environment, own = Path(sys.argv[1]), Path(sys.argv[2]).read_text()
    packages = [one for one in bundled(environment) if one[0] != OWN]
    refused = [one for one in packages if not is_allowed(one[0], one[2])]
    brought = list(libraries(environment))
    refused += [(name, "", text) for name, text in brought if not text]
    for name, version, text in refused:
        sys.stderr.write(f"{name} {version} may not ride along under its licence: {text or 'unknown'}\n")
    lines = [f"  {name} {version}: {text}" for name, version, text in packages]
    lines += [f"  {name}: {text}" for name, text in brought]
    lines += [f"  {each}" for each in VENDORED]
    sys.stdout.write("Bundled in /usr/lib/gpubid, each with its own licence text beside it:\n\n")
    sys.stdout.write("\n".join(lines) + "\n\ngpubid itself:\n\n" + own)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
