"""A first configuration: the shipped file with its comments, with a person's answers in place of its examples."""

import json
import re
from dataclasses import dataclass
from decimal import Decimal

SIMULATED = "simulated"
HEADER = "# One workload to begin with, written by `gpubid init`. `gpubid check` reports every mistake in this file."

_LIVE = """\
[markets.{market}]
{url}{own}\
# The name of the key: a systemd credential, kept in /etc/credstore/{market}_api_key, or in capitals a variable of
# the environment; credential_file names a file instead.
{key}
# While this is false, gpubid pays for nothing: it reads the market, plans and reports what it would do.
spend = {spend}

"""
_REHEARSED = """\
[markets.{market}]
# The climate of the embedded simulator: `gpubid simulate --help` lists them. No account, no key, no money.
simulated = "calm"
# To go live, remove the line above and the "#" of these lines; first read the handbook's page "Going live".
# credential = "{key}"  # a systemd credential, or in capitals a variable of the environment: {variable}
# spend = false                # true lets gpubid pay; while it is false, `gpubid plan` shows what it would do

"""


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers for a first configuration; prices and the budget of a UTC day are in dollars."""

    market: str
    workload: str
    image: str
    command: str
    gpu: tuple[str, ...]
    slots: int
    max_price: Decimal
    per_day: Decimal
    checkpoint: str
    strategy: str = "patient"
    may_spend: bool = False
    url: str = ""
    credential_file: str = ""
    own: tuple[tuple[str, str], ...] = ()
    """The market's own keys with their values as TOML."""
    schema: str = ""
    """The first line, which points an editor to the schema. If it is empty, the shipped file's line is kept."""


def options(answers: Answers) -> dict[str, str]:
    """Return the options of `gpubid init` by the keys that their values are written to."""
    workload, market = f"workloads.{answers.workload}", f"markets.{answers.market}"
    keys = ("image", "command", "slots", "gpu", "max_price", "checkpoint.at")
    of_workload = {f"{workload}.{key}": f"--{key.removesuffix('.at').replace('_', '-')}" for key in keys}
    of_market = {f"{market}.{key}": f"--set {key}" for key, _ in answers.own}
    limits = {"limits.max_per_day": "--budget", "limits.max_price_per_instance_hour": "--max-price"}
    return {**of_workload, **of_market, **limits, f"{market}.url": "--url", workload: "--workload"}


def written(shipped: str, answers: Answers) -> str:
    """Return the text of the configuration. The loader checks whether the answers make sense."""
    holds = 2 * answers.slots
    changes = (
        ("limits", "max_price_per_instance_hour", _number(answers.max_price)),
        ("limits", "max_fleet_per_hour", _number(answers.max_price * holds)),
        ("limits", "max_per_day", _number(answers.per_day)),
        ("limits", "max_per_month", _number(answers.per_day * 31)),
        ("limits", "max_instances", str(holds)),
        ("workloads.train", "image", _text(answers.image)),
        ("workloads.train", "command", _text(answers.command)),
        ("workloads.train", "slots", str(answers.slots)),
        ("workloads.train", "gpu", f"[{', '.join(_text(name) for name in answers.gpu)}]"),
        ("workloads.train", "max_price", _number(answers.max_price)),
        ("workloads.train", "strategy", _text(answers.strategy)),
        ("workloads.train.checkpoint", "at", _text(answers.checkpoint)),
    )
    text = _with_market(shipped, answers)
    for table, key, value in changes:
        text = _with(text, table, key, value)
    # The example's variable means nothing to another program.
    text = _with(text, "workloads.train.env", "EPOCHS", "")
    text = text.replace("gpubid done train", f"gpubid done {answers.workload}")
    return text.replace("[workloads.train", f"[workloads.{_name(answers.workload)}")


def _with_market(shipped: str, answers: Answers) -> str:
    head, simulated, rest = re.split(r"^\[markets\.(\w+)\]\n", shipped, maxsplit=1, flags=re.MULTILINE)
    _, limits, after = rest.partition("[limits]\n")
    schema = answers.schema or head.partition("\n")[0]
    agent = head[head.index("[agent]") :]
    key = f"{simulated}_api_key"
    market = _REHEARSED.format(market=simulated, key=key, variable=key.upper())
    if answers.market != SIMULATED:
        key = f"credential_file = {_text(answers.credential_file)}" if answers.credential_file else ""
        market = _LIVE.format(
            market=answers.market,
            url=f"url = {_text(answers.url)}\n" if answers.url else "",
            own="".join(f"{name} = {value}\n" for name, value in answers.own),
            key=key or f'credential = "{answers.market}_api_key"',
            spend=str(answers.may_spend).lower(),
        )
    note = '# Money is in dollars, durations are written "90s", "15m" or "1h30m".'
    return f"{schema}\n{HEADER}\n{note}\n\n{agent}{market}{limits}{after}"


def _with(text: str, table: str, key: str, value: str) -> str:
    """Return the text with a key of a table set, or commented out if the value is empty."""
    begin = text.index(f"[{table}]\n")
    end = text.find("\n[", begin + 1)
    block = text[begin:] if end < 0 else text[begin:end]
    pattern = re.compile(rf"^{key} = .*$", re.MULTILINE)
    changed = pattern.sub(lambda found: f"{key} = {value}" if value else f"# {found[0]}", block, count=1)
    return text[:begin] + changed + text[begin + len(block) :]


def _text(value: str) -> str:
    """Return a TOML string, or an empty text for an empty answer, which leaves out the key."""
    return json.dumps(value, ensure_ascii=False) if value else ""


def _name(value: str) -> str:
    return value if re.fullmatch(r"[A-Za-z0-9_-]+", value) else json.dumps(value, ensure_ascii=False)


def _number(value: Decimal) -> str:
    exact = format(value.normalize(), "f")
    return exact if "." in exact else f"{exact}.0"
