"""Read agent.toml as a Config, or report every mistake in it at once."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pydantic

from agent.config import budgets, document, problems, pydantic_problems, unknown_names, value_kinds
from agent.config.files import layers, source, start_script, value_file
from agent.config.settings import Config, Listen, MarketSettings, Operators
from agent.config.workload_tables import array_keys, front_table, guard_table, market_gaps, workload_parts
from agent.config.workload_tables.workload_table import WorkloadTable
from agent.domain import money
from agent.domain.market import gpu
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.ready_sign import Liveness, Readiness, ReadySign
from agent.domain.work.run_times.run_window import Outside
from agent.domain.work.stall import OnStall, StallRule
from agent.domain.work.workload import (
    Checkpoint,
    CheckpointPlace,
    Fallback,
    ImageLogin,
    OnChange,
    Requirements,
    Runtype,
    Workload,
    WorkloadKind,
)
from agent.markets import registered_markets

MB_PER_GB = 1000
"""Markets list a 24 GB card with 24,564 MB. With 1,024 MB per GB it would count as less than 24 GB."""
HOURS_A_MONTH = 720
"""The month of `network_volume_per_month`."""
SERVICE, STATE, RUNTIME = Path("/etc/gpubid"), "/var/lib/gpubid", "/run/gpubid"
"""Where the systemd unit has its configuration, its ledger and its socket."""


def load(
    path: str | Path,
    *,
    strategies: Collection[str],
    climates: Collection[str] | None = None,
    runs_processes: Callable[[str], bool] = lambda _: False,
    check_query: Callable[[str], object] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Config:
    """Return the configuration in `path`.

    Args:
        path: the file.
        strategies: the names of the installed strategies. Files in the strategies directory add their names.
        climates: the names of the simulator's climates. With None a climate's name is not checked.
        runs_processes: returns whether the containers of a climate run commands on this machine.
        check_query: raises ValueError for a `query` that the market's search grammar does not know.
        environment: variables with STATE_DIRECTORY and RUNTIME_DIRECTORY; by default the process's own.

    Raises:
        ConfigError: with every mistake found.
    """
    place, whole = Path(path), document.installed()
    read = layers.read(place, parse_float=Decimal)
    directory = _beside(place, unknown_names.text_at(read.values, "strategies", "directory"))
    found = [
        *unknown_names.unfit_climates(read, climates, runs_processes),
        *unknown_names.unknown_strategies(read, {*strategies, *_stems(directory)}),
        *unknown_names.bad_queries(read, check_query),
        *unknown_names.unknown_markets(read),
        *unknown_names.unfit_predecessors(read),
        *unknown_names.unfit_old_names(read),
    ]
    try:
        parsed = whole.model_validate(read.values)
    except pydantic.ValidationError as error:
        found += pydantic_problems.problems_of(error, read, whole)
        raise problems.ConfigError(found) from None
    scripts, unread = _scripts(place, read, parsed)
    values, unfit_values = _values(place, read, parsed)
    found += [*_misplaced(read, parsed), *unread, *unfit_values]
    if found:
        raise problems.ConfigError(found)
    config = _config(place, read, parsed, os.environ if environment is None else environment)
    config = _with_values(_with_scripts(config, scripts), values)
    if unfit := list(_misfits(config, read)):
        raise problems.ConfigError(unfit)
    return config


def _misfits(config: Config, read: source.Source) -> Iterator[problems.Problem]:
    """Find what is wrong only beside the files of this machine, or beside other tables."""
    # `Path.is_dir` raises where this user may not look, as an operator may not into the service's state directory.
    if os.path.isdir(config.ledger):  # noqa: PTH112
        said = f"{config.ledger} is a directory; name a file in it, for example {config.ledger}/gpubid.sqlite"
        yield read.problem(("ledger", "path"), "is_directory", said)
    for name, key, said in guard_table.misfits(config):
        yield read.problem(("workloads", name, key), "misfit", said)


def _beside(place: Path, relative: str | None) -> Path | None:
    return None if relative is None else place.parent / relative


def _stems(directory: Path | None) -> set[str]:
    try:
        return {file.stem for file in directory.glob("*.toml")} if directory is not None else set()
    except (OSError, ValueError):
        return set()


def _misplaced(read: source.Source, parsed: document.Document) -> Iterator[problems.Problem]:
    """Find work that a market cannot look after, shared bucket folders, and fronts that fit no service."""
    for name, table in parsed.workloads.items():
        for below, code, sentence in market_gaps.of(name, table, parsed.markets.named):
            yield read.problem(("workloads", name, *below), code, sentence)
    for name, sentence in guard_table.shared({name: table.guard for name, table in parsed.workloads.items()}):
        yield read.problem(("workloads", name, "guard", "bucket"), "shared_bucket", sentence)
    for name, key, code, sentence in front_table.misfits(parsed.front, parsed.workloads, Path(read.file).parent):
        yield read.problem(("front", name, key), code, sentence)


def _scripts(
    place: Path, read: source.Source, parsed: document.Document
) -> tuple[dict[str, str], list[problems.Problem]]:
    """Return the scripts from files, by workload, and a problem for each script that cannot be used."""
    found: dict[str, str] = {}
    wrong: list[problems.Problem] = []
    for name, table in parsed.workloads.items():
        if table.onstart_file is None:
            continue
        try:
            found[name] = start_script.read(place.parent / table.onstart_file)
        except ValueError as error:
            wrong.append(read.problem(("workloads", name, "onstart_file"), "bad_script", str(error)))
    return found, wrong


def _values(
    place: Path, read: source.Source, parsed: document.Document
) -> tuple[dict[str, dict[str, tuple[str, ...]]], list[problems.Problem]]:
    """Return the variables with a value of each slot, by workload, and a problem for each file that cannot be used."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    wrong: list[problems.Problem] = []
    for name, table in parsed.workloads.items():
        for variable, file in value_file.named_files(table.env).items():
            try:
                found.setdefault(name, {})[variable] = value_file.read(place.parent / file, table.slots.most)
            except ValueError as error:
                wrong.append(read.problem(("workloads", name, "env", variable), "bad_values", str(error)))
    return found, wrong


def _with_values(config: Config, values: Mapping[str, Mapping[str, tuple[str, ...]]]) -> Config:
    """Return the configuration with the values that were read from files. Its digest covers them."""
    if not values:
        return config
    works = tuple(replace(work, values=tuple(values.get(work.name, {}).items())) for work in config.workloads)
    texts = ("\n".join(lines) for by_variable in values.values() for lines in by_variable.values())
    return replace(config, workloads=works, digest=layers.digest(config.digest, *texts))


def _with_scripts(config: Config, scripts: Mapping[str, str]) -> Config:
    """Return the configuration with the scripts that were read from files. Its digest covers the scripts."""
    if not scripts:
        return config
    works = tuple(replace(work, onstart=scripts.get(work.name, work.onstart)) for work in config.workloads)
    return replace(config, workloads=works, digest=layers.digest(config.digest, *scripts.values()))


def _config(place: Path, read: source.Source, parsed: document.Document, environment: Mapping[str, str]) -> Config:
    state, runtime = directories(place, environment)
    fronts = tuple(table.front(name, place) for name, table in parsed.front.items())
    named = parsed.markets.named
    drains = {front.workload: front.drain for front in sorted(fronts, key=lambda front: front.drain)}
    return Config(
        file=place,
        digest=read.digest,
        markets=tuple(_market(place, name, named[name]) for name in read.values["markets"] if name in named),
        limits=budgets.limits(
            parsed.limits,
            {name: market.budget for name, market in named.items()},
            {name: table.budget for name, table in parsed.workloads.items()},
        ),
        workloads=tuple(
            replace(_workload(name, table), drain=drains.get(name, timedelta()), has_proxy=name in drains)
            for name, table in parsed.workloads.items()
        ),
        poll=parsed.agent.poll,
        ledger=(state or Path()) / parsed.ledger.path,
        listen=_listen(parsed.web),
        strategies=_beside(place, parsed.strategies.directory),
        operators=Operators(
            parsed.operators.group or "", parsed.operators.uids, may_group_order=parsed.operators.group_may_order
        ),
        runtime=runtime,
        notify=parsed.notify.settings(),
        recording_bytes=parsed.lab.record_mb * 1_000_000 if parsed.lab.record else 0,
        log_bytes=parsed.ledger.log_mb * 1_000_000,
        ledger_server=parsed.ledger.server(place.parent),
        fronts=fronts,
    )


def directories(place: Path, environment: Mapping[str, str]) -> tuple[Path | None, Path | None]:
    """Return the directories of the ledger and of the socket: the service manager's, or the systemd unit's.

    A verb that a person runs with the service's configuration uses the service's own ledger.
    """
    defaults = (STATE, RUNTIME) if place.parent == SERVICE else ("", "")
    named = ("STATE_DIRECTORY", "RUNTIME_DIRECTORY")
    state, runtime = (
        environment.get(name, "").split(":")[0] or default for name, default in zip(named, defaults, strict=True)
    )
    return (Path(state) if state else None), (Path(runtime) if runtime else None)


def _listen(table: document.WebTable) -> Listen:
    host, _, port = table.listen.rpartition(":")
    name = host.removeprefix("[").removesuffix("]")
    return Listen(name, int(port), table.credential or "", table.webhook_credential or "", table.names)


def _market(place: Path, name: str, table: document.MarketTable) -> MarketSettings:
    own = registered_markets.record(name).options
    return MarketSettings(
        name=name,
        url=table.url,
        simulated=table.simulated or "",
        credential=table.credential or "",
        credential_file=_beside(place, table.credential_file),
        spend=table.spend,
        options=None if own is None else own(**{key: getattr(table, key) for key in own.model_fields}),
    )


def _workload(name: str, table: WorkloadTable) -> Workload:
    work = Workload(
        name=name,
        image=table.image,
        max_price=money.per_hour(table.max_price),
        strategy=table.strategy,
        requirements=_requirements(table),
        markets=table.markets,
        fallback=Fallback(table.fallback_markets, table.fallback_after),
        kind=WorkloadKind(table.kind),
        slots=table.slots.most,
        priority=table.priority,
        was=table.was or "",
        on_change=OnChange(table.on_change),
        **_worth(table),
    )
    return _with_terms(_with_rules(_with_container(work, table), table), table)


def _with_container(work: Workload, table: WorkloadTable) -> Workload:
    """Return a workload with its container: what it runs, its disk, its network and its logins."""
    return replace(
        work,
        disk_gb=table.disk_gb,
        image_gb=table.image_gb,
        dataset_gb=table.dataset_gb,
        command=table.command,
        onstart=table.onstart,
        environment=tuple(value_file.texts(table.env).items()),
        env_from=tuple(table.env_from.items()),
        image_login=_image_login(table.image_login),
        template=table.template or "",
        runtype=Runtype(table.runtype),
        ssh_keys=table.ssh_keys,
        ports=table.ports,
        ready=_ready(table),
    )


def _with_rules(work: Workload, table: WorkloadTable) -> Workload:
    """Return a workload with its rules: when its slots run, stop, fail and end."""
    return replace(
        work,
        after=table.after,
        done_line=table.done_line or "",
        max_fast_exits=table.max_fast_exits,
        max_failed_starts=table.max_failed_starts,
        idle=table.idle.rule(),
        windows=tuple(each.rule() for each in table.windows),
        outside=Outside(table.outside or "pause"),
        not_before=table.not_before,
        max_running=tuple(each.limit() for each in table.max_running),
        stalled=StallRule(_every(table.stalled_after), tuple(map(OnStall, table.stalled_then))),
    )


def _with_terms(work: Workload, table: WorkloadTable) -> Workload:
    """Return a workload with its checkpoints, prices by card, and the terms of array, demand, deadline and guard."""
    return replace(
        work,
        checkpoint=_checkpoint(table.checkpoint),
        may_lose_disk=table.may_lose_disk,
        max_price_by_gpu=_prices(table),
        network_volume_rate=money.per_hour(round((table.network_volume_per_month or Decimal()) / HOURS_A_MONTH, 6)),
        max_per_owner=table.max_per_owner,
        shadow=table.shadow,
        unit=table.unit or "",
        deadline=None if table.deadline is None else table.deadline.deadline(),
        guard=None if table.guard is None else table.guard.terms(is_batch=table.kind == "batch"),
        demand=None if table.demand is None else table.demand.demand(table.slots.least, table.shrink_after),
        array=_array(table),
    )


def _worth(table: WorkloadTable) -> dict[str, Any]:
    """Return what an hour is worth, in dollars or as a share of on-demand, as fields of a workload."""
    return {
        "value_per_hour": None if table.value_per_hour is None else money.per_hour(table.value_per_hour),
        "value_share": None if table.value is None else value_kinds.share_of_on_demand(table.value),
    }


def _array(table: WorkloadTable) -> ArrayTerms | None:
    most = table.slots.most
    return array_keys.terms(table.kind, most, table.at_once, table.order, table.retries, table.task_hours)


def _prices(table: WorkloadTable) -> tuple[tuple[gpu.GpuModel, money.UsdPerHour], ...]:
    return tuple((gpu.model(name), money.per_hour(price)) for name, price in table.max_price_by_gpu.items())


def _ready(table: WorkloadTable) -> Readiness:
    return Readiness(
        ReadySign(table.ready),
        table.ready_within,
        table.ready_line or "",
        table.ready_port or 0,
        table.ready_path,
        Liveness(_every(table.live_every), table.live_within, table.live_failures),
    )


def _checkpoint(table: workload_parts.CheckpointTable) -> Checkpoint:
    return Checkpoint(
        interval=table.interval,
        restore=timedelta(seconds=table.restore_seconds),
        size_gb=table.size_gb,
        place=CheckpointPlace(table.at),
        takes=table.takes,
    )


def _image_login(table: workload_parts.ImageLoginTable | None) -> ImageLogin | None:
    return None if table is None else ImageLogin(table.registry, table.user, table.credential)


def _every(span: timedelta | str) -> timedelta:
    """Return a time; zero if it is "off"."""
    return span if isinstance(span, timedelta) else timedelta()


def _requirements(table: WorkloadTable) -> Requirements:
    return Requirements(
        gpus=table.gpus,
        gpu_models=tuple(gpu.model(name) for name in table.gpu),
        min_vram_mb=None if table.min_vram_gb is None else round(table.min_vram_gb * MB_PER_GB),
        min_reliability=table.min_reliability,
        verified_only=table.verified,
        network_volume=table.network_volume or "",
        datacenter_only=table.datacenter,
        regions=table.regions,
        min_inet_down_mbps=table.min_inet_down,
        min_end_ahead=table.min_end_ahead,
        query=table.query,
    )
