"""The dashboards as code: `python deploy/grafana/dashboards.py` writes the JSON files beside it anew.

Each question has a row of its own. Colours are Grafana's own palette, readable in light and dark; every figure has a
unit; every panel leads to gpubid's own page.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, table, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models.dashboard import (
    DashboardLinkType,
    DataSourceRef,
    DynamicConfigValue,
    GridPos,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMappingResult,
    VariableOption,
    VariableRefresh,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat
from questions import BOARDS, Panel, Question

HERE = Path(__file__).parent
SOURCE = DataSourceRef(type_val="prometheus", uid="${source}")
WIDTH = 24
HEIGHT = 8
NO_ESTIMATE = -1
BUILDERS = {"graph": timeseries.Panel, "number": stat.Panel, "list": table.Panel}


def board(name: str, questions: Sequence[Question]) -> dashboard.Dashboard:
    """Return the dashboard of a name: one row a question, its panels below it."""
    made = (
        dashboard.Dashboard(f"gpubid: {name}")
        .uid(f"gpubid-{name}")
        .tags(["gpubid"])
        .readonly()
        .refresh("30s")
        .time("now-24h", "now")
        .timezone("browser")
        .with_variable(dashboard.DatasourceVariable("source").label("Prometheus").type("prometheus"))
        .with_variable(dashboard.TextBoxVariable("page").label("Page of gpubid").default_value("http://127.0.0.1:9477"))
        .with_variable(chosen("workload", "gpubid_slots_wanted"))
        .with_variable(chosen("market", "gpubid_market_available"))
        .annotation(interruptions())
        .link(dashboard.DashboardLink("gpubid").type(DashboardLinkType.DASHBOARDS).tags(["gpubid"]).keep_time(True))
    )
    top = 0
    number = 1
    for question in questions:
        made.with_row(dashboard.Row(question.asks).grid_pos(GridPos(h=1, w=WIDTH, x=0, y=top)).id(number))
        number, left = number + 1, 0
        for panel in question.panels:
            if left + panel.width > WIDTH:
                top, left = top + HEIGHT, 0
            place = GridPos(h=HEIGHT, w=panel.width, x=left, y=top + 1)
            made.with_panel(drawn(panel).grid_pos(place).id(number))
            number, left = number + 1, left + panel.width
        top += HEIGHT + 1
    return made


def chosen(label: str, metric: str) -> dashboard.QueryVariable:
    """Return the choice of some or all values of a label."""
    made = dashboard.QueryVariable(label).label(label.capitalize()).datasource(SOURCE)
    made.query(f"label_values({metric}, {label})").refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
    return made.multi(True).include_all(True).all_value(".*").current(VariableOption(text="All", value="$__all"))


def interruptions() -> dashboard.AnnotationQuery:
    """Return the marks at which leases were interrupted, on every graph."""
    made = dashboard.AnnotationQuery().name("interruptions").enable(True).icon_color("orange").datasource(SOURCE)
    lost = 'sum by (workload, market, cause) (increase(gpubid_interruptions_total{workload=~"$workload"}[1m])) > 0'
    return made.expr(lost)


def drawn(panel: Panel) -> "timeseries.Panel | stat.Panel | table.Panel":
    """Return the builder of one panel, without its place."""
    made = BUILDERS[panel.kind]().title(panel.title).unit(panel.unit).description(panel.tells).datasource(SOURCE)
    made.links([dashboard.DashboardLink("the page").type(DashboardLinkType.LINK).url("${page}").target_blank(True)])
    if steps := stepped(panel):
        limits = dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE)
        made.thresholds(limits.steps([Threshold(value=value, color=color) for value, color in steps]))
    if panel.bad_below is not None:
        made.mappings([ValueMap({str(NO_ESTIMATE): ValueMappingResult(text="no estimate", index=0)})])
    coloured = compared(panel) or [(*query, "") for query in panel.queries]
    for letter, (expression, legend, colour) in zip("ABCDEF", coloured, strict=False):
        made.with_target(asked(panel, letter, expression, legend))
        if colour:
            made.override_by_query(letter, [DynamicConfigValue(id_val="color", value=fixed(colour))])
    if isinstance(made, timeseries.Panel):
        made.fill_opacity(10).show_points(kinds.VisibilityMode.NEVER)
        legend = common.VizLegendOptions().display_mode(kinds.LegendDisplayMode.LIST)
        made.legend(legend.placement(kinds.LegendPlacement.BOTTOM).show_legend(True))
    return made


def stepped(panel: Panel) -> list[tuple[float | None, str]]:
    """Return from where a figure has which colour; where small ones are bad, a negative one is no estimate."""
    if panel.compared_to is None and panel.bad_from is not None:
        doubtful, bad = panel.bad_from
        return [(None, "green"), (doubtful, "orange"), (bad, "red")]
    if panel.bad_below is not None:
        bad, doubtful = panel.bad_below
        return [(None, "text"), (0.0, "red"), (bad, "orange"), (doubtful, "green")]
    return []


def compared(panel: Panel) -> list[tuple[str, str, str]]:
    """Return queries of a figure and of what it is compared to: PromQL, legend, colour; nothing if it is to nothing.

    Grafana's thresholds are numbers, and this limit is a figure. So each colour has a query, and one of them answers.
    """
    if panel.compared_to is None or panel.bad_from is None:
        return []
    ((figure, legend),), (other, others_legend), (doubtful, bad) = panel.queries, panel.compared_to, panel.bad_from
    figure, other = f"({figure})", f"({other})"
    return [
        (f"{figure} < {doubtful} * {other}", legend, "green"),
        (f"({figure} >= {doubtful} * {other}) < {bad} * {other}", legend, "orange"),
        (f"{figure} >= {bad} * {other}", legend, "red"),
        (f"{figure} unless {other}", legend, "text"),
        (other, others_legend, "text"),
    ]


def fixed(colour: str) -> dict[str, str]:
    """Return Grafana's word for one colour, whatever the figure."""
    return {"mode": "fixed", "fixedColor": colour}


def asked(panel: Panel, letter: str, expression: str, legend: str) -> prometheus.Dataquery:
    """Return one query of a panel; a list and a number ask for the last value alone."""
    query = prometheus.Dataquery().ref_id(letter).expr(expression).legend_format(legend or "__auto").datasource(SOURCE)
    if panel.kind == "graph":
        return query.range().exemplar("recovery" in expression)
    query.instant()
    return query.format(PromQueryFormat.TABLE) if panel.kind == "list" else query


def written(name: str) -> str:
    """Return the JSON of a dashboard."""
    plain = json.loads(JSONEncoder().encode(board(name, BOARDS[name]).build()))
    for variable in plain["templating"]["list"]:
        # The builder writes the keys of an interval variable into every kind; Grafana's schema refuses them there.
        for key in ("auto", "auto_count", "auto_min"):
            variable.pop(key, None)
    return json.dumps(plain, sort_keys=True, indent=2) + "\n"


if __name__ == "__main__":
    for name in BOARDS:
        (HERE / f"{name}.json").write_text(written(name))
