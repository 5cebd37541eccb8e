"""The option `--on` of the lab's verbs: the workers of this machine, or those of a Dask cluster."""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.lab import extra
from agent.cli.shared import exits
from agent.telemetry.plain_text import plain

if TYPE_CHECKING:
    from agent.lab.workers.dask_workers import DaskWorkers
    from agent.lab.workers.lab_workers import Workers

OnOption = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="ADDRESS",
        envvar="GPUBID_LAB_ON",
        help="Compute on a Dask cluster: tls://SCHEDULER:8786, or tcp:// of this machine or an SSH tunnel. "
        "Own boxes only, never rented hosts: Dask sends code both ways.",
    ),
]
REFUSED = {"bad_address", "no_tls", "no_certificates", "threads", "other_build"}
"""Codes of what the operator must change before anything can run."""


@contextlib.contextmanager
def workers(address: str | None, count: int, packages: Sequence[str] = ()) -> "Iterator[Workers]":
    """Yield the workers at an address, or so many processes of this machine; end with the reason if they fail.

    `packages` are those whose files must be equal on a cluster, by default those of the program.
    """
    from agent.lab.workers.lab_workers import LocalWorkers

    if address is None:
        yield LocalWorkers(count)
        return
    extra.need("distributed", of="dask")
    from agent.lab.workers import dask_workers
    from agent.lab.workers.cluster_error import ClusterError

    try:
        with dask_workers.connected(address, packages or dask_workers.PROGRAM) as cluster:
            yield cluster
            _report(cluster)
    except ClusterError as error:
        exits.stop(exits.BAD_INPUT if error.code in REFUSED else exits.FAILED, [plain(error.sentence)])


def _report(cluster: "DaskWorkers") -> None:
    """Print on stderr what each worker computed, because a program may read standard output."""
    lost = set(cluster.lost())
    for address, share in sorted(cluster.shares.items(), key=lambda each: each[1].name):
        end = "; this worker is gone" if address in lost else ""
        parts = f"{share.parts} part{'s' if share.parts != 1 else ''}"
        sys.stderr.write(plain(f"{share.name} ({address}): {parts} in {share.seconds:.1f} s{end}") + "\n")
