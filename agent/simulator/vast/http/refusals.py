"""The market's refusals over HTTP: status, code and text of each, as recorded or documented."""

from collections.abc import Mapping
from typing import Any

from agent.simulator.api_calls import Reply
from agent.simulator.market_model import Refusal
from agent.simulator.vast import calls
from agent.simulator.vast.calls import Call

_EMPTY: Mapping[str, Mapping[str, Any]] = {
    "/bundles": {"offers": []},
    "/search/asks": {"offers": []},
    "/instances": {"instances": [], "next_token": None},
    "/instances/{id}": {"instances": None},
    "/charges": {"results": [], "next_token": None},
    "/notifications/inbox": {"notifications": []},
}
"""The fields of an answer that has nothing to show, by its route."""


def no_such_instance(status: int = 404) -> Reply:
    """Answer for an id that is unknown or has ended."""
    return calls.refuse(status, "no_such_instance", "Instance with that ID does not exist.")


def session_expired() -> Reply:
    """Answer a key whose two-factor session is over; this refusal comes without a code."""
    return Reply(b'{"success":false,"msg":"Session expired. Please log in again."}', 404)


def soft(call: Call) -> Reply:
    """Refuse a call with status 200; what a question asks for is empty then."""
    return calls.refuse(200, None, "This is not possible at the moment.", **_EMPTY.get(call.route, {}))


def of_create(refusal: Refusal, offer_id: int, *, was_listed: bool) -> Reply:
    """Answer a refused create. A former offer may answer 400 where an unknown one answers 404."""
    if refusal.code == Refusal.ASK_TAKEN:
        text = f"error 410/3907: no_such_ask Instance type {offer_id} is no longer available."
        return calls.refuse(410, "no_such_ask", text, ask_id=offer_id)
    if refusal.code == Refusal.INSUFFICIENT_CREDIT:
        return insufficient_credit(offer_id)
    if refusal.code == Refusal.BAD_PRICE:
        return calls.refuse(400, "invalid_price", f"error 400/3491: {refusal.sentence}", ask_id=offer_id)
    if refusal.code == Refusal.BAD_DISK:
        return bad_arguments(refusal.sentence, offer_id)
    # Documented for an unknown id: invalid_args with no_such_ask in its sentence. One that was listed answers 400.
    status, code = (400, "no_such_ask") if was_listed else (404, "invalid_args")
    text = f"error {status}/3603: no_such_ask Instance type by id {offer_id} is not available."
    return calls.refuse(status, code, text, ask_id=offer_id)


def insufficient_credit(offer_id: int) -> Reply:
    """Answer a create for which the account lacks credit."""
    text = "Your account lacks credit; see the billing page."
    return calls.refuse(400, "insufficient_credit", text, ask_id=offer_id)


def bad_arguments(sentence: str, offer_id: int) -> Reply:
    """Answer a create whose arguments make no sense."""
    return calls.refuse(400, "invalid_args", f"error 400/3467: Invalid args: {sentence}", ask_id=offer_id)


def of_manage(refusal: Refusal) -> Reply:
    """Answer a refused start, stop or label."""
    if refusal.code == Refusal.INSUFFICIENT_CREDIT:
        return calls.refuse(400, "missing_billing", "Your account lacks credit; see the billing page.")
    if refusal.code == Refusal.NO_SUCH_CONTRACT:
        return no_such_instance(400)
    return calls.refuse(400, "invalid_args", refusal.sentence)


def of_bid(refusal: Refusal) -> Reply:
    """Answer a refused change of a bid: some refusals have status 200."""
    if refusal.code == Refusal.NO_SUCH_CONTRACT:
        return no_such_instance()
    if refusal.code == Refusal.BAD_PRICE:
        return calls.refuse(400, "invalid_args", refusal.sentence)
    return calls.refuse(200, "invalid_args", refusal.sentence)
