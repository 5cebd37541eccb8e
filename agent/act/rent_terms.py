"""A rent and its workload -> the terms that are sent; secrets are looked up here and stored nowhere."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from agent.act.guarding import guard_launch
from agent.act.guarding.guard_launch import GuardLaunch
from agent.buckets import bucket_client
from agent.decide.moves import checkpointing
from agent.domain.work import kept_terms
from agent.domain.work.decision import Rent
from agent.domain.work.ready_sign import Readiness, ReadySign
from agent.domain.work.workload import Workload
from agent.markets import market_errors, port

WORKLOAD, SLOT, SLOTS = "GPUBID_WORKLOAD", kept_terms.SLOT, "GPUBID_SLOTS"
"""The variables with the workload's name, the slot's number from 0 on, and the number of slots, as at the rent."""
Credential = Callable[[str], str]
"""Returns a credential by its name; raises `market_errors.Rejected` if there is none."""


def none(name: str) -> str:
    """Refuse: there are no credentials here."""
    raise market_errors.Rejected("no_credential", f"There is no credential {name!r} here; give it to the daemon.")


def _advised(decision: Rent, work: Workload) -> tuple[tuple[str, str], ...]:
    """Return the workload's environment, with those variables of ours that it does not set itself.

    They are the slot's own number, and the interval of checkpoints.
    """
    given = *work.environment, *work.values_of(decision.slot.index)
    own = {name for name, _ in (*given, *work.env_from)}
    place = (WORKLOAD, work.name), (SLOT, str(decision.slot.index)), (SLOTS, str(work.slots))
    variables = *place, *checkpointing.environment(decision.advice)
    return (*given, *((name, value) for name, value in variables if name not in own))


def of(decision: Rent, work: Workload, credential: Credential, launch: GuardLaunch | None = None) -> port.Terms:
    """Return the terms of a rent; `launch` says how its guard starts.

    Raises:
        Rejected: a credential that the workload names cannot be had, or its guard cannot be started; nothing was sent.
    """
    if work.guard is not None:
        return _guarded(of(decision, replace(work, guard=None), credential), decision, work, credential, launch)
    login = work.image_login
    return port.Terms(
        tenure=decision.tenure,
        bid=decision.bid,
        disk_gb=work.disk_gb,
        image=work.image,
        command=work.command,
        onstart=work.onstart,
        environment=(*_advised(decision, work), *((name, credential(key)) for name, key in work.env_from)),
        ports=work.ports,
        runtype=work.runtype,
        ssh_keys=work.ssh_keys,
        login=port.Login(login.registry, login.user, credential(login.credential)) if login is not None else None,
        template=work.template,
        network_volume=work.requirements.network_volume,
        page=_page(work.ready),
    )


def _page(ready: Readiness) -> port.Page | None:
    if ready.sign is not ReadySign.HTTP:
        return None
    return port.Page(ready.port, ready.path, ready.live.within, ready.live.every)


def _guarded(
    bare: port.Terms, decision: Rent, work: Workload, credential: Credential, launch: GuardLaunch | None
) -> port.Terms:
    if launch is None:
        raise market_errors.Rejected(
            "no_guard", f"The guard of {work.name} is not prepared: this is a defect, report it."
        )
    place = work.guard.bucket if work.guard is not None else None
    advised = None if decision.advice is None else decision.advice.interval
    interval = advised or round(work.checkpoint.interval / timedelta(seconds=1))
    try:
        key = None if place is None else bucket_client.key_of(credential(place.credential))
        command = guard_launch.command(work)
        variables = guard_launch.environment(launch, work, interval, key)
    except ValueError as error:
        raise market_errors.Rejected("invalid_args", f"The guard of {work.name} cannot be started: {error}.") from None
    return replace(
        bare, command=command, onstart=guard_launch.script(work), environment=(*bare.environment, *variables)
    )
