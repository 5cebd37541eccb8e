"""The tables of a leave-one-record-out run over pools, as text."""

from collections.abc import Sequence

from agent.lab.bench import interval
from agent.lab.cross_validation.pools_judgement import Judgement, Part

MOST_NAMED = 3
NOTES = (
    "each record: fitted on all other records; mean dollars",
    "live rules: on demand, eager failover, and our reading of SkyNomad's rule; each row has its own cheapest one",
    "95 %: paired bootstrap of the record's blocks: 24 h of starts for at most 16 h of work in 24 h, else four days",
)
Judged = Sequence[tuple[str, Judgement]]
"""Records by name."""


def records(judged: Judged) -> list[list[str]]:
    """Return a row for each record, the heading first."""
    heading = ["record", "runs", "hedged", "cheapest live rule", "optimum", "less the rule, 95 %", "late"]
    heading += ["starts / optimum's", "dearest part", "largest rise with slack"]
    return [heading, *(_record(name, each) for name, each in judged)]


def parts(judged: Judged) -> list[list[str]]:
    """Return a row for each zone set, half and deadline of each record, the heading first."""
    heading = ["record", "part", "runs", "hedged", "cheapest live rule", "optimum", "dearer by"]
    return [
        heading,
        *(
            [
                name,
                short(part.name),
                str(part.runs),
                f"{part.ours:.2f}",
                _rule(part),
                f"{part.optimum:.2f}",
                _excess(part),
            ]
            for name, each in judged
            for part in (*each.sets, *each.halves, *each.slacks)
        ),
    ]


def _record(name: str, judged: Judgement) -> list[str]:
    whole, rise = judged.whole, judged.rise
    return [
        name,
        str(whole.runs),
        f"{whole.ours:.2f}",
        _rule(whole),
        f"{whole.optimum:.2f}",
        f"{judged.difference:+.2f} {interval.as_text(judged.interval, '.2f')}",
        str(judged.late),
        f"{judged.starts:.2f} / {judged.optimal_starts:.2f} = {judged.starts / judged.optimal_starts:.2f}",
        f"{short(judged.dearest.name)} {_excess(judged.dearest)}",
        f"{short(rise.pools)} {rise.before:g} to {rise.after:g} h {rise.share:+.1%}" if rise.pools else "none",
    ]


def _rule(part: Part) -> str:
    return f"{part.rule_cost:.2f} {part.rule}"


def _excess(part: Part) -> str:
    return f"{part.excess:+.1%}"


def short(name: str) -> str:
    """Return the names of a few pools, or how many there are."""
    pools = name.split("+")
    return name if len(pools) <= MOST_NAMED else f"{len(pools)} pools"
