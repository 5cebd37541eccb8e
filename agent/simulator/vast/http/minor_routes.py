"""The endpoints around renting: keys, copies, templates, scheduled jobs, names, certificates.

They keep their input as long as the simulator runs, and change nothing on the market.
"""

from agent.simulator.api_calls import Reply
from agent.simulator.market_model import Refusal
from agent.simulator.vast import calls
from agent.simulator.vast.calls import Call
from agent.simulator.vast.http import refusals
from agent.simulator.vast.http.surface import Surface

# A root certificate of nobody: its key was thrown away. The vendor's asynchronous client wants to load one.
ROOT_CERTIFICATE = b"""-----BEGIN CERTIFICATE-----
MIIBlzCCAT2gAwIBAgIUB1myIL+Wq92BkT7CRiO8EKNtRwswCgYIKoZIzj0EAwIw
IDEeMBwGA1UEAwwVU2ltdWxhdGVkIG1hcmtldCByb290MCAXDTI2MTEyMTAyMTAx
MloYDzIxMjYxMDI4MDIxMDEyWjAgMR4wHAYDVQQDDBVTaW11bGF0ZWQgbWFya2V0
IHJvb3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAThI/o/1cIK7BHYKOkw/p3O
uxqgfqy8MzvM1mH91RjFrOTSMGCPvv9VEty2NqrWj59oES3J8mIMQpzo8V2MCklI
o1MwUTAdBgNVHQ4EFgQUbvE4F4ZN9aI7DoXsWgDE7HBil8cwHwYDVR0jBBgwFoAU
bvE4F4ZN9aI7DoXsWgDE7HBil8cwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQD
AgNIADBFAiEAgJlOcOXU897Yk7ixBgmjtYKEpU5THEwtlGVX0GC0FxoCIGviAb0d
dPwlWQn9+NH0S+i6udZ/Is7sQRDQiuRO7E+h
-----END CERTIFICATE-----
"""


def root_certificate() -> Reply:
    """Answer a certificate that may be loaded and trusts nothing."""
    return Reply(ROOT_CERTIFICATE, 200, "application/x-x509-ca-cert")


def gpu_names(surface: Surface, _: Call) -> Reply:
    """Answer the names of the GPUs on the market."""
    return calls.success(gpu_names=sorted({host.gpu.name for host in surface.world.hosts.values()}))


def show_ssh_keys(surface: Surface, call: Call) -> Reply:
    """Answer the keys of the account, or a refusal if there are none."""
    if not surface.ssh_keys:
        return calls.refuse(404, "not_found", "No SSH keys found for the user.")
    keys = [{**row, "user_id": surface.account_id(call)} for row in surface.ssh_keys.values()]
    return calls.success(keys=keys)


def add_ssh_key(surface: Surface, call: Call) -> Reply:
    """Answer a new key."""
    text = call.fields.get("ssh_key")
    if not isinstance(text, str) or not text:
        return calls.refuse(400, "no_ssh_key", "No ssh key provided")
    number = max(surface.ssh_keys, default=0) + 1
    row = {"id": number, "key": text, "public_key": text, "created_at": call.now, "deleted_at": None}
    surface.ssh_keys[number] = row
    return calls.success(key={**row, "user_id": surface.account_id(call)})


def change_ssh_key(surface: Surface, call: Call) -> Reply:
    """Answer a changed key."""
    text = call.fields.get("ssh_key")
    if call.id not in surface.ssh_keys or not isinstance(text, str):
        return calls.refuse(404, "not_found", "SSH key not found")
    surface.ssh_keys[call.id].update(key=text, public_key=text)
    return calls.success()


def remove_ssh_key(surface: Surface, call: Call) -> Reply:
    """Answer that a key is gone."""
    if surface.ssh_keys.pop(call.id, None) is None:
        return calls.refuse(404, "not_found", "SSH key not found")
    return calls.success()


def on_instance(surface: Surface, call: Call) -> Reply:
    """Answer success for an instance that is there: templates changed, snapshots taken."""
    try:
        surface.contract(call, call.id)
    except Refusal:
        return refusals.no_such_instance()
    return calls.success()


def accepted(_: Surface, __: Call) -> Reply:
    """Answer success to a call that has no effect here."""
    return calls.success()


def copy(_: Surface, call: Call) -> Reply:
    """Answer that a copy has begun; nothing is copied."""
    return calls.success(
        result_url=None, src_addr=None, dst_addr=None, msg="Remote to Remote copy initiated.", id=call.number
    )


def show_scheduled_jobs(_: Surface, __: Call) -> Reply:
    """Answer no scheduled jobs; the vendor answers a bare list here, without an object around it."""
    return Reply(b"[]")


def show_templates(_: Surface, __: Call) -> Reply:
    """Answer no templates, and their number."""
    return calls.success(templates=[], templates_found=0)
