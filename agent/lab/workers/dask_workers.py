"""Workers of a Dask cluster, by Dask's own `concurrent.futures` executor, and the reasons to believe their results.

Invariants:
1. Nothing is computed before every worker has shown the build of this process. A worker that joins later, or comes
   back, shows its build with its parts, and another build ends the work.
2. A part of each worker's first result is computed again here. Another value ends the work.
3. The parts of a lost worker are computed again by others. A part that fails by itself ends the work.
4. No connection leaves a machine without TLS.
"""

import contextlib
import functools
import logging
import pickle
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import Any, TypeVar

import cloudpickle
import distributed
from distributed.comm import CommClosedError

from agent.clock import SystemClock
from agent.lab.workers import cluster_address, sent_functions
from agent.lab.workers.cluster_error import ClusterError
from agent.lab.workers.lab_workers import Work

P = TypeVar("P")
A = TypeVar("A")
R = TypeVar("R")

PROGRAM = ("agent", "strategies")
"""The packages whose files decide results."""
CONNECT_SECONDS = 10
ALLOWED_FAILURES = 20
"""The lost workers on which one part is tried. Boxes come and go; a part that ends its process is rarer."""
LOOK_SECONDS = 2.0
"""Between two looks at the workers while a result is awaited."""
ANSWER_SECONDS = 30
"""The longest wait for the scheduler's own answer."""
ALONE_SECONDS = 60.0
"""The longest wait for a first worker after the last one is gone."""
NAMED = 3
"""The most differences that a message names."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A worker's result of a part after `seconds`; none if its build is another one, which it then shows whole."""

    worker: str
    name: str
    threads: int
    seconds: float
    result: Any
    build: Mapping[str, str] = field(default_factory=dict)


class _Sent:
    """A function of `sent_functions` that becomes the same function elsewhere, from its code and not by its name."""

    def __init__(self, function: Callable[..., Any]) -> None:
        cloudpickle.register_pickle_by_value(sent_functions)
        self._function, self._code = function, cloudpickle.dumps(function)
        cloudpickle.unregister_pickle_by_value(sent_functions)

    def __call__(self, *given: Any, **named: Any) -> Any:  # noqa: ANN401 - as the function
        return self._function(*given, **named)

    def __reduce__(self) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
        return pickle.loads, (self._code,)


@dataclass(slots=True)
class Share:
    """What a worker has computed."""

    name: str
    parts: int = 0
    seconds: float = 0.0


@contextlib.contextmanager
def connected(text: str, packages: Sequence[str] = PROGRAM) -> "Iterator[DaskWorkers]":
    """Connect to the scheduler at an address, and yield its workers. `packages` are those whose files must be equal.

    Raises:
        ClusterError: the address is not allowed, nobody answers there, or a worker has another build.
    """
    address = cluster_address.scheduler(text)
    for name in ("distributed", "distributed.client", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what they log is raised here, in a sentence
    client = _client(address)
    try:
        with _answering(address):
            workers = DaskWorkers(client, address, packages)
            workers.must_be_alike()
            client.run_on_scheduler(_Sent(sent_functions.allow_failures), ALLOWED_FAILURES)
        yield workers
    finally:
        with contextlib.suppress(Exception):
            client.close(timeout=CONNECT_SECONDS)


def _client(address: str) -> Any:  # noqa: ANN401 - Dask is not typed
    is_encrypted = address.startswith("tls:")
    security = distributed.Security(require_encryption=is_encrypted)
    if is_encrypted and not (security.tls_ca_file and security.tls_client_cert):
        raise ClusterError(
            "no_certificates",
            f"{address} needs certificates: set DASK_DISTRIBUTED__COMM__TLS__CA_FILE, …__CLIENT__CERT and "
            "…__CLIENT__KEY to paths of files, or write them into ~/.config/dask/",
        )
    try:
        return distributed.Client(
            address, security=security, timeout=CONNECT_SECONDS, set_as_default=False, direct_to_workers=False
        )
    except (OSError, ValueError, TypeError) as error:
        sentence = (
            f"no scheduler answers at {address} ({type(error).__name__}); start one with `dask scheduler`, and check "
            "the tunnel or the certificates"
        )
        raise ClusterError("no_scheduler", sentence) from error


@contextlib.contextmanager
def _answering(address: str) -> Iterator[None]:
    """Translate what is raised if the scheduler does not answer."""
    try:
        yield
    except (OSError, CancelledError, RuntimeError) as error:
        sentence = (
            f"the scheduler at {address} is gone ({type(error).__name__}), and what it had is lost: nothing was "
            "printed. Start it and its workers, then run the same command again"
        )
        raise ClusterError("scheduler_lost", sentence) from error


class DaskWorkers:
    """The workers of a cluster. `shares` has what each of them has computed, by address."""

    def __init__(self, client: Any, address: str, packages: Sequence[str]) -> None:  # noqa: ANN401 - as above
        self.shares: dict[str, Share] = {}
        self._client, self._address, self._packages = client, address, tuple(packages)
        self._build = _own(self._packages)
        self._clock = SystemClock()
        self._alone_since: float | None = None

    def must_be_alike(self) -> None:
        """Refuse workers with another build, several threads, or a connection without TLS.

        Raises:
            ClusterError: a worker is refused, or there is none.
        """
        known = self._client.scheduler_info()
        workers = known["workers"]
        ends = [known["address"], *workers, *(each["nanny"] for each in workers.values() if each.get("nanny"))]
        if unsafe := [each for each in ends if not cluster_address.is_safe(each)]:
            sentence = f"{unsafe[0]} of the cluster at {self._address} has no TLS: start everything there with tls://"
            raise ClusterError("no_tls", sentence)
        if not workers:
            raise ClusterError(
                "no_workers", f"no worker is at {self._address}; start `dask worker ADDRESS --nthreads 1`"
            )
        for worker, each in workers.items():
            self._must_have_one_thread(worker, str(each["name"]), each["nthreads"])
        builds = self._client.run(_Sent(sent_functions.build), self._packages, on_error="return")
        # One that is lost without a word is still listed for minutes. Each part shows the build of its worker again.
        present = {worker: build for worker, build in builds.items() if not isinstance(build, OSError)}
        for worker, build in (present or builds).items():
            self._must_be_alike(worker, str(workers.get(worker, {}).get("name", "")), build)

    def map(self, work: Work[P, A, R], problem: P, parts: Sequence[A]) -> Iterator[R]:
        """Yield the result of each part, in order.

        Raises:
            ClusterError: the scheduler or all workers are gone, a worker is refused, or a part failed.
        """
        # Bytes never change, so the cluster may copy them while they are used, and make a lost copy again.
        packed = zlib.compress(pickle.dumps((work, problem)), 1)
        digest = sent_functions.digest(self._build)
        with _answering(self._address):
            sent = self._client.submit(_kept, packed, pure=False)
            # Futures of `get_executor` take a result for an error where its worker died while it was fetched.
            send = functools.partial(self._client.submit, _Sent(sent_functions.answer), _computed, sent, pure=False)
            futures = [send(part, self._packages, digest) for part in parts]
        for part, future in zip(parts, futures, strict=True):
            answer = self._awaited(future)
            if answer.build:
                # Also a worker that is known by its address: it may have come back with another program.
                self._must_be_alike(answer.worker, answer.name, answer.build)
            if answer.worker not in self.shares:
                self._must_be_true(work, problem, part, answer)
            share = self.shares.setdefault(answer.worker, Share(answer.name))
            share.parts, share.seconds = share.parts + 1, share.seconds + answer.seconds
            yield answer.result

    def lost(self) -> list[str]:
        """Return the addresses of workers that computed something and are gone."""
        with _answering(self._address):
            present = self._present()
        return [each for each in self.shares if each not in present]

    def _present(self) -> Mapping[str, int]:
        found: Mapping[str, int] = self._client.nthreads(callback_timeout=ANSWER_SECONDS)
        return found

    def _awaited(self, future: Any) -> Answer:  # noqa: ANN401 - Dask is not typed
        while True:
            try:
                return Answer(**future.result(LOOK_SECONDS))
            except (CancelledError, CommClosedError) as error:
                with _answering(self._address):
                    raise error from None
            except TimeoutError:
                if not future.done():
                    self._must_have_workers()
                    continue
                # It ended between the two looks, or with a timeout of its own. The next look sees a cancelled one.
                if not future.cancelled() and (ended := future.exception()) is not None:
                    raise _failed(ended) from ended
            except Exception as error:
                raise _failed(error) from error

    def _must_have_workers(self) -> None:
        with _answering(self._address):
            is_alone = not self._present()
        now = self._clock.monotonic()
        self._alone_since = (self._alone_since or now) if is_alone else None
        if self._alone_since is not None and now - self._alone_since > ALONE_SECONDS:
            sentence = (
                f"every worker of {self._address} has been gone for {ALONE_SECONDS:.0f} s: nothing was printed. Start "
                "some, then run the same command again"
            )
            raise ClusterError("no_workers", sentence)

    def _must_be_true(self, work: Work[P, A, R], problem: P, part: A, answer: Answer) -> None:
        if not cluster_address.is_safe(answer.worker):
            raise ClusterError("no_tls", f"{_called(answer.worker, answer.name)} has no TLS: start it with tls://")
        self._must_have_one_thread(answer.worker, answer.name, answer.threads)
        if not work.is_true(problem, part, answer.result):
            sentence = (
                f"{_called(answer.worker, answer.name)} computed another result than this machine does, with the same "
                "files: nothing was printed. Restart it, and compare its processor and its libraries with those here"
            )
            raise ClusterError("wrong_result", sentence)

    def _must_have_one_thread(self, worker: str, name: str, threads: int) -> None:
        if threads != 1:
            sentence = (
                f"{_called(worker, name)} has {threads} threads, which would share the lab's caches: start it with "
                "--nthreads 1, and --nworkers for several processes"
            )
            raise ClusterError("threads", sentence)

    def _must_be_alike(self, worker: str, name: str, build: Any) -> None:  # noqa: ANN401 - or an error, by Dask
        if why := _difference(self._build, build):
            sentence = (
                f"{_called(worker, name)} would compute with something else than this machine: {why}. Install the same "
                "gpubid there, and restart it; nothing was computed by it"
            )
            raise ClusterError("other_build", sentence)


def _called(worker: str, name: str) -> str:
    return f"the worker {worker}" + (f" ({name})" if name and name != worker else "")


def _failed(error: BaseException) -> ClusterError:
    said = (str(error).strip() or "no message").splitlines()[0]
    if isinstance(error, distributed.KilledWorker):
        why = f"{ALLOWED_FAILURES + 1} workers were lost while they computed the same part; is their memory enough?"
        return ClusterError("part_failed", f"{why} Nothing was printed")
    return ClusterError("part_failed", f"a part failed on the cluster: {type(error).__name__}: {said}")


def _difference(mine: Mapping[str, str], theirs: Any) -> str:  # noqa: ANN401 - as above
    """Return how a worker's build differs from ours, or nothing."""
    if not isinstance(theirs, dict):
        return f"it could not show its build ({type(theirs).__name__})"
    if sent_functions.STALE in theirs:
        return "its files changed after it had started"
    keys = [key for key in {**mine, **theirs} if mine.get(key) != theirs.get(key)]
    files = [key.removeprefix("file ") for key in keys if key.startswith("file ")]
    found = [
        f"{key} is {theirs.get(key, 'missing')}, here {mine.get(key, 'missing')}"
        for key in keys
        if not key.startswith("file ")
    ]
    if files:
        found.append(f"{len(files)} other file{'s' if len(files) != 1 else ''}, such as {', '.join(files[:NAMED])}")
    return "; ".join(found[:NAMED] + found[NAMED:][-1:])


def _own(packages: Sequence[str]) -> dict[str, str]:
    found = sent_functions.build(packages)
    found.pop(sent_functions.STALE, None)
    return found


@functools.lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> tuple[Work[Any, Any, Any], Any]:
    """Return the work and the problem, unpacked once for all parts of a worker."""
    unpacked: tuple[Work[Any, Any, Any], Any] = pickle.loads(zlib.decompress(packed))  # noqa: S301 - see invariant 4
    return unpacked


def _kept(packed: bytes) -> bytes:
    return packed


def _computed(packed: bytes, part: object) -> tuple[float, Any]:
    """Compute a part on a worker; return the seconds and the result."""
    work, problem = _unpacked(packed)
    clock = SystemClock()
    began = clock.monotonic()
    result = work.done(problem, part)
    return clock.monotonic() - began, result
