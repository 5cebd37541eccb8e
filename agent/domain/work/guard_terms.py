"""The guard of a workload: the program that carries its checkpoints from the rented instance to a bucket."""

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from ipaddress import ip_address
from urllib.parse import urlsplit


class Ask(Enum):
    """How the guard asks the work for a checkpoint."""

    SIGUSR1 = "SIGUSR1"
    NONE = "none"
    """Not at all, because the work writes checkpoints by itself."""


class Accept(Enum):
    """The consequences of the check of a host at each start."""

    OFF = "off"
    """Nothing is checked."""
    TELL = "tell"
    """A difference is reported, and the lease goes on."""
    REJECT = "reject"
    """A host that differs from the rented terms counts as a failed start."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """A folder of an S3 bucket; `prefix` has no slash at its ends and may be empty."""

    endpoint: str
    """Address of the store, without a slash at its end."""
    region: str
    name: str
    prefix: str
    credential: str
    """The name of the credential with KEY_ID:SECRET, stored nowhere."""

    def holds(self, other: "Bucket") -> bool:
        """Return whether another folder is this one or is inside it."""
        is_same = (self.endpoint, self.name) == (other.endpoint, other.name)
        return is_same and f"{other.prefix}/".startswith(f"{self.prefix}/" if self.prefix else "")

    @property
    def is_on_this_machine(self) -> bool:
        """Whether only programs on this machine can reach it."""
        host = urlsplit(self.endpoint).hostname or ""
        try:
            return host == "localhost" or ip_address(host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"s3://{self.name}/{self.prefix}".rstrip("/")


@dataclass(frozen=True, slots=True)
class GuardTerms:
    """The settings of a workload's guard."""

    paths: tuple[str, ...]
    """Files and folders of the container that are a checkpoint."""
    complete: str = ""
    """A folder counts as whole when it has a file of this pattern; empty: when nothing in it changes any more."""
    ask: Ask = Ask.SIGUSR1
    bucket: Bucket | None = None
    """The bucket for checkpoints; without it and without `rclone` the guard only prints its status in the log."""
    keep: int = 2
    """The number of checkpoints that stay in the bucket."""
    final_within: timedelta = timedelta(seconds=8)
    """The most time for a last checkpoint after the work was ordered to stop."""
    done_codes: tuple[int, ...] = (0,)
    """Exit codes that mean that the work is done; none for a service."""
    deadman: timedelta | None = None
    """The silence of the daemon after which the guard stops its instance; None: never."""
    release_disk: bool = True
    """Whether a paused disk may be released after the bucket was found to have its last checkpoint."""
    destroy: bool = False
    """Whether such a stop destroys the instance, if its last checkpoint was verified."""
    accept: Accept = Accept.OFF
    accept_floor: float | None = None
    """The least share of the median speed of its model that a host must reach; None: any speed is accepted."""
    accept_script: str = ""
    """The operator's own check of a host, as a shell command; empty: none."""
    logs: bool = True
    """Whether the work's whole output goes to the bucket too."""
    keep_host: bool = False
    """Whether the host of a finished task of an array goes on with the next one, where that saves enough."""
    rclone: str = ""
    """The remote and the folder of rclone's for checkpoints, as `remote:folder`. The daemon never reads it."""

    @property
    def is_carrying(self) -> bool:
        """Whether checkpoints leave the instance, so that a slot's work has runs."""
        return self.bucket is not None or bool(self.rclone)

    @property
    def script_digest(self) -> str:
        """The digest of the operator's own check: the verdict of another text says nothing of this one."""
        return hashlib.sha256(self.accept_script.encode()).hexdigest()[:16]
