"""Runs and machines of the server as instances of a market."""

from datetime import timedelta

from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.tenure import Tenure
from agent.domain.money import FREE
from agent.markets import text, tolerant_rows
from agent.markets.dstack import figures, listing, names, orders, rows, search, states


def of_run(run: rows.Run, where: states.Standing, listed: listing.Listed) -> Instance:
    """Return a run as an instance of ours, by its machine; until it has a machine, by its order."""
    order, job = run.run_spec.configuration, run.latest_job_submission or rows.Submission()
    got = job.job_provisioning_data
    place = _place(got) if got is not None else None
    place = place or names.ordered(order)
    cards = got.instance_type.resources.gpus if got is not None and got.instance_type is not None else []
    most = search.ordered_price(order.max_price)
    rate = search.paid_price(got.price, most) if got is not None else most
    model = names.model(cards[0].name) if cards else names.model("")
    disk_gb = order.resources.disk_gb if order.resources is not None else 0.0
    read = {"disk_gb": disk_gb, "gpu_rate": rate, "host_id": place, "gpus": cards or None, "gpu": model or None}
    reused = names.reused(run, listed.machines.get(run.name, ()))
    return Instance(
        market=search.MARKET,
        instance_id=run.id,
        label=names.label(run.name, order.tags),
        host_id=reused or (place.host_id if place is not None else ""),
        owner_id="",
        tenure=Tenure.INTERRUPTIBLE if place is not None and place.is_spot else Tenure.ON_DEMAND,
        state=where.state,
        gpu=model,
        gpus=len(cards),
        gpu_rate=rate or FREE,
        disk_rate=FREE,
        disk_gb=disk_gb or 0.0,
        created_at=tolerant_rows.moment(run.submitted_at),
        ends_at=None,
        dlperf=names.dlperf(model) * len(cards),
        reliability=figures.RELIABILITY,
        inet_down_mbps=figures.INET_MBPS,
        is_wanted_running=where.is_wanted,
        has_trouble=where.state is InstanceState.FAILED,
        message=where.message,
        stopped_from_outside=where.stopped_from_outside,
        is_image_refused=where.is_image_refused,
        is_out_of_capacity=where.is_out_of_capacity,
        is_called_over=where.is_unproven,
        may_bill_gpu=where.may_bill,
        page_answers=_page_answers(order, job),
        page_stands=timedelta(seconds=min(order.probe_seconds, _MOST_PROBE_SECONDS)),
        unread=frozenset(name for name, figure in read.items() if figure is None),
    )


_MOST_PROBE_SECONDS = 600
"""The server takes no longer times: 300 s each."""


def _page_answers(order: rows.Configuration, job: rows.Submission) -> bool | None:
    """Return whether the page of a service answers the server's own probe; None if there is no probe."""
    is_probed = order.type == orders.SERVICE and bool(job.probes)
    return any(probe.success_streak > 0 for probe in job.probes or ()) if is_probed else None


def _place(got: rows.Provisioned) -> names.Pool | None:
    kind = got.instance_type or rows.InstanceType()
    card = kind.resources.gpus[0].name if kind.resources.gpus else ""
    return names.pool_of(got.backend, got.region, kind.name, card, is_spot=kind.resources.spot)


def of_machine(machine: rows.Machine) -> Instance:
    """Return a machine of our fleet without a known run: it is not proven ours, and it costs money."""
    cards = machine.instance_type.resources.gpus if machine.instance_type is not None else []
    model = names.model(cards[0].name) if cards else names.model("")
    kind, card = machine.instance_type or rows.InstanceType(), cards[0].name if cards else ""
    place = names.pool_of(machine.backend, machine.region, kind.name, card)
    return Instance(
        market=search.MARKET,
        instance_id=machine.id,
        label="",
        host_id=place.host_id if place is not None else "",
        owner_id="",
        tenure=Tenure.ON_DEMAND,
        state=InstanceState.UNKNOWN,
        gpu=model,
        gpus=len(cards),
        gpu_rate=search.price(machine.price) or FREE,
        disk_rate=FREE,
        disk_gb=0.0,
        created_at=tolerant_rows.moment(machine.created),
        ends_at=None,
        message=f"a machine of the fleet {text.clean(machine.fleet_name or '', 64)} without a run",
        may_bill_gpu=machine.backend is not None,
    )
