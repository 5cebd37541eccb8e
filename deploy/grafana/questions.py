"""What the dashboards ask, question by question; dashboards.py draws them."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Panel:
    """One figure: `queries` are (PromQL, legend); `kind` is graph, number or list; `unit` is Grafana's name of one.

    `bad_from` says from where the figure is doubtful and bad, `bad_below` below which value it is bad and doubtful.
    A panel with `bad_below` shows -1 as "no estimate".
    A panel with `compared_to`, also (PromQL, legend), has one query: there the limits are shares of that other figure.
    """

    title: str
    unit: str
    queries: Sequence[tuple[str, str]]
    tells: str
    kind: str = "graph"
    width: int = 12
    bad_from: tuple[float, float] | None = None
    bad_below: tuple[float, float] | None = None
    compared_to: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A row: what a person asks, and the panels that answer it."""

    asks: str
    panels: Sequence[Panel]


def quantile(share: float, buckets: str, by: str = "", over: str = "$__rate_interval") -> str:
    """Return the PromQL for the bound below which this share of a histogram's observations lie."""
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({labels}) (rate({buckets}[{over}])))"


DAY_SECONDS = 86_400.0
WORKLOAD = '{workload=~"$workload"}'
MARKET = '{market=~"$market"}'
BOTH = '{workload=~"$workload", market=~"$market"}'
SPENT_A_DAY = f"sum by (workload) (increase(gpubid_spend_dollars_total{BOTH}[1d]))"
WORTH_A_DAY = f"sum by (workload) (increase(gpubid_on_demand_worth_dollars_total{WORKLOAD}[1d]))"
USEFUL_HOURS_A_DAY = f"sum by (workload) (increase(gpubid_useful_seconds_total{WORKLOAD}[1d])) / 3600"
SAVED = f"{WORTH_A_DAY} - {SPENT_A_DAY}"
PER_USEFUL_HOUR = f"{SPENT_A_DAY} / ({USEFUL_HOURS_A_DAY} > 0)"
OF_ON_DEMAND = f"sum(({SPENT_A_DAY}) and ({WORTH_A_DAY})) / (sum({WORTH_A_DAY}) > 0)"
WORTH_AN_HOUR = f"{WORTH_A_DAY} / ({USEFUL_HOURS_A_DAY} > 0)"
ON_DEMAND_AN_HOUR = f"sum({WORTH_A_DAY}) / (sum(({USEFUL_HOURS_A_DAY}) and ({WORTH_A_DAY})) > 0)"
OF_PRICED = f"sum(({SPENT_A_DAY}) and ({WORTH_A_DAY})) / (sum(({USEFUL_HOURS_A_DAY}) and ({WORTH_A_DAY})) > 0)"
OF_ALL = f"sum({SPENT_A_DAY}) / (sum({USEFUL_HOURS_A_DAY}) > 0)"
LOST = f"increase(gpubid_interruptions_total{BOTH}[$__range])"
BAD_CALLS = 'sum by (market, outcome) (increase(gpubid_market_requests_total{outcome!="ok"}[$__rate_interval]))'
CALLS = "sum by (market, operation) (increase(gpubid_market_requests_total[$__rate_interval]))"

FLEET = (
    Question(
        "Who runs, and who should?",
        (
            Panel(
                "Slots running of those wanted",
                "short",
                (("sum(gpubid_slots_running)", "running"), ("sum(gpubid_slots_wanted)", "wanted")),
                "Slots with a running lease, beside those the configuration asks for.",
                "number",
                6,
            ),
            Panel(
                "Slots by workload",
                "short",
                (
                    (f"gpubid_slots_wanted{WORKLOAD}", "{{workload}} wanted"),
                    (f"gpubid_slots_running{WORKLOAD}", "{{workload}} running"),
                    (f"gpubid_slots_ready{WORKLOAD}", "{{workload}} ready"),
                ),
                "Running is paid for; ready is useful where the workload tells.",
                width=9,
            ),
            Panel(
                "Waiting for a person, or idle",
                "short",
                (
                    (f"gpubid_slots_held{WORKLOAD}", "{{workload}} held"),
                    (f"gpubid_slots_idle{WORKLOAD}", "{{workload}} idle"),
                    (f"gpubid_slots_stalled{WORKLOAD}", "{{workload}} stalled"),
                    ("gpubid_orphans", "orphans"),
                    ("gpubid_instances_unaccounted", "{{market}} unaccounted"),
                    ("gpubid_billing_after_kill", "billing after a kill"),
                ),
                "What bills or stands still until somebody decides.",
                width=9,
            ),
        ),
    ),
    Question(
        "Where, and in what state?",
        (
            Panel(
                "Leases now",
                "short",
                (("sum by (market, tenure, state) (gpubid_leases) > 0 or sum(gpubid_leases) * 0", ""),),
                "Open leases by market, tenure and state.",
                "list",
            ),
            Panel(
                "Leases over time",
                "short",
                (("sum by (market, state) (gpubid_leases)", "{{market}} {{state}}"),),
                "Open leases, on-demand and interruptible together.",
            ),
        ),
    ),
    Question(
        "Is the agent well?",
        (
            Panel(
                "Age of the last good cycle",
                "s",
                (("time() - gpubid_cycle_last_success_timestamp_seconds", "age"),),
                "Over three minutes, and over four times the poll, nobody watches what runs.",
                "number",
                6,
            ),
            Panel(
                "Length of a cycle",
                "s",
                (
                    (quantile(0.95, "gpubid_cycle_duration_seconds_bucket"), "95 %"),
                    (quantile(0.5, "gpubid_cycle_duration_seconds_bucket"), "half"),
                ),
                "Calls to markets included.",
                width=9,
            ),
            Panel(
                "In doubt, and what limits forbade",
                "short",
                (
                    ("gpubid_intents_in_doubt", "in doubt"),
                    ("sum by (limit) (increase(gpubid_limits_struck_total[$__rate_interval]))", "{{limit}}"),
                ),
                "Requests nobody knows the outcome of, and decisions that a limit struck.",
                width=9,
            ),
        ),
    ),
)

INTERRUPTIONS = (
    Question(
        "What took leases away?",
        (
            Panel(
                "Interruptions by cause",
                "short",
                ((f"sum by (cause) (increase(gpubid_interruptions_total{BOTH}[$__rate_interval]))", "{{cause}}"),),
                "Losses of running leases that nobody asked for.",
                width=8,
            ),
            Panel(
                "By workload, in the time shown",
                "short",
                ((f"sum by (workload) ({LOST})", ""),),
                "How often each workload lost a running lease.",
                "list",
                8,
            ),
            Panel(
                "By market and cause, in the time shown",
                "short",
                ((f"sum by (market, cause) ({LOST})", ""),),
                "What took leases away, and where.",
                "list",
                8,
            ),
        ),
    ),
    Question(
        "How fast is a slot back?",
        (
            Panel(
                "From loss to each phase, half of them within",
                "s",
                ((quantile(0.5, "gpubid_recovery_seconds_bucket", by="phase", over="$__range"), "{{phase}}"),),
                "Detected, decided, sent, running, useful: each counted from the loss.",
            ),
            Panel(
                "The slowest twentieth",
                "s",
                ((quantile(0.95, "gpubid_recovery_seconds_bucket", by="phase", over="$__range"), "{{phase}}"),),
                "Exemplars carry the intent's id for `gpubid ledger events`.",
            ),
        ),
    ),
    Question(
        "Which hosts and models to avoid?",
        (
            Panel(
                "Hosts that flap",
                "short",
                (("gpubid_hosts_flapping", "{{market}}"),),
                "Three losses or more within a day; `gpubid strategy learned` names them.",
            ),
            Panel(
                "Cooldowns by a protection",
                "short",
                (("gpubid_protection_cooldowns", "{{protection}}"),),
                "Models, markets and owners that are left alone for a while; `gpubid fleet` says how to lift that.",
            ),
            Panel(
                "Left alone now, by name",
                "s",
                (("gpubid_avoided_until_timestamp_seconds - time()", ""),),
                "Hosts, owners, models and markets that get no rent, and for how long; the 20 that last longest.",
                "list",
            ),
        ),
    ),
)

MONEY = (
    Question(
        "How much of the caps is spent, and how long does the credit last?",
        (
            Panel(
                "Today",
                "currencyUSD",
                (('gpubid_spent_dollars{window="day"}', "spent"),),
                "Spent in this UTC day, beside max_per_day: orange from 80 % of it.",
                "number",
                6,
                bad_from=(0.8, 1.0),
                compared_to=('gpubid_budget_dollars{window="day"} > 0', "cap"),
            ),
            Panel(
                "This month",
                "currencyUSD",
                (('gpubid_spent_dollars{window="month"}', "spent"),),
                "Spent in this UTC month, beside max_per_month: orange from 80 % of it.",
                "number",
                5,
                bad_from=(0.8, 1.0),
                compared_to=('gpubid_budget_dollars{window="month"} > 0', "cap"),
            ),
            Panel(
                "Runway",
                "s",
                (("gpubid_credit_lasts_seconds or gpubid_market_available * 0 - 1", "{{market}}"),),
                "How long the credit lasts at the present rate: red under a day, also at 0, where it is used up. "
                "No estimate while nothing bills or the credit is unknown.",
                "number",
                4,
                bad_below=(DAY_SECONDS, 2 * DAY_SECONDS),
            ),
            Panel(
                "Dollars per useful hour",
                "currencyUSD",
                ((f"{OF_PRICED} or ({OF_ALL} and absent({ON_DEMAND_AN_HOUR}))", "paid"),),
                "What the last day cost over its useful hours, beside their price on demand: orange from 80 % of it. "
                "Of the workloads with an on-demand price; of all workloads, without a colour, where none has one.",
                "number",
                5,
                bad_from=(0.8, 1.0),
                compared_to=(ON_DEMAND_AN_HOUR, "on demand"),
            ),
            Panel(
                "Of the on-demand price",
                "percentunit",
                ((OF_ON_DEMAND, "the last day"),),
                "What was paid in a day over what its useful hours would have cost on demand.",
                "number",
                4,
                bad_from=(0.8, 1.0),
            ),
        ),
    ),
    Question(
        "What does it cost now, and how much is left?",
        (
            Panel(
                "Per hour",
                "currencyUSD",
                (("gpubid_spend_dollars_per_hour", "now"), ("gpubid_budget_dollars_per_hour", "cap")),
                "Doubt included.",
                width=8,
            ),
            Panel(
                "Budget used",
                "percentunit",
                (("gpubid_spent_dollars / (gpubid_budget_dollars > 0)", "{{window}}"),),
                "At the whole of it everything is paused.",
                width=8,
            ),
            Panel(
                "Credit",
                "currencyUSD",
                (("gpubid_credit_dollars", "{{market}}"),),
                "Credit of the account, as the market reports it.",
                width=8,
            ),
        ),
    ),
    Question(
        "What was it spent on?",
        (
            Panel(
                "Spend in the time shown",
                "currencyUSD",
                ((f"sum by (workload, market, tenure) (increase(gpubid_spend_dollars_total{BOTH}[$__range]))", ""),),
                "By workload, market and tenure, as the ledger counted it.",
                "list",
            ),
            Panel(
                "Spend per day",
                "currencyUSD",
                ((SPENT_A_DAY, "{{workload}}"),),
                "Over the day before each point.",
            ),
        ),
    ),
    Question(
        "What did a useful hour cost?",
        (
            Panel(
                "Dollars per useful hour",
                "currencyUSD",
                ((PER_USEFUL_HOUR, "{{workload}}"), (WORTH_AN_HOUR, "{{workload}} on demand")),
                "All that was paid over the hours that survived to a checkpoint, beside their price on demand.",
                width=8,
            ),
            Panel(
                "Saved against on demand, per day",
                "currencyUSD",
                ((SAVED, "{{workload}}"),),
                "The useful time at the lowest fitting on-demand price seen last, less all that was paid.",
                width=8,
            ),
            Panel(
                "Useful hours per day",
                "h",
                ((USEFUL_HOURS_A_DAY, "{{workload}}"),),
                "Running time that survived to its next checkpoint.",
                width=8,
            ),
        ),
    ),
    Question(
        "What was wasted, and does the bill agree?",
        (
            Panel(
                "Paid hours by what they were",
                "h",
                (
                    (
                        f"sum by (phase) (increase(gpubid_paid_seconds_total{WORKLOAD}[$__range])) / 3600",
                        "{{phase}}",
                    ),
                ),
                "Loading, restoring, working; lost is the part of working that an interruption undid.",
                width=8,
            ),
            Panel(
                "Thresholds used",
                "percentunit",
                (("gpubid_budget_used_ratio", "{{scope}} {{name}} {{window}} {{level}}"),),
                "Of every budget that is set; at 1 it is reached.",
                width=8,
            ),
            Panel(
                "Charged over reckoned",
                "percentunit",
                (("gpubid_bill_drift_ratio", "{{market}}"),),
                "By what share the market charged more than we reckoned, last day compared. No data: none was yet.",
                width=8,
            ),
        ),
    ),
)

MARKETS = (
    Question(
        "What does the market ask, and what do we bid?",
        (
            Panel(
                "Cheapest that fits",
                "currencyUSD",
                (
                    (f"gpubid_market_floor_dollars_per_hour{BOTH}", "{{market}} floor for {{workload}}"),
                    (f"gpubid_market_ask_dollars_per_hour{BOTH}", "{{market}} on demand for {{workload}}"),
                ),
                "Per hour, among the offers seen last.",
            ),
            Panel(
                "Headroom of our bids",
                "percentunit",
                ((f"gpubid_bid_headroom_ratio{WORKLOAD}", "{{workload}}"),),
                "Bid over floor, less one, mean over running interruptible leases.",
            ),
            Panel(
                "Bid against floor, slot by slot",
                "currencyUSD",
                (
                    (f"gpubid_slot_bid_dollars_per_hour{BOTH}", "{{slot}} bid on {{market}}"),
                    (f"gpubid_slot_floor_dollars_per_hour{BOTH}", "{{slot}} floor on {{market}}"),
                ),
                "Per hour, of running interruptible leases; a bid below its floor is about to lose its host.",
                width=24,
            ),
        ),
    ),
    Question(
        "Does it answer?",
        (
            Panel(
                "Listing read",
                "short",
                (("gpubid_market_available", "{{market}}"),),
                "1 where the complete listing was read in the last cycle.",
                width=8,
            ),
            Panel(
                "Calls that ended badly",
                "short",
                ((BAD_CALLS, "{{market}} {{outcome}}"),),
                "Throttled, unavailable, refused or in doubt.",
                width=8,
            ),
            Panel(
                "Time of a call",
                "s",
                ((quantile(0.95, "gpubid_market_request_duration_seconds_bucket", by="market"), "{{market}} 95 %"),),
                "Its turn in the queue included.",
                width=8,
            ),
        ),
    ),
    Question(
        "How much do we ask of it?",
        (
            Panel(
                "Calls by operation",
                "short",
                ((CALLS, "{{market}} {{operation}}"),),
                "Searches are rationed by the day.",
            ),
            Panel(
                "Its clock less ours",
                "s",
                (("gpubid_clock_skew_seconds", "{{market}}"),),
                "Beyond a minute nothing is paid for.",
            ),
        ),
    ),
    Question(
        "What can be rented at all, and for how long does credit last?",
        (
            Panel(
                "Sold to this account",
                "short",
                (("gpubid_market_capability", "{{market}} {{tenure}}"),),
                "1 where the account can rent in that tenure; 0 once the market says no.",
            ),
            Panel(
                "Credit lasts",
                "s",
                (("gpubid_credit_lasts_seconds or gpubid_market_available * 0", "{{market}}"),),
                "At the present rate; 0 while nobody can tell.",
            ),
        ),
    ),
)

BOARDS = {"fleet": FLEET, "interruptions": INTERRUPTIONS, "money": MONEY, "markets": MARKETS}
