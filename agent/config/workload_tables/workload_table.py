"""The table of one workload: its work, its requirements, its prices, and its signs of readiness and progress."""

from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from agent.config import problems
from agent.config.budgets import BudgetTable
from agent.config.toml_table import Table
from agent.config.value_kinds import (
    IMAGE_NAME,
    ONE_WORD,
    SSH_KEY,
    URL_PATH,
    VARIABLE_NAME,
    WORKLOAD_NAME,
    Dollars,
    Flag,
    Line,
    Number,
    Price,
    Script,
    ShareOfOnDemand,
    Span,
    Whole,
    credential_name,
    no_private_key,
    refused,
)
from agent.config.workload_tables import array_keys, demand_table, guard_table, idle_table, running_table, window_table
from agent.config.workload_tables.deadlines import DeadlineTable, refuse_misfit
from agent.config.workload_tables.workload_parts import CheckpointTable, ImageLoginTable
from agent.domain.market import gpu


def _models(value: tuple[str, ...]) -> tuple[str, ...]:
    seen: dict[str, str] = {}
    for name in value:
        model = gpu.model(name)
        if not model:
            raise refused("empty", 'an entry names no model; write for example gpu = ["RTX 4090"]')
        if model in seen:
            raise refused("duplicate", f"{model} is named twice; keep one")
        seen[model] = name
    return value


def _measures(value: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(value)) < len(value):
        raise refused("duplicate", "a measure is named twice; keep one")
    if "hold" in value[:-1]:
        raise refused("conflict", f"nothing follows a hold, which waits for a person; remove {value[-1]}")
    return value


def _prices(value: dict[str, Decimal]) -> dict[str, Decimal]:
    _models(tuple(value))
    return value


class WorkloadTable(Table):
    """A workload: the work, its GPUs and its highest price."""

    image: Annotated[Line, Field(pattern=IMAGE_NAME, max_length=512, examples=["pytorch/pytorch:latest"])]
    """Container image."""
    max_price: Annotated[Price, Field(examples=[0.45])]
    """The most that one slot may cost per hour in dollars, with disk."""
    max_price_by_gpu: Annotated[
        dict[Annotated[str, Field(min_length=1, max_length=64)], Price],
        Field(max_length=16, examples=[{"RTX 4090": 0.35, "H100 SXM": 2.1}]),
        AfterValidator(_prices),
    ] = {}  # noqa: RUF012 - pydantic copies it
    """The highest price of single GPU models. For a model that is not named here, `max_price` counts."""
    value_per_hour: Annotated[Price, Field(examples=[0.9])] | None = None
    """What an hour of the work in one slot is worth to you, in dollars. Without this key: `max_price`."""
    value: ShareOfOnDemand | None = None
    """The same as a share of the on-demand price that your markets ask now, such as "0.8 x on_demand"."""
    strategy: Annotated[Line, Field(min_length=1, max_length=64, examples=["patient"])]
    """A built-in strategy, or the stem of a file in the strategies directory."""
    shadow: Annotated[
        tuple[Annotated[Line, Field(min_length=1, max_length=64)], ...], Field(max_length=4, examples=[["hedged"]])
    ] = ()
    """Strategies that decide beside it on paper and spend nothing. `gpubid shadow` shows their cost."""
    markets: Annotated[
        tuple[Annotated[Line, Field(min_length=1, max_length=64)], ...], Field(max_length=16, examples=[["vast"]])
    ] = ()
    """Markets on which to rent. Without this key: every market that is configured."""
    fallback_markets: Annotated[
        tuple[Annotated[Line, Field(min_length=1, max_length=64)], ...], Field(max_length=16, examples=[["dstack"]])
    ] = ()
    """Markets on which to rent only once a slot has been down for `fallback_after`."""
    fallback_after: Annotated[Span, Field(le=timedelta(days=7), examples=["10m"])] = timedelta(minutes=10)
    """How long a slot is down before its fallback markets are used."""
    command: Annotated[Script, Field(max_length=65_536, examples=["python train.py"])] = ""
    """Command that the container runs instead of its own entry point."""
    onstart: Annotated[Script, Field(max_length=65_536, examples=["python train.py"])] = ""
    """Shell script that runs when the instance starts."""
    onstart_file: Annotated[Line, Field(min_length=1, max_length=4096, examples=["start.sh"])] | None = None
    """File with that script, relative to agent.toml. It is read at every start and reload."""
    env: Annotated[
        dict[Annotated[str, Field(pattern=VARIABLE_NAME)], Annotated[Script, Field(max_length=32_768)]],
        Field(max_length=256, examples=[{"EPOCHS": "90"}]),
    ] = {}  # noqa: RUF012 - pydantic copies it
    """Environment of the container. "@lr.txt" gives each slot its line of that file, relative to agent.toml."""
    env_from: Annotated[
        dict[Annotated[str, Field(pattern=VARIABLE_NAME)], Annotated[Line, AfterValidator(credential_name)]],
        Field(max_length=64, examples=[{"HF_TOKEN": "hf_token"}]),
    ] = {}  # noqa: RUF012 - pydantic copies it
    """Variables of the container whose value is a credential. Write the credential's name."""
    image_login: ImageLoginTable | None = None
    """Login for a private image."""
    template: Annotated[Line, Field(pattern=ONE_WORD, max_length=64, examples=["a1b2c3d4"])] | None = None
    """Hash of a template of the market to start from. The keys of this file outrank the template."""
    runtype: Literal["auto", "args", "ssh", "ssh_direct", "jupyter"] = "auto"
    """How the container starts. "auto" runs the command if there is one, else a shell."""
    ssh_keys: Annotated[
        tuple[Annotated[Line, BeforeValidator(no_private_key), Field(pattern=SSH_KEY, max_length=4_096)], ...],
        Field(max_length=16, examples=[["ssh-ed25519 AAAA... me"]]),
    ] = ()
    """Public keys that may log in, besides the account's own. Vast.ai also registers them with each instance."""
    disk_gb: Annotated[Number, Field(ge=1, le=100_000)] = 20.0
    """Gigabytes of disk."""
    image_gb: Annotated[Number, Field(ge=0, le=1_000)] = 5.0
    """Gigabytes of the image as pulled."""
    slots: demand_table.Slots = demand_table.SlotRange(least=1, most=1)
    """How many slots must run, or { least, most } between which a demand chooses. 0 parks the workload."""
    demand: demand_table.DemandTable | None = None
    """Where the wanted number of slots is read, for a service that works off a queue of yours."""
    shrink_after: Annotated[Span, Field(le=timedelta(days=1), examples=["10m"])] = timedelta(minutes=10)
    """Fewer slots are wanted once every answer of this long wanted fewer."""
    at_once: Annotated[Whole, Field(ge=1, le=1_000, examples=[8])] | Literal["purse"] | None = None
    """The most slots of a batch that are live at once: 8 if there are more. "purse": as many as the budgets allow."""
    order: Literal["index", "random"] | None = None
    """The order in which the slots of a batch begin: the lowest number first, or shuffled."""
    retries: Annotated[Whole, Field(ge=0, le=100, examples=[2])] | None = None
    """How often a slot of a batch whose work failed is tried again on another host before it is held. Without it: 0."""
    task_hours: Annotated[Number, Field(gt=0, le=10_000, examples=[1.5])] | None = None
    """Hours of one slot's work, at most. A budget of an array counts with it until five slots are done."""
    after: Annotated[
        tuple[Annotated[Line, Field(pattern=WORKLOAD_NAME)], ...], Field(max_length=16, examples=[["prepare"]])
    ] = ()
    """Batches that must be done before its slots begin."""
    gpu: Annotated[
        tuple[Annotated[Line, Field(min_length=1, max_length=64)], ...],
        Field(min_length=1, max_length=64, examples=[["RTX 4090"]]),
        AfterValidator(_models),
    ] = ()
    """GPU models to accept. Without this key: any model."""
    gpus: Annotated[Whole, Field(ge=1, le=64)] = 1
    """GPUs per slot."""
    min_vram_gb: Annotated[Number, Field(gt=0, le=10_000, examples=[24])] | None = None
    """The least memory of one GPU, in gigabytes of 1000 MB, as cards are advertised."""
    min_reliability: Annotated[Number, Field(ge=0, le=1, examples=[0.98])] | None = None
    """The least advertised reliability of the host."""
    verified: Flag = True
    """Whether to accept only hosts that the market verified."""
    network_volume: (
        Annotated[Line, Field(pattern=r"^[A-Za-z0-9_-]+$", max_length=64, examples=["agv6w2qcg7"])] | None
    ) = None
    """RunPod's id of a network volume of yours, mounted at /workspace. Only its data centre is then used."""
    network_volume_per_month: Annotated[Dollars, Field(ge=0, le=100_000, examples=[7.0])] | None = None
    """What that volume costs in a month of 720 hours, in dollars, from your bill. Budgets and spend count it."""
    datacenter: Flag = False
    """Whether to accept only hosts that the market says are in a data centre. On RunPod that is the Secure cloud."""
    regions: Annotated[
        tuple[Annotated[Line, Field(min_length=1, max_length=64)], ...], Field(max_length=64, examples=[["US", "SE"]])
    ] = ()
    """Country codes or names to accept. Empty means anywhere."""
    min_inet_down: Annotated[Number, Field(ge=0, le=1_000_000, examples=[200])] | None = None
    """The least download speed in Mb/s."""
    min_end_ahead: Annotated[Span, Field(examples=["2h"])] = timedelta(hours=2)
    """gpubid does not rent a host that leaves the market sooner than this."""
    max_per_owner: Annotated[Whole, Field(ge=1, le=1_000, examples=[2])] | None = None
    """The most slots on hosts of one owner. Two slots never use one host."""
    query: Annotated[Line, Field(max_length=2_048, examples=["cuda_vers >= 12.4"])] = ""
    """More filters, for Vast.ai only, in the grammar of `vastai search offers`."""
    kind: Literal["batch", "service"] = "service"
    """A batch ends by itself. A service runs until a person stops it."""
    done_line: Annotated[Line, Field(min_length=1, max_length=256, examples=["training complete"])] | None = None
    """Text of a log line that says that a batch is done. Without this key, the end of the container says so."""
    max_fast_exits: Annotated[Whole, Field(ge=1, le=100)] = 3
    """The workload is held after it failed at once on this many hosts; while a lease works it only rents nothing."""
    max_failed_starts: Annotated[Whole, Field(ge=1, le=1_000)] = 12
    """After this many failed starts within a day the workload is held; while a lease works it only rents nothing."""
    ports: Annotated[tuple[Annotated[Whole, Field(ge=1, le=65_535)], ...], Field(max_length=32, examples=[[8000]])] = ()
    """Ports of the container to open to the outside."""
    ready: Literal["none", "log", "port", "http"] = "none"
    """The sign that useful work has begun: none, a line of the log, a port that answers, or a page on that port."""
    ready_within: Annotated[Span, Field(examples=["15m"])] = timedelta(minutes=15)
    """The most time from running to ready. A lease that needs longer is released. Time in which gpubid did not probe it
    does not count."""
    ready_line: Annotated[Line, Field(min_length=1, max_length=256, examples=["startup complete"])] | None = None
    """Text that a line of the log contains, for ready = "log"."""
    ready_port: Annotated[Whole, Field(ge=1, le=65_535, examples=[8000])] | None = None
    """Port of the container, for ready = "port" and "http"; `ports` must contain it."""
    ready_path: Annotated[Line, Field(pattern=URL_PATH, max_length=256)] = "/"
    """Path that answers 2xx, for ready = "http"."""
    live_every: Annotated[Span, Field(le=timedelta(hours=1), examples=["30s"])] | Literal["off"] = timedelta(seconds=30)
    """The time between two probes of a service that was ready, for ready = "port" and "http"; "off" probes no more."""
    live_within: Annotated[Span, Field(ge=timedelta(0, 1), le=timedelta(0, 60), examples=["5s"])] = timedelta(seconds=5)
    """The most time for the answer to such a probe."""
    live_failures: Annotated[Whole, Field(ge=1, le=100)] = 2
    """After this many probes in a row without an answer it is restarted in place, and then moved to another host."""
    checkpoint: CheckpointTable = CheckpointTable()
    """How the workload keeps checkpoints."""
    idle: idle_table.IdleTable = idle_table.IdleTable()
    """The rule for idle GPUs."""
    max_running: running_table.MaxRunning = ()
    """The most time that the workload, or each lease of it, runs from when it first is ready: a time, or a table."""
    windows: Annotated[tuple[window_table.WindowTable, ...], Field(max_length=32)] = ()
    """The times in which the workload may run. Without them it always may."""
    outside: Literal["pause", "release"] | None = None
    """What happens to its leases outside of its windows: pause them, the default, or release them."""
    not_before: window_table.NotBefore | None = None
    """Nothing is rented for the workload before this time."""
    stalled_after: Annotated[Span, Field(ge=timedelta(minutes=5), examples=["45m"])] | Literal["off"] = "off"
    """The work is stalled after this long without progress: no new line of its log, report, step or checkpoint."""
    stalled_then: Annotated[
        tuple[Literal["warn", "restart", "move", "hold"], ...],
        Field(min_length=1, max_length=4),
        AfterValidator(_measures),
    ] = ("warn", "restart", "move", "hold")
    """The measures against stalled work, in this order, each after another `stalled_after` without progress."""
    guard: guard_table.GuardTable | None = None
    """The guard, which keeps the work's checkpoints in a bucket."""
    unit: Annotated[Line, Field(pattern=ONE_WORD, max_length=32, examples=["step"])] | None = None
    """Unit of the number that the work writes for its guard. `gpubid spend --by workload` shows dollars per unit."""
    dataset_gb: Annotated[Number, Field(ge=0, le=1_000_000)] = 0.0
    """Gigabytes of data that every new host fetches."""
    deadline: DeadlineTable | None = None
    """The deadline of the work."""
    on_change: Literal["keep", "move"] = "keep"
    """What to do with running leases when image, GPU or disk change: keep them, or move to new ones."""
    was: Annotated[Line, Field(pattern=WORKLOAD_NAME, examples=["train"])] | None = None
    """The old name of a renamed workload. The workload keeps its leases, its spend and what was measured of it. No
    workload of the file may have that name."""
    priority: Annotated[Whole, Field(ge=-1_000, le=1_000)] = 0
    """Past a cap, gpubid pauses the lowest priority first."""
    budget: BudgetTable = BudgetTable()
    """Limits on the cost of this workload."""
    may_lose_disk: Flag = False
    """Whether gpubid may release a paused disk that may hold the only checkpoint."""

    @model_validator(mode="after")
    def _starts_one_way(self) -> Self:
        if self.onstart and self.onstart_file:
            raise refused("conflict", "onstart and onstart_file are both set; keep one of the two scripts")
        if self.command and (self.onstart or self.onstart_file):
            key = "onstart" if self.onstart else "onstart_file"
            sentence = f"command and {key} are both set; keep one: {key} replaces the entry point by a shell"
            raise refused("conflict", sentence)
        return self

    @model_validator(mode="after")
    def _prices_what_it_accepts(self) -> Self:
        accepted = {gpu.model(name) for name in self.gpu}
        for name in self.max_price_by_gpu:
            if accepted and gpu.model(name) not in accepted:
                sentence = f"max_price_by_gpu has a price for {gpu.model(name)}, which gpu does not accept"
                raise refused("unknown_model", f"{sentence}; {problems.nearest(gpu.model(name), accepted)}")
        return self

    @model_validator(mode="after")
    def _states_one_value(self) -> Self:
        if self.value is not None and self.value_per_hour is not None:
            raise refused("conflict", "value and value_per_hour are both set; keep one: the share, or the dollars")
        return self

    @model_validator(mode="after")
    def _names_each_market_once(self) -> Self:
        if len(set(self.markets)) < len(self.markets):
            raise refused("duplicate", "a market is named twice; keep one")
        twice = sorted({*self.markets} & {*self.fallback_markets})
        if twice:
            raise refused("conflict", f"{twice[0]} is in markets and in fallback_markets; keep one")
        return self

    @model_validator(mode="after")
    def _keeps_its_data_on_its_volume(self) -> Self:
        if self.network_volume is not None and self.checkpoint.at == "disk":
            sentence = "a network volume outlives every lease, so its checkpoints are on no lease's disk"
            raise refused("conflict", f'{sentence}; write at = "remote" in the checkpoint table')
        if self.network_volume is None and self.network_volume_per_month is not None:
            raise refused("conflict", "network_volume_per_month is the price of a network_volume; name the volume too")
        if self.network_volume is not None and self.guard is not None:
            self.guard.refuse_shared_paths("/workspace")
        return self

    @model_validator(mode="after")
    def _can_tell_its_end(self) -> Self:
        if self.kind == "batch" and self.guard is not None and self.guard.bucket is None and self.done_line is None:
            # The guard sleeps after the work is done, and a container that sleeps bills until somebody sees the end.
            sentence = "a guard without a bucket has nowhere to report that the work is done"
            raise refused("never_done", f"{sentence}; write bucket in the guard's table, or done_line")
        return self

    @model_validator(mode="after")
    def _has_needed_keys(self) -> Self:
        if self.done_line is not None and self.kind != "batch":
            raise refused("conflict", 'done_line is for a batch; write kind = "batch", or remove done_line')
        if self.ready == "log" and self.ready_line is None:
            raise refused("missing_key", 'ready = "log" needs the line; write for example ready_line = "ready"')
        if self.ready in {"port", "http"} and self.ready_port is None:
            raise refused("missing_key", f'ready = "{self.ready}" needs the port; write for example ready_port = 8000')
        if self.ready_port is not None and self.ready_port not in self.ports:
            raise refused("bad_port", f"ready_port {self.ready_port} is not open; write ports = [{self.ready_port}]")
        if self.command and self.runtype not in {"auto", "args"}:
            raise refused("conflict", f'a command runs with runtype = "args", not "{self.runtype}"; use onstart for it')
        if self.ssh_keys and (self.command or self.runtype == "args"):
            raise refused("conflict", "ssh_keys need a shell; use onstart in place of command, or remove ssh_keys")
        return self

    @model_validator(mode="after")
    def _fits_its_parts(self) -> Self:
        has_bucket = self.guard is not None and self.guard.bucket is not None
        named = {"at_once": self.at_once, "order": self.order, "retries": self.retries, "task_hours": self.task_hours}
        array_keys.refuse_misfit(self.kind, {key: value for key, value in named.items() if value is not None})
        array_keys.refuse_lost_disks(self.retries, self.checkpoint.at, may_lose_disk=self.may_lose_disk)
        idle_table.refuse_misfit(self.idle, self.checkpoint.at, may_lose_disk=self.may_lose_disk)
        running_table.refuse_misfit(self.max_running, self.checkpoint.at, may_lose_disk=self.may_lose_disk)
        has_deadline, place = self.deadline is not None, self.checkpoint.at
        window_table.refuse_misfit(
            self.windows, self.outside, place, has_deadline=has_deadline, may_lose_disk=self.may_lose_disk
        )
        demand_table.refuse_misfit(
            self.slots,
            self.kind,
            has_demand=self.demand is not None,
            is_shrink_set="shrink_after" in self.model_fields_set,
            has_deadline=has_deadline,
        )
        refuse_misfit(self.deadline, self.kind, self.slots.most, self.ports, has_bucket=has_bucket)
        has_command = bool(self.command or self.onstart or self.onstart_file)
        variables = self.env.keys() | self.env_from.keys()
        guard_table.refuse_misfit(
            self.guard,
            self.kind,
            has_command=has_command,
            is_array=array_keys.is_array(self.kind, self.slots.most, named),
            log_key=next((key for key in ("done_line", "ready_line") if getattr(self, key) is not None), ""),
            variables=variables,
            unit=self.unit,
        )
        twice = sorted(self.env.keys() & self.env_from.keys())
        if twice:
            raise refused("conflict", f"{twice[0]} is in env and in env_from; keep one")
        return self
