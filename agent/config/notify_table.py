"""The table [notify] of agent.toml: rules, channels and times."""

import datetime as dt
import re
from datetime import timedelta
from typing import Annotated, Literal, Self

import jinja2
from jinja2.sandbox import SandboxedEnvironment
from pydantic import AfterValidator, Field, model_validator

from agent.config.notify_settings import Hook, Notify, Quiet, Rule, Severity, Webhook
from agent.config.run_times import run_calendar
from agent.config.toml_table import Table
from agent.config.value_kinds import Line, Script, Span, credential_name, refused, web_address
from agent.config.workload_tables import window_table

_PATTERN = r"^[A-Za-z0-9._*?-]{1,64}$"
_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d")


def _time(value: str) -> str:
    if not _TIME.fullmatch(value):
        raise refused("bad_time", 'is no time of the day; write for example digest_at = "08:00", UTC')
    return value


def _window(value: timedelta) -> timedelta:
    if value > timedelta(days=1):
        raise refused("out_of_range", "must be at most a day")
    return value


def _template(value: str) -> str:
    try:
        SandboxedEnvironment().parse(value)
    except jinja2.TemplateSyntaxError as error:
        sentence = f"is no Jinja template (its line {error.lineno}); write for example body = '{{{{ title }}}}'"
        raise refused("bad_template", sentence) from error
    return value


class RuleTable(Table):
    """Events to send, and the channels to send them to."""

    event: Annotated[Line, Field(pattern=_PATTERN, examples=["lease.*"])] = "*"
    """Kinds of events, as a shell pattern. `gpubid ledger events` shows kinds."""
    workload: Annotated[Line, Field(pattern=_PATTERN, examples=["train"])] = "*"
    """Workloads, as a shell pattern."""
    severity: Literal["info", "notice", "warning", "critical"] = "warning"
    """The lowest severity to send."""
    channels: tuple[Literal["webhook", "apprise", "hook"], ...] = ("webhook", "apprise", "hook")
    """The channels to send to, as far as they are set up."""


class WebhookTable(Table):
    """A generic webhook of your own."""

    url: Annotated[Line, Field(max_length=256), AfterValidator(web_address)] | None = None
    """Address to which messages are posted."""
    url_credential: Annotated[Line, AfterValidator(credential_name), Field(examples=["webhook_url"])] | None = None
    """Name of the credential that contains the address, if the address itself is a secret."""
    secret_credential: Annotated[Line, AfterValidator(credential_name), Field(examples=["webhook_secret"])] | None = (
        None
    )
    """Name of the credential that signs messages."""
    body: Annotated[Script, Field(max_length=16_384), AfterValidator(_template)] = ""
    """Jinja template of the body, from title, text, severity, at, key and events. Without it the message is JSON."""

    @model_validator(mode="after")
    def _has_one_address(self) -> Self:
        if (self.url is None) == (self.url_credential is None):
            raise refused("missing_key", 'needs one address; write either url = "https://..." or url_credential')
        return self


class HookTable(Table):
    """A command that is run for each event that a rule sends to it."""

    command: Annotated[
        tuple[Annotated[Line, Field(min_length=1, max_length=4_096)], ...],
        Field(min_length=1, max_length=64, examples=[["/usr/local/bin/on-gpubid-event"]]),
    ]
    """The program and its arguments. It runs without a shell."""
    deadline: Span = timedelta(seconds=10)
    """The command is killed after this time."""

    @model_validator(mode="after")
    def _names_a_file(self) -> Self:
        if not self.command[0].startswith("/"):
            raise refused(
                "bad_path", 'must name the program by its whole path; write for example command = ["/bin/true"]'
            )
        return self


class QuietTable(window_table.WindowTable):
    """Hours in which some messages wait. What waited is sent after them, in one message for each channel."""

    up_to: Literal["info", "notice", "warning"] = "notice"
    """The highest severity that waits. Critical events and events about money never do, nor does the hook."""

    def quiet(self) -> Quiet:
        """Return it as the program uses it."""
        return Quiet(self.rule(), Severity[self.up_to.upper()])


def _ends(value: tuple[QuietTable, ...]) -> tuple[QuietTable, ...]:
    at = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    hours = run_calendar.now(tuple(each.rule() for each in value), at)
    if hours.is_open and hours.until is None:
        raise refused(
            "never_ends", "the quiet hours never end, so nothing that waits would be sent; write shorter ones"
        )
    return value


class NotifyTable(Table):
    """Notifications of events, besides the metrics."""

    rules: Annotated[tuple[RuleTable, ...], Field(max_length=64)] = (RuleTable(),)
    """Events to send, and where. Without rules every warning goes to every channel."""
    window: Annotated[Span, AfterValidator(_window)] = timedelta(minutes=15)
    """The first event of an incident is sent at once. Later events within this time are sent in one summary."""
    digest_at: Annotated[Line, AfterValidator(_time), Field(examples=["08:00"])] | None = None
    """UTC time at which a summary of the day before is sent."""
    quiet: Annotated[tuple[QuietTable, ...], Field(max_length=8), AfterValidator(_ends)] = ()
    """Quiet hours, in which messages of low severity wait."""
    webhook: WebhookTable | None = None
    """A generic webhook of your own."""
    apprise: Annotated[
        tuple[Annotated[Line, AfterValidator(credential_name)], ...], Field(max_length=16, examples=[["apprise_url"]])
    ] = ()
    """Names of credentials that contain Apprise addresses. Needs `pip install 'gpubid[notify]'`."""
    hook: HookTable | None = None
    """A command that is run for each event that a rule sends to it."""

    def settings(self) -> Notify:
        """Return the table as the program uses it."""
        return Notify(
            rules=tuple(
                Rule(each.event, each.workload, Severity[each.severity.upper()], each.channels) for each in self.rules
            ),
            window=self.window,
            digest_at=dt.time.fromisoformat(self.digest_at) if self.digest_at is not None else None,
            webhook=_webhook(self.webhook),
            apprise=self.apprise,
            quiet=tuple(each.quiet() for each in self.quiet),
            hook=Hook(self.hook.command, self.hook.deadline) if self.hook is not None else None,
        )


def _webhook(table: WebhookTable | None) -> Webhook | None:
    if table is None:
        return None
    return Webhook(table.url or "", table.url_credential or "", table.secret_credential or "", table.body)
