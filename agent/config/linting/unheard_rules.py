"""Findings about rules of [notify] that send nothing, and about channels that no rule names."""

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase

from agent.config.linting.lint_finding import Finding
from agent.config.notify_settings import Rule
from agent.config.settings import Config
from agent.domain.record.event_kind import EventKind


def findings(config: Config) -> Iterator[Finding]:
    """Find rules that send nothing, and channels to which nothing is sent."""
    notify = config.notify
    for number, rule in enumerate(notify.rules):
        yield from _of_rule(f"notify.rules.{number}", rule, config)
    for channel in notify.channels:
        if not any(channel in rule.channels for rule in notify.rules):
            fix = f'add "{channel}" to the channels of a rule; `gpubid notify test` does not ask the rules'
            yield Finding(f"notify.{channel}", "no rule names it, so no event is sent to it", fix)


def _of_rule(key: str, rule: Rule, config: Config) -> Iterator[Finding]:
    names = [work.name for work in config.workloads]
    if not any(fnmatchcase(kind.value, rule.event) for kind in EventKind):
        fix = 'write a pattern such as "lease.*"; `gpubid ledger events` shows kinds'
        yield Finding(f"{key}.event", f'there is no kind of event "{rule.event}"', fix)
    if not any(fnmatchcase(name, rule.workload) for name in ("", *names)):
        fix = f"write one of {', '.join(names)}, or a pattern of them"
        yield Finding(f"{key}.workload", f'there is no workload "{rule.workload}"', fix)
    there = config.notify.channels
    if there and not set(there) & set(rule.channels):
        sentence = f"none of its channels is set up, which are {', '.join(rule.channels)}"
        yield Finding(f"{key}.channels", sentence, f"write channels = {json.dumps(there)}")
