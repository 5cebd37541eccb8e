"""The table of a workload's guard: the files of a checkpoint, and the bucket that keeps checkpoints."""

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from agent.config.settings import Config
from agent.config.toml_table import Table
from agent.config.value_kinds import ONE_WORD, Flag, Line, Number, Span, Whole, credential_name, refused, web_address
from agent.domain.work import guard_prelude, sign_of_life
from agent.domain.work.guard_terms import Accept, Ask, Bucket, GuardTerms
from agent.markets import registered_markets

_BUCKET = re.compile(r"s3://(?P<name>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?P<prefix>(/[A-Za-z0-9_=-][A-Za-z0-9._=-]*)*)/?")
_RCLONE = re.compile(
    r":?[A-Za-z0-9_][A-Za-z0-9_.+@-]*:(/?[A-Za-z0-9_=-][A-Za-z0-9._=-]*)(/[A-Za-z0-9_=-][A-Za-z0-9._=-]*)*/?"
)
_OWN_VARIABLES = re.compile(r"GPUBID_(GUARD|BUCKET|PROGRESS)(_.*)?")
_WRITE_BUCKET = 'write for example bucket = "s3://my-runs/train"'
_LONGEST_FINAL = timedelta(minutes=10)
_DEFAULT_REGION = "us-east-1"


def _path(value: str) -> str:
    if not value.startswith("/") or posixpath.normpath(value).lstrip("/") in {"", "."} or ".." in value.split("/"):
        raise refused("bad_path", 'must be an absolute path without ".."; write for example paths = ["/data/ckpt"]')
    return posixpath.normpath(value)


def _bucket(value: str) -> str:
    if not _BUCKET.fullmatch(value):
        raise refused("bad_bucket", f"is no bucket with its folder; {_WRITE_BUCKET}")
    return value


def _rclone(value: str) -> str:
    if not _RCLONE.fullmatch(value):
        raise refused("bad_remote", 'is no remote of rclone with a folder; write for example rclone = "nas:runs/train"')
    return value.rstrip("/")


def _final(value: timedelta) -> timedelta:
    if value > _LONGEST_FINAL:
        raise refused("out_of_range", "must be at most 10m: the market may end the instance much sooner")
    return value


def _deadman(value: timedelta | None) -> timedelta | None:
    if value is not None and not sign_of_life.SHORTEST <= value <= sign_of_life.LONGEST:
        raise refused("out_of_range", 'must be from 1h to 30d, or "never"; write for example deadman = "6h"')
    return value


_Deadman = Annotated[
    Span | None,
    BeforeValidator(lambda value: None if value == "never" else value),
    AfterValidator(_deadman),
    WithJsonSchema({"type": "string", "pattern": r"^(never|(\d+d)?(\d+h)?(\d+m)?(\d+s)?)$", "minLength": 2}),
]


class GuardTable(Table):
    """The guard: a program in the container that keeps checkpoints in a bucket and reports how the work goes."""

    paths: Annotated[
        tuple[Annotated[Line, Field(min_length=2, max_length=1_024), AfterValidator(_path)], ...],
        Field(min_length=1, max_length=32, examples=[["/data/ckpt"]]),
    ]
    """Files and folders of the container that are a checkpoint."""
    complete: Annotated[Line, Field(min_length=1, max_length=256, examples=["*/trainer_state.json"])] | None = None
    """A folder counts as whole once a file of this pattern is in it. By default: once it did not change for 10 s."""
    ask: Literal["SIGUSR1", "none"] = "SIGUSR1"
    """The signal that asks the work for a checkpoint, or "none" if the work writes checkpoints by itself."""
    bucket: Annotated[Line, AfterValidator(_bucket), Field(max_length=512, examples=["s3://my-runs/train"])] | None = (
        None
    )
    """Bucket and folder of the checkpoints, for this workload alone. Without it the guard only writes its log."""
    rclone: Annotated[Line, AfterValidator(_rclone), Field(max_length=512, examples=["nas:runs/train"])] | None = None
    """Remote and folder of rclone's, for a store without S3. The image needs rclone, its configuration, the guard."""
    endpoint: Annotated[Line, Field(max_length=256), AfterValidator(web_address)] | None = None
    """Address of the store, for R2, B2, MinIO and others. By default: Amazon's in `region`."""
    region: Annotated[Line, Field(pattern=ONE_WORD, max_length=64, examples=["eu-central-1"])] | None = None
    """Region of the bucket; required for Amazon's."""
    credential: Annotated[Line, AfterValidator(credential_name), Field(examples=["train_bucket"])] | None = None
    """Name of the credential, or in capitals of the environment variable, with the bucket's KEY_ID:SECRET."""
    keep: Annotated[Whole, Field(ge=2, le=100)] = 2
    """How many checkpoints stay in the bucket."""
    final_within: Annotated[Span, AfterValidator(_final), Field(examples=["8s"])] = timedelta(seconds=8)
    """The most time that a last checkpoint may take once the work gets the signal to stop."""
    done_codes: (
        Annotated[tuple[Annotated[Whole, Field(ge=0, le=255)], ...], Field(max_length=16, examples=[[0]])] | None
    ) = None
    """Exit codes that say that a batch is done. By default: 0."""

    deadman: Annotated[_Deadman, Field(examples=["6h"])] = None
    """After this time without a sign of life of the daemon, the guard stops the instance. By default: "never"."""
    release_disk: Flag = True
    """Whether a paused disk may be released once gpubid finds its last checkpoint whole in the bucket."""
    destroy: Flag = False
    """Whether the dead man's switch releases the instance, if its last checkpoint is whole in the bucket."""

    logs: Flag = True
    """Whether the whole output of the work goes to the bucket too, in pieces; `gpubid logs --previous` reads it."""
    keep_host: Flag = False
    """Whether the host of a finished slot of an array goes on with the next one, where a new start takes long."""
    accept: Literal["off", "tell", "reject"] = "off"
    """What to do if a host is worse than its offer: "tell" reports it, "reject" tries another host."""

    accept_floor: Annotated[Number, Field(gt=0, lt=1, examples=[0.7])] | None = None
    """The least share of the median measured speed of its GPU model, once hosts of three owners are known."""
    accept_script: Annotated[Line, Field(min_length=1, max_length=1_024, examples=["python3 check.py"])] | None = None
    """A command of your own in the container. Exit code 0 accepts the host."""

    @model_validator(mode="after")
    def _names_a_whole_bucket(self) -> Self:
        beside = [key for key in ("endpoint", "region", "credential") if getattr(self, key) is not None]
        if self.bucket is not None and self.rclone is not None:
            raise refused("conflict", "bucket and rclone are both set; keep one: checkpoints go to one store")
        if self.bucket is None and beside:
            raise refused("conflict", f"{beside[0]} is for a bucket; {_WRITE_BUCKET}")
        if self.bucket is None and self.deadman is not None:
            raise refused(
                "missing_key", f"deadman needs a bucket: the daemon writes its signs of life there; {_WRITE_BUCKET}"
            )
        if self.bucket is None and "release_disk" in self.model_fields_set:
            raise refused("conflict", f"release_disk is for a bucket; {_WRITE_BUCKET}")
        if self.deadman is None and self.destroy:
            raise refused("conflict", 'destroy is for the dead man\'s switch; write for example deadman = "6h"')
        if self.bucket is not None and self.credential is None:
            raise refused("missing_key", 'a bucket needs its key; write for example credential = "train_bucket"')
        if self.bucket is not None and self.endpoint is None and self.region is None:
            raise refused("missing_key", 'write the region of the bucket, for example region = "eu-central-1"')
        return self

    @model_validator(mode="after")
    def _keeps_a_host_that_hears_of_it(self) -> Self:
        if self.bucket is None and self.keep_host:
            raise refused(
                "missing_key", f"keep_host needs a bucket: the guard reads there which slot is next; {_WRITE_BUCKET}"
            )
        return self

    @model_validator(mode="after")
    def _checks_a_host_for_somebody(self) -> Self:
        if self.bucket is None and self.accept != "off":
            raise refused("missing_key", f"accept needs a bucket: the guard writes its findings there; {_WRITE_BUCKET}")
        beside = [key for key in ("accept_script", "accept_floor") if getattr(self, key) is not None]
        if self.accept == "off" and beside:
            raise refused("conflict", f'{beside[0]} is for the check of a host; write for example accept = "reject"')
        return self

    def terms(self, *, is_batch: bool) -> GuardTerms:
        """Return the terms in the table. A service is never done by an exit code."""
        return GuardTerms(
            paths=self.paths,
            complete=self.complete or "",
            ask=Ask(self.ask),
            bucket=self._place(),
            rclone=self.rclone or "",
            keep=self.keep,
            logs=self.logs,
            keep_host=self.keep_host,
            final_within=self.final_within,
            deadman=self.deadman,
            destroy=self.destroy,
            accept=Accept(self.accept),
            accept_floor=self.accept_floor,
            accept_script=self.accept_script or "",
            release_disk=self.release_disk,
            done_codes=(self.done_codes if self.done_codes is not None else (0,)) if is_batch else (),
        )

    def refuse_shared_paths(self, folder: str) -> None:
        """Refuse to carry what is in a folder that instances share: a new one restores there while the old one writes.

        Raises:
            PydanticCustomError: its message says what to change.
        """
        inside = [path for path in self.paths if path == folder or path.startswith(f"{folder}/")]
        if inside and (self.bucket is not None or self.rclone is not None):
            sentence = f"{inside[0]} is on the network volume, which keeps it, and a guard restores over it at a move"
            raise refused("conflict", f"{sentence}; name paths outside of {folder}, or remove the bucket")

    def _place(self) -> Bucket | None:
        match = _BUCKET.fullmatch(self.bucket or "")
        if match is None:
            return None
        region = self.region or _DEFAULT_REGION
        endpoint = self.endpoint or f"https://s3.{region}.amazonaws.com"
        return Bucket(endpoint, region, match["name"], match["prefix"].strip("/"), self.credential or "")


def refuse_misfit(
    table: GuardTable | None,
    kind: str,
    *,
    has_command: bool,
    is_array: bool,
    log_key: str,
    variables: Collection[str],
    unit: str | None,
) -> None:
    """Refuse a guard that its workload cannot have. `log_key` names a line of the log by which a task is judged.

    Raises:
        PydanticCustomError: its message says what to change.
    """
    if table is None and unit is not None:
        raise refused("missing_key", "unit is of the number that a guard reads; write a guard table, or remove unit")
    if table is None:
        return
    if not has_command:
        raise refused("missing_key", "the guard starts the work itself; write command, onstart or onstart_file")
    if kind != "batch" and table.done_codes is not None:
        raise refused("conflict", 'done_codes is for a batch; write kind = "batch", or remove done_codes')
    if table.keep_host and not is_array:
        raise refused("conflict", 'keep_host is for an array; write kind = "batch" and at_once, or remove keep_host')
    if table.keep_host and log_key:
        sentence = f"the log of a kept host still has the {log_key} of the task before"
        raise refused("conflict", f"{sentence}; remove {log_key}: the guard reports each task's end, or keep_host")
    taken = sorted(name for name in variables if _OWN_VARIABLES.fullmatch(name))
    if taken:
        raise refused("conflict", f"{taken[0]} is the guard's own variable; give yours another name")


def misfits(config: Config) -> Iterator[tuple[str, str, str]]:
    """Yield each conflict of a guard or a start script with the whole configuration: workload, key and sentence."""
    takes = {each.name: registered_markets.record(each.name).most_script for each in config.markets}
    for work in config.workloads:
        has_guard = work.guard is not None
        if has_guard and set(work.name) == {"."}:
            yield work.name, "guard", "a name of dots is no folder of a bucket; rename the workload"
        length = len(guard_prelude.script(work.onstart) if has_guard and work.onstart else work.onstart)
        for market, longest in takes.items():
            if longest is not None and length > longest and work.may_use(market):
                own = " with the guard's own" if has_guard else ""
                said = f"has {length} characters{own}, and {market} takes {longest}"
                yield work.name, "onstart", f"{said}; let the script fetch the rest"


def shared(tables: Mapping[str, GuardTable | None]) -> Iterator[tuple[str, str]]:
    """Yield each workload whose bucket folder is, contains or is inside an earlier workload's, with the sentence."""
    before: dict[str, Bucket] = {}
    for name, table in tables.items():
        place = None if table is None else table.terms(is_batch=True).bucket
        if place is None:
            continue
        other = next((key for key, taken in before.items() if taken.holds(place) or place.holds(taken)), None)
        if other is None:
            before[name] = place
        else:
            yield name, f'is the folder of workload {other} too; write for example bucket = "s3://{place.name}/{name}"'
