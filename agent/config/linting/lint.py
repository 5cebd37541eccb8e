"""Findings in a valid configuration that are probably mistakes, each with its key and a fix.

Invariants:
1. A finding is no error: the offers and prices of markets change, and gpubid may not know of it.
"""

import difflib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from agent.config import problems
from agent.config.linting import budget_mistakes, unheard_rules
from agent.config.linting.lint_finding import Finding
from agent.config.settings import Config
from agent.config.workload_tables import card_lists
from agent.config.workload_tables.card_lists import CardList
from agent.decide.limits import first_tasks
from agent.domain import card_benchmarks
from agent.domain.market import card_memory, countries, subdivisions
from agent.domain.market.gpu import GpuModel
from agent.domain.market.market_rules import Survives
from agent.domain.money import FREE, Usd, UsdPerHour
from agent.domain.record import budget
from agent.domain.work.idle_rule import OnIdle
from agent.domain.work.run_times.running_limit import LimitOf
from agent.domain.work.stall import StallRule
from agent.domain.work.workload import CheckpointPlace, Fallback, Workload
from agent.markets import registered_markets
from agent.markets.market_record import MarketRecord

DEAR_TIMES = 10
"""A price of more than this many times the market's lowest for the same card is probably a mistake."""
MOST_DISK_GB = 8_000.0
MB_SLACK = 1.025
"""Cards are sold in gigabytes of 1000 MB and report gigabytes of 1024 MB."""
MB_PER_GB = 1000.0
_RANKING_WITHOUT_VALUE = frozenset({"ondemand", "deadline"})
"""Strategies that rent what costs more than it is worth. `deadline` bids the value where a bid is a limit."""
SLOT_NUMBER = "GPUBID_SLOT"
"""The variable with the slot's number."""
_PLACES = {
    spelling: name
    for name in sorted(countries.NAMES | subdivisions.NAMES)
    for spelling in (name.casefold(), f"the {name.casefold()}")
}
"""Names of places by their spellings: some markets write "The Netherlands"."""


@dataclass(frozen=True, slots=True)
class Known:
    """Facts from outside the file: the time, and facts from the ledger."""

    now: datetime
    prices: Mapping[GpuModel, UsdPerHour] = field(default_factory=dict)
    """The lowest floor or ask that was seen for each model, per card and hour."""
    credits: Mapping[str, Usd] = field(default_factory=dict)
    """The last known credit of each market's account, by market."""
    regions: Collection[str] = ()
    """Regions as the markets' offers showed them, for example "Texas, US"."""
    card_lists: Mapping[str, CardList] = field(default_factory=dict)
    """Dated lists of the cards that markets sell, by market."""
    cards_seen: Collection[tuple[str, GpuModel]] = ()
    """Markets with the models of their offers."""


def findings(config: Config, known: Known) -> tuple[Finding, ...]:
    """Return the findings in the order of the file's parts."""
    return (
        *budget_mistakes.findings(config, known.credits),
        *_looks(config),
        *unheard_rules.findings(config),
        *(finding for work in config.workloads for finding in _workload(work, config, known)),
    )


def _looks(config: Config) -> Iterator[Finding]:
    """Find markets that are listed too rarely to prove that an instance there has ended."""
    for record in (registered_markets.record(each.name) for each in config.markets):
        within = record.rules.proves_ends_within
        # A pass takes time of its own.
        if within is not None and config.poll > within / 2:
            sentence = f"{record.name} proves no end by listings so far apart: an ended instance counts as billing"
            yield Finding("agent.poll", sentence, f'write poll = "{within.total_seconds() / 2:.0f}s", or less')


def _workload(work: Workload, config: Config, known: Known) -> Iterator[Finding]:
    name = problems.dotted(("workloads", work.name))
    yield from _cards(work, name, config)
    yield from _unsold(work, name, known)
    yield from _price(work, name, config, known)
    yield from _worth(work, name)
    yield from _unranked(work, name, config)
    yield from _volume(work, name)
    yield from _regions(work, name, known.regions)
    yield from _places(work, name, config)
    yield from _disk(work, name)
    yield from _deadline(work, name, known.now)
    yield from _checkpoints(work, name)
    yield from _guard(work, name, config)
    yield from _number(work, name)
    yield from _first_tasks(work, name, config)
    yield from _unused(work, name)


def _first_tasks(work: Workload, name: str, config: Config) -> Iterator[Finding]:
    """Find an array whose budget lets few slots begin, because nothing says yet what a task costs."""
    sentence = first_tasks.stopped_starts(work, config.limits.hard(budget.of_workload(work.name)))
    if sentence is not None:
        yield Finding(f"{name}.task_hours", sentence, "lower task_hours or max_price, or name the cards in gpu")


def _unused(work: Workload, name: str) -> Iterator[Finding]:
    """Find a key that has no effect without another one."""
    if not work.stalled.is_asked and work.stalled.then != StallRule().then:
        sentence = "has no effect without stalled_after: nothing finds stalled work"
        yield Finding(f"{name}.stalled_then", sentence, 'write stalled_after, for example "45m", or remove it')
    if not work.fallback.markets and work.fallback.after != Fallback().after:
        sentence = "has no effect without fallback_markets: no other market is used while a slot is down"
        yield Finding(f"{name}.fallback_after", sentence, "write fallback_markets, or remove it")
    if work.strategy in work.shadow:
        sentence = f"{work.strategy} decides here already: on paper it decides the same"
        yield Finding(f"{name}.shadow", sentence, "write other strategies, or remove it")


def _worth(work: Workload, name: str) -> Iterator[Finding]:
    """Find a price at which an hour costs more than it is said to be worth."""
    named = {problems.dotted(("max_price_by_gpu", model)): price for model, price in work.max_price_by_gpu}
    for key, price in {"max_price": work.max_price, **named}.items():
        if work.value_per_hour is not None and price > work.value_per_hour:
            sentence = f"up to {price} may be paid for an hour that is worth {work.value_per_hour} (value_per_hour)"
            yield Finding(f"{name}.{key}", sentence, "lower it to value_per_hour, or raise value_per_hour")


def _unranked(work: Workload, name: str, config: Config) -> Iterator[Finding]:
    """Find a value of an hour by which the strategy ranks no offer."""
    rules = [registered_markets.record(each.name).rules for each in config.markets if work.may_use(each.name)]
    bids_the_value = work.strategy == "deadline" and any(each.has_limits for each in rules)
    if bids_the_value or not {work.strategy, *work.shadow} <= _RANKING_WITHOUT_VALUE:
        return
    for key, value in (("value_per_hour", work.value_per_hour), ("value", work.value_share)):
        if value is not None:
            sentence = f"{work.strategy} rents up to max_price, whatever an hour is worth: this only prices idle hours"
            yield Finding(f"{name}.{key}", sentence, 'write strategy = "patient" or "hedged", or remove it')


def _volume(work: Workload, name: str) -> Iterator[Finding]:
    """Find a network volume that bills past every budget."""
    if work.requirements.network_volume and work.network_volume_rate == FREE:
        sentence = "bills by the hour whether or not anything runs, and no budget counts it"
        fix = "write network_volume_per_month, in dollars, from your bill"
        yield Finding(f"{name}.network_volume", sentence, fix)


def _number(work: Workload, name: str) -> Iterator[Finding]:
    """Find slots that all get the same number, because their workload sets it itself."""
    for table, variables in (("env", work.environment), ("env_from", work.env_from)):
        if work.slots > 1 and SLOT_NUMBER in {variable for variable, _ in variables}:
            sentence = f"all {work.slots} slots get this value in place of their own number"
            yield Finding(f"{name}.{table}.{SLOT_NUMBER}", sentence, "remove it, or give the variable another name")


def _checkpoints(work: Workload, name: str) -> Iterator[Finding]:
    """Find checkpoints that take all the time between them."""
    takes, interval = work.checkpoint.takes, work.checkpoint.interval
    if takes is None or takes < interval or work.checkpoint.place is CheckpointPlace.NONE:
        return
    sentence = (
        f"a checkpoint takes {problems.duration_text(takes)} and the next is due after "
        f"{problems.duration_text(interval)} (checkpoint.interval), so no time is left for work"
    )
    yield Finding(f"{name}.checkpoint.takes", sentence, "write a longer interval, or the time that a checkpoint takes")


def _guard(work: Workload, name: str, config: Config) -> Iterator[Finding]:
    """Find a guard whose checkpoints help nobody, or whose bucket some rented instances cannot reach."""
    if work.guard is None:
        return
    place = work.guard.bucket
    if work.checkpoint.place is CheckpointPlace.NONE:
        sentence = "says that nothing is kept, but the guard keeps checkpoints"
        yield Finding(f"{name}.checkpoint.at", sentence, 'write at = "remote" with a bucket, else at = "disk"')
    elif work.checkpoint.place is CheckpointPlace.REMOTE and not (
        work.guard.is_carrying or work.requirements.network_volume
    ):
        sentence = "the guard has no bucket: it carries no checkpoint to another host"
        yield Finding(f"{name}.guard", sentence, 'write bucket, or checkpoint.at = "disk"')
    takes, within = work.checkpoint.takes, work.guard.final_within
    if place is not None and takes is not None and takes >= within:
        estimate = f"a checkpoint takes {problems.duration_text(takes)} by checkpoint.takes"
        sentence = f"{estimate}, a last one gets {problems.duration_text(within)}: it is never in the bucket in time"
        yield Finding(f"{name}.guard.final_within", sentence, "write more than takes and its upload together")
    away = [market.name for market in config.markets if not market.is_on_this_machine]
    if place is not None and away and place.is_on_this_machine:
        sentence = f"is on this machine: no instance on {' or '.join(away)} reaches it"
        yield Finding(f"{name}.guard.endpoint", sentence, "write an address that those instances reach")


def _cards(work: Workload, name: str, config: Config) -> Iterator[Finding]:
    for model in work.requirements.gpu_models:
        yield from _unknown_card(f"{name}.gpu", model, _own_cards(work, config))
    wanted = work.requirements.min_vram_mb
    sizes = [card_memory.GIGABYTES.get(model) for model in work.requirements.gpu_models or card_memory.GIGABYTES]
    if wanted is None or any(size is None or wanted <= size * MB_PER_GB * MB_SLACK for size in sizes):
        return
    most = max(size for size in sizes if size is not None)
    sentence = f"no card that is accepted has {wanted / MB_PER_GB:g} GB of memory; the largest has {most}"
    yield Finding(f"{name}.min_vram_gb", sentence, f"write {most} or less, or accept other cards in gpu")


def _unsold(work: Workload, name: str, known: Known) -> Iterator[Finding]:
    """Find markets that the workload names and that sell none of its cards."""
    for key, markets in {"markets": work.markets, "fallback_markets": work.fallback.markets}.items():
        for market in (each for each in markets if each in known.card_lists):
            models, listed = work.requirements.gpu_models, known.card_lists[market]
            for reason in card_lists.unsold(market, key, models, listed, known.cards_seen):
                yield Finding(f"{name}.{key}", reason.sentence, reason.fix)


def _own_cards(work: Workload, config: Config) -> frozenset[str]:
    """Return the names of cards that only a market of this workload uses."""
    records = (registered_markets.record(each.name) for each in config.markets if work.may_use(each.name))
    return frozenset(card for record in records for card in record.own_cards)


def _unknown_card(key: str, model: GpuModel, own: frozenset[str]) -> Iterator[Finding]:
    if model not in card_memory.GIGABYTES and model not in own:
        near = difflib.get_close_matches(model, card_memory.GIGABYTES, n=1, cutoff=0.6)
        fix = f'did you mean "{near[0]}"?' if near else "compare the market's own list"
        yield Finding(key, f"gpubid knows no card {problems.shown(model)}", fix)


def _regions(work: Workload, name: str, seen: Collection[str]) -> Iterator[Finding]:
    """Find codes of no country, and names that neither gpubid knows nor an offer has shown."""
    shown = {part.strip().casefold() for region in seen for part in region.split(",")} - {""}
    for region in work.requirements.regions:
        parts = [part.strip() for part in region.split(",") if part.strip()]
        unknown = [part for part in parts if part.casefold() not in shown and not _is_place(part)]
        if unknown:
            yield _unknown_place(f"{name}.regions", unknown[0])


def _places(work: Workload, name: str, config: Config) -> Iterator[Finding]:
    """Find markets on which a required place is never known, so that nothing is rented there."""
    wants = work.requirements
    records = [registered_markets.record(each.name) for each in config.markets if work.may_use(each.name)]
    silent = [record.name for record in records if wants.datacenter_only and not record.shows_datacenter]
    if silent:
        sentence = f"{' and '.join(silent)} does not show whether a host is in a data centre: nothing is rented there"
        yield Finding(f"{name}.datacenter", sentence, "remove the key, or name the other markets in `markets`")
    without = [record.name for record in records if wants.network_volume and not record.mounts_volumes]
    if without:
        sentence = f"{' and '.join(without)} mounts no network volume: nothing is rented there"
        mounting = [record.name for record in registered_markets.installed().values() if record.mounts_volumes]
        yield Finding(f"{name}.network_volume", sentence, f"write markets = {json.dumps(mounting)}")
    blind = [record.name for record in records if not record.shows_gpu_use]
    if blind and work.idle.then is not OnIdle.WARN and work.guard is None:
        sentence = f"{' and '.join(blind)} does not show how much GPUs are used: idle ones are not found there"
        yield Finding(f"{name}.idle.then", sentence, f"write [{name}.guard], which shows it")
    yield from _means(work, name, records)


def _means(work: Workload, name: str, records: Sequence[MarketRecord]) -> Iterator[Finding]:
    """Find markets without something that the work needs: ports from outside, or a disk that outlives a loss."""
    closed = [record.name for record in records if work.ports and not record.opens_ports]
    if closed:
        asking = all(registered_markets.record(name).asks_pages for name in closed)
        is_seen = work.is_reachable(opens_ports=False, asks_pages=asking)
        what = "a slot there is not in /services" if is_seen else "nothing is rented there"
        sentence = f"{' and '.join(closed)} opens no ports to the outside: {what}"
        yield Finding(
            f"{name}.ports", sentence, "name the other markets in `markets`, or let a log line tell readiness"
        )
    is_kept = work.checkpoint.place is CheckpointPlace.DISK and not work.may_lose_disk
    lost = [record.name for record in records if is_kept and record.rules.survives is Survives.NOTHING]
    if lost:
        sentence = (
            f"{' and '.join(lost)} keeps no disk of a lost instance: nothing is rented there with checkpoints on it"
        )
        yield Finding(f"{name}.checkpoint.at", sentence, 'write at = "remote", or may_lose_disk = true')


def _is_place(name: str) -> bool:
    if len(name) == countries.CODE_LETTERS:
        return name.upper() in countries.CODES
    return name.casefold() in _PLACES or subdivisions.DATA_CENTRE.fullmatch(name) is not None


def _unknown_place(key: str, name: str) -> Finding:
    if len(name) == countries.CODE_LETTERS:
        fix = 'write an ISO code such as "US", or a name'
        return Finding(key, f"{problems.shown(name)} is the code of no country", fix)
    near = difflib.get_close_matches(name.casefold(), _PLACES, n=1, cutoff=0.8)
    fix = f'did you mean "{_PLACES[near[0]]}"?' if near else 'write the codes of countries, such as "US"'
    sentence = f"gpubid knows no country, state or data centre {problems.shown(name)}, and no offer was seen there"
    return Finding(key, sentence, fix)


def _price(work: Workload, name: str, config: Config, known: Known) -> Iterator[Finding]:
    own = {model for model, _ in work.max_price_by_gpu}
    others = [model for model in work.requirements.gpu_models if model not in own]
    if others or not own or not work.requirements.gpu_models:
        yield from _one_price(f"{name}.max_price", work.max_price, others, work, config, known)
    for model, price in work.max_price_by_gpu:
        key = f"{name}.{problems.dotted(('max_price_by_gpu', model))}"
        yield from _unknown_card(key, model, _own_cards(work, config))
        yield from _one_price(key, price, [model], work, config, known)


def _one_price(
    key: str, price: UsdPerHour, models: Iterable[GpuModel], work: Workload, config: Config, known: Known
) -> Iterator[Finding]:
    most = config.limits.per_instance_hour
    if most is not None and price > most:
        sentence = f"{price} is above max_price_per_instance_hour, {most}: no slot ever costs as much"
        yield Finding(key, sentence, "lower it, or raise the cap")
    lowest = _lowest(models, known.prices)
    if lowest is not None and price > lowest.scaled(DEAR_TIMES * work.requirements.gpus):
        sentence = f"{price} is over {DEAR_TIMES} times the lowest price seen for its cards, {lowest} each"
        yield Finding(key, sentence, "check the decimal point")


def _lowest(models: Iterable[GpuModel], prices: Mapping[GpuModel, UsdPerHour]) -> UsdPerHour | None:
    return min((prices[model] for model in models if model in prices), default=None)


def _disk(work: Workload, name: str) -> Iterator[Finding]:
    needed = work.image_gb + work.dataset_gb
    if work.disk_gb < needed:
        sentence = f"{work.disk_gb:g} GB of disk cannot hold image and dataset, {needed:g} GB"
        yield Finding(f"{name}.disk_gb", sentence, f"write at least {needed:g}")
    if work.disk_gb > MOST_DISK_GB:
        sentence = (
            f"{work.disk_gb:g} GB of disk: hosts have less, and a rented disk is paid for while the lease is paused too"
        )
        yield Finding(f"{name}.disk_gb", sentence, "write what the work needs")


def _reference(work: Workload, name: str) -> Iterator[Finding]:
    """Find a reference GPU whose speed nothing shows: it is not searched for, and no benchmark of it is known."""
    model = work.deadline.reference_gpu if work.deadline is not None else None
    models = work.requirements.gpu_models
    if model is not None and models and model not in models and not card_benchmarks.dlperf(model):
        sentence = f"no benchmark of {model} is known, so every GPU counts as fast as that until its speed is measured"
        fix = f"count the hours on one of {', '.join(models)}, or on another model with a known benchmark"
        yield Finding(f"{name}.deadline.reference_gpu", sentence, fix)


def _deadline(work: Workload, name: str, now: datetime) -> Iterator[Finding]:
    if work.deadline is None and work.strategy == "deadline":
        fix = f"write a [{name}.deadline] table, or choose another strategy"
        yield Finding(f"{name}.strategy", "rents nothing without a deadline", fix)
    yield from _reference(work, name)
    if work.deadline is None:
        return
    if work.strategy == "patient":
        sentence = "patient does not hurry for a deadline: it only warns that the work will be late"
        yield Finding(f"{name}.deadline", sentence, 'write strategy = "hedged" or "deadline", or remove the table')
    if work.deadline.by <= now:
        sentence = f"{work.deadline.by:%Y-%m-%d %H:%M} UTC is in the past"
        yield Finding(f"{name}.deadline.by", sentence, "write a later time, or remove the table")
        return
    begins = max(now, work.not_before or now)
    left = (work.deadline.by - begins) / timedelta(hours=1)
    if work.deadline.hours > left:
        since = "between `not_before` and `by`" if begins > now else "left"
        sentence = f"{work.deadline.hours:g} h of work do not fit into the {left:.1f} h {since}, not even on demand"
        yield Finding(f"{name}.deadline", sentence, "write a later time, a faster reference_gpu, or fewer hours")
    for limit in work.max_running:
        if limit.of is LimitOf.WORKLOAD and limit.most < timedelta(hours=work.deadline.hours):
            runs = limit.most / timedelta(hours=1)
            sentence = f"the workload may run for {runs:g} h, and has {work.deadline.hours:g} h of work"
            yield Finding(f"{name}.max_running", sentence, "write more hours there, or fewer in the deadline")
