"""A renter's calls on instances: start, stop, label, bid, reboot, destroy, logs and commands."""

from collections.abc import Callable

from agent.simulator.api_calls import Reply
from agent.simulator.market_model import Refusal
from agent.simulator.vast import calls
from agent.simulator.vast.calls import Call
from agent.simulator.vast.http import filter_grammar, refusals
from agent.simulator.vast.http.surface import Surface

LEAST_BID = 0.001
MOST_BID_PER_GPU = 32.0
LONGEST_LABEL = 1024
LONGEST_COMMAND = 512


def manage(surface: Surface, call: Call) -> Reply:
    """Answer a start, a stop or a new label of one instance."""
    if call.is_body_broken:
        return calls.refuse(400, "invalid_args", "Invalid json body")
    fields = call.fields
    try:
        surface.contract(call, call.id)
        if (label := fields.get("label")) is not None:
            if not isinstance(label, str) or len(label) > LONGEST_LABEL:
                return calls.refuse(400, "label_too_long", f"A label has at most {LONGEST_LABEL} characters.")
            surface.world.set_label(call.id, label)
        if "state" in fields:
            return _set_state(surface, call.id, fields["state"])
    except Refusal as refusal:
        return refusals.of_manage(refusal)
    return calls.success()


def manage_many(surface: Surface, call: Call) -> Reply:
    """Answer a start or stop of several: each is tried, and the last refusal is returned."""
    reply = calls.success()
    for instance_id in _ids(call, "ids"):
        try:
            surface.contract(call, instance_id)
            outcome = _set_state(surface, instance_id, call.fields.get("state"))
        except Refusal as refusal:
            outcome = refusals.of_manage(refusal)
        if outcome.body != reply.body:
            reply = outcome
    return reply


def change_bid(surface: Surface, call: Call) -> Reply:
    """Answer a new bid; without a price the market picks one that wins."""
    try:
        contract = surface.contract(call, call.id)
        surface.world.change_bid(call.id, _bid(call, contract.slice.num_gpus))
    except Refusal as refusal:
        return refusals.of_bid(refusal)
    return calls.success()


def _bid(call: Call, gpus: int) -> float | None:
    price = call.fields.get("price")
    if price is None:
        return None
    number = filter_grammar.to_number(price)
    if number is None or number < LEAST_BID:
        raise Refusal(Refusal.BAD_PRICE, f"Please set a bid price >= {LEAST_BID}.")
    if number > MOST_BID_PER_GPU * gpus:
        raise Refusal(Refusal.BAD_PRICE, f"Please set a bid price <= {MOST_BID_PER_GPU * gpus:g}.")
    return number


def destroy(surface: Surface, call: Call) -> Reply:
    """Answer the end of one instance."""
    return _on_one(surface, call, surface.world.destroy)


def destroy_many(surface: Surface, call: Call) -> Reply:
    """Answer the end of several; those that are gone are no error."""
    for instance_id in _ids(call, "instance_ids"):
        try:
            surface.contract(call, instance_id)
            surface.world.destroy(instance_id)
        except Refusal:
            continue
    return calls.success()


def reboot(surface: Surface, call: Call) -> Reply:
    """Answer a restart of the container."""
    return _on_one(surface, call, surface.world.reboot)


def recycle(surface: Surface, call: Call) -> Reply:
    """Answer a container made anew."""
    return _on_one(surface, call, surface.world.recycle)


def request_logs(surface: Surface, call: Call) -> Reply:
    """Answer the address of the container's last lines."""
    try:
        surface.contract(call, call.id)
    except Refusal:
        return calls.refuse(404, "invalid_id", "Invalid instance id.")
    tail = filter_grammar.to_number(call.fields.get("tail")) or 1000.0
    lines = surface.world.log_lines(call.id, int(tail))
    if (wanted := call.fields.get("filter")) is not None:
        lines = [line for line in lines if str(wanted) in line]
    address = surface.publish(call, "\n".join(lines) + "\n", "instance_logs")
    return calls.success(result_url=address, msg="Logs have been requested.")


def execute(surface: Surface, call: Call) -> Reply:
    """Answer the address of a command's output. The simulated container echoes the command and executes nothing."""
    command = call.fields.get("command")
    if call.is_body_broken or not isinstance(command, str) or not 0 < len(command) <= LONGEST_COMMAND:
        return calls.refuse(400, "invalid_args", "Invalid command given.")
    try:
        surface.contract(call, call.id)
    except Refusal:
        return calls.refuse(400, "invalid_container_id", "Invalid instance id.")
    address = surface.publish(call, f"$ {command}\n", "instance_results")
    return calls.success(result_url=address, writeable_path="/var/lib/vastai_kaalia/data/", msg="")


def _set_state(surface: Surface, instance_id: int, state: object) -> Reply:
    if state == "stopped":
        surface.world.stop(instance_id)
        return calls.success()
    if state != "running":
        return calls.refuse(400, "invalid_args", "'state' must be 'running' or 'stopped'.")
    if surface.world.start(instance_id):
        return calls.success()
    text = "Required resources are currently unavailable, state change queued."
    return calls.refuse(200, "resources_unavailable", text)


def _on_one(surface: Surface, call: Call, act: Callable[[int], None]) -> Reply:
    try:
        surface.contract(call, call.id)
        act(call.id)
    except Refusal as refusal:
        if refusal.code == Refusal.NO_SUCH_CONTRACT:
            return refusals.no_such_instance()
        return calls.refuse(400, "invalid_args", refusal.sentence)
    return calls.success()


def _ids(call: Call, key: str) -> list[int]:
    ids = call.fields.get(key)
    return [item for item in ids if isinstance(item, int)] if isinstance(ids, list) else []
