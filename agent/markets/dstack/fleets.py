"""The fleet in which our runs start: it begins without machines, allows spot and on-demand, and keeps none idle."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent import clock as clocks
from agent.markets import market_errors, text, tolerant_rows
from agent.markets.dstack import client

NO_CLOUD = (
    "dstack has no keys of {}: add a cloud to ~/.dstack/server/config.yml, start the server again, then `gpubid doctor`"
)
NO_CLOUD_NAMED = (
    "no cloud is named for dstack: set [markets.dstack] backends to some of those whose keys the server has ({})"
)
APPLY = "`dstack apply -f` it"
MORE = f"raise `nodes` in its file, then {APPLY}"
FULL = " is full ("
ENDED = frozenset({"terminating", "terminated"})
"""The statuses of a machine that takes no place in its fleet."""
LOOK_SECONDS = 60.0
"""How long an answer about the fleet is kept."""
YAML = "{{type: fleet, name: {name}, nodes: 0..20, idle_duration: 0s, spot_policy: auto}}"
"""The file that makes a fleet, in one line, as a person copies it from a sentence."""


def why_no_cloud(wanted: Sequence[str], known: Sequence[str]) -> str:
    """Return why no cloud can be rented at and how to fix that; empty if one of the wanted clouds has keys."""
    if not wanted:
        return NO_CLOUD_NAMED.format(", ".join(known) or "none yet")
    return "" if set(wanted) & set(known) else NO_CLOUD.format(", ".join(wanted))


def recipe(name: str) -> str:
    """Return the file that makes a fleet, for `dstack apply -f`."""
    return YAML.format(name=name)


class Fleet:
    """One fleet, looked at once a minute."""

    def __init__(self, endpoints: client.DstackClient, clock: clocks.Clock, name: str) -> None:
        self._client = endpoints
        self._clock = clock
        self._name = name
        self._looked_at: float | None = None
        self.last_problem = ""
        """Why the fleet could not be used at the last look; empty if it could, or before the first look."""
        self.most_machines: int | None = None
        """How many machines it may have, by the last look; None if it has no bound, or before the first look."""

    async def why_unusable(self) -> str:
        """Return why it cannot be used and how to fix that; empty if it can. Raises: as a read, without NotFound."""
        now = self._clock.monotonic()
        if self._looked_at is None or now - self._looked_at >= LOOK_SECONDS:
            self.last_problem = await self._problem()
            # While the fleet has a problem, it is read each time: its operator may be fixing it now.
            self._looked_at = None if self.last_problem else now
        return self.last_problem

    async def _problem(self) -> str:
        if not self._name:
            return "no fleet is named: set [markets.dstack] fleet to one that is made for gpubid alone"
        try:
            raw = await self._client.fleet(self._name)
        except market_errors.NotFound:
            return f"dstack has no fleet {self._name}: `gpubid doctor` prints the file for `dstack apply -f`"
        fleet = tolerant_rows.document(raw, "The fleet")
        made = _configuration(fleet)
        nodes = made.get("nodes")
        most = nodes.get("max") if isinstance(nodes, dict) else None
        self.most_machines = most if isinstance(most, int) else None
        return _mismatch(fleet, made, self._name) or _fullness(fleet.get("instances"), self.most_machines, self._name)


def _configuration(fleet: Mapping[str, Any]) -> dict[str, Any]:
    spec = fleet.get("spec")
    made = spec.get("configuration") if isinstance(spec, dict) else None
    if not isinstance(made, dict):
        raise market_errors.Malformed("dstack showed a fleet without its configuration; try again later.")
    return made


def _mismatch(fleet: Mapping[str, Any], made: Mapping[str, Any], name: str) -> str:
    nodes = made.get("nodes")
    if fleet.get("status") != "active":
        return f"the fleet {name} is {text.clean(str(fleet.get('status')), 32)}, not active"
    if made.get("ssh_config") is not None:
        return f"the fleet {name} has hosts of its own (ssh_config): use one without"
    # The server makes `target` machines as soon as the fleet is applied; without one it takes `min`.
    if not isinstance(nodes, dict) or nodes.get("min") != 0 or nodes.get("target"):
        return f"the fleet {name} keeps machines that nobody uses: make it with `nodes: 0..20`"
    if made.get("idle_duration") not in (0, "0", "0s"):
        return f"the fleet {name} keeps idle machines: make it with `idle_duration: 0s`"
    if made.get("spot_policy") != "auto":
        # Without a policy the server takes the fleet for one of on-demand machines, and offers no spot machine.
        return f"the fleet {name} does not allow both spot and on-demand machines: make it with `spot_policy: auto`"
    return ""


def _fullness(machines: object, most: int | None, name: str) -> str:
    """Return that a fleet is full: the server then offers nothing in it, and does not say why."""
    if most is None or not isinstance(machines, list):
        return ""
    active = sum(isinstance(one, dict) and one.get("status") not in ENDED for one in machines)
    if active < most:
        return ""
    return f"the fleet {name}{FULL}{active} of {most} machines): {MORE}"
