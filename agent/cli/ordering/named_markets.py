"""The markets of a kill by label: those of the command line and those of the configuration.

A market of the command line replaces the configuration's of the same name; its own keys, such as a project, stay. The
other markets of the configuration are looked at too, because the fleet may have instances there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.cli.shared import exits, session
from agent.systemd import CredentialError

if TYPE_CHECKING:
    from agent.config.settings import MarketSettings
    from agent.markets.market_record import MarketOptions, MarketRecord


@dataclass(frozen=True, slots=True)
class Named:
    """Values of the command line: a fleet id, markets as NAME or NAME=URL, and their keys in the same order.

    `own` has the keys that only one market has, as KEY=VALUE.
    """

    fleet: str = ""
    markets: tuple[str, ...] = ()
    credentials: tuple[str, ...] = ()
    own: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reach:
    """The markets that a kill can list, and why it cannot list others, by name."""

    markets: "tuple[MarketSettings, ...]"
    unlisted: Mapping[str, str] = field(default_factory=dict)


def check(named: Named) -> None:
    """End with a sentence if the options do not fit together."""
    from agent.ledger.file import fleet_ids
    from agent.markets import registered_markets

    wrong = []
    if named.fleet and not fleet_ids.is_fleet_id(named.fleet):
        wrong.append(
            f"--fleet: {named.fleet!r} is not a fleet id; a fleet id is the 12 hexadecimal characters in our labels"
        )
    names = [market.partition("=")[0] for market in named.markets]
    for name in dict.fromkeys(names):
        if name not in registered_markets.names():
            wrong.append(f"--market: {name!r} is none of {', '.join(registered_markets.names())}")
        elif names.count(name) > 1:
            wrong.append(f"--market: {name} is given {names.count(name)} times; give the command once for each address")
    if len(named.markets) != len(named.credentials):
        wrong.append("give one --credential for each --market, in the same order")
    wrong = wrong or _misset(named, names)
    if wrong:
        exits.stop(exits.BAD_INPUT, wrong)


def settings(named: Named, configured: "Sequence[MarketSettings]" = ()) -> "tuple[MarketSettings, ...]":
    """Return the markets to look at. End if it is not known which part of a market has the fleet's instances."""
    from agent.config.settings import MarketSettings
    from agent.markets import registered_markets

    found = {each.name: each for each in configured}
    for market, key in zip(named.markets, named.credentials, strict=True):
        name, _, url = market.partition("=")
        file = Path(key) if Path(key).is_file() else None
        record, known = registered_markets.record(name), found.get(name)
        address = url or (known.url if known is not None else record.url)
        options = _options(record, named, known.connect_options if known is not None else None)
        found[name] = MarketSettings(name, address, "", "" if file else key, file, spend=False, options=options)
    return tuple(found.values())


def reach(markets: "Sequence[MarketSettings]") -> Reach:
    """Return the markets whose keys can be read, and why the others' cannot. Raises: CredentialError if none can."""
    usable, unlisted = [], {}
    for each in markets:
        try:
            session.secret(each)
        except CredentialError as error:
            unlisted[each.name] = str(error)
            if len(unlisted) == len(markets):
                raise
        else:
            usable.append(each)
    return Reach(tuple(usable), unlisted)


def _misset(named: Named, names: Sequence[str]) -> list[str]:
    """Return what is wrong with the keys that only one market has."""
    from agent.markets import registered_markets

    known = {key for name in names for key in registered_markets.record(name).needed_to_list}
    takes = f"it takes {', '.join(sorted(known))}" if known else "no --market that is given here takes one"
    return [f"--set: {key!r} is no key of a kill; {takes}" for key in _own(named) if key not in known]


def _own(named: Named) -> dict[str, str]:
    return {key.strip(): value.strip() for key, _, value in (each.partition("=") for each in named.own)}


def _options(record: "MarketRecord", named: Named, known: "MarketOptions | None") -> "MarketOptions | None":
    """Return a market's own keys: the configuration's, with those of the command line."""
    import pydantic

    given: dict[str, Any] = {key: value for key, value in _own(named).items() if key in record.needed_to_list}
    lacking = [key for key in record.needed_to_list if key not in given] if known is None else []
    for key in lacking:
        sentence = (
            f"the {key} of {record.name} is not known, and a kill sees one {key} alone: add `--set {key}=NAME`, "
            f"as [markets.{record.name}] has it"
        )
        exits.stop(exits.BAD_INPUT, [f"{sentence}; nothing was ended"])
    if record.options is None or not given:
        return known
    kept = {} if known is None else {key: getattr(known, key) for key in known.model_fields_set}
    try:
        return record.options(**(kept | given))
    except pydantic.ValidationError as error:
        wrong = [f"--set: {'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
        exits.stop(exits.BAD_INPUT, wrong)
