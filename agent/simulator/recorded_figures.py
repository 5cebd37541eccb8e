"""Every figure of the simulated market: recorded ones with their source, and assumed ones.

1. Each figure is written here once. The code draws from it, and `gpubid simulate --about` prints it. The calibration
   test compares the simulator's own statistics with it.
2. Samples (several recorded values) serve comparisons only. The market draws from fitted distributions.
"""

import dataclasses
from collections.abc import Sequence
from typing import TypeVar

_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True, slots=True)
class Figure:
    """One number or sample with its meaning and, if it was recorded, its source."""

    name: str
    value: object
    meaning: str
    source: str | None  # None: assumed


_FIGURES: list[Figure] = []


def recorded(name: str, value: _T, meaning: str, source: str) -> _T:
    """Register a recorded figure and return its value."""
    _FIGURES.append(Figure(name, value, meaning, source))
    return value


def assumed(name: str, value: _T, meaning: str) -> _T:
    """Register an assumed figure and return its value."""
    _FIGURES.append(Figure(name, value, meaning, None))
    return value


# The recordings, by the short names used below.
_OFFERS = "excerpt of 24 market offers recorded 2026-07-27 (trimcrae/Rare-cancers vast-market-offers-raw.json @d71c8de)"
_MORE_OFFERS = "more offers of the same recorder and day, 2026-07-27, as they were reported to us; not in the excerpt"
_INBOX = "notifications inbox recorded 2026-08-16 (freeqaz/herdd inbox_2026-08-16.json @f8ce6ff)"
_STOPPED = "103 stopped episodes of 2026-07-27/28 (trimcrae/Rare-cancers vast-stopped-resume.json @d899a88)"
_LADDER = "bid ladder of 2026-07-25 (trimcrae/Rare-cancers vast-bid-semantics-probe-ladder.json @79165a8)"
_CENSUS = "whole-market census of 2026-10-05 (ai-compute-arbitrage-monitor docs/adr/020 @59caa62)"
_HERDD = "freeqaz/herdd bidpolicy.py and bid_echo_probe.py @f8ce6ff"
_RARE = "trimcrae/Rare-cancers gpu_backend.py"

# --- how big the market is, and what a host is ----------------------------------------------------------------------
CENSUS_OFFERS = recorded("CENSUS_OFFERS", 13_069, "offers of the whole market", _CENSUS)
CENSUS_HOSTS = recorded("CENSUS_HOSTS", 7_357, "hosts of the whole market", _CENSUS)
TAKEN_SHARE = recorded("TAKEN_SHARE", 0.82, "share of all rows that nobody can rent now", _RARE)
FEE = recorded("FEE", 4 / 3, "the renter's price over the host's, for GPU, floor, disk and traffic", _OFFERS)
SINGLE_GPU_SHARES = recorded(
    "SINGLE_GPU_SHARES",
    (0.5, 0.25, 1.0, 1.0, 0.5, 0.5, 1 / 6, 0.25, 0.125, 0.25, 0.5, 0.25),
    "share of its host's GPUs that a one-GPU offer has",
    _OFFERS,
)
RELIABILITY = recorded(
    "RELIABILITY",
    (
        *(0.9991294, 0.9978769, 0.9638499, 0.9858261, 0.9925539, 0.9964537),
        *(0.9873291, 0.9978382, 0.9957887, 0.9995652, 0.9809268, 0.9994956),
    ),
    "advertised reliability of 12 offers",
    _OFFERS,
)
STORAGE_PRICES = recorded(
    "STORAGE_PRICES",
    (0.2, 0.2, 0.5333, 0.1333, 0.2267, 0.08, 0.1333, 0.1333, 0.8667, 0.2, 0.4, 0.1),
    "$/GB/month of 12 offers",
    _OFFERS,
)
INET_DOWN = recorded(
    "INET_DOWN",
    (927.3, 6848.8, 30893.0, 255.9, 187.0, 662.0, 2903.8, 5858.0, 430.7, 928.6, 6925.1, 4658.3),
    "Mb/s down of 12 offers",
    _OFFERS,
)
DLPERF = recorded(
    "DLPERF",
    {
        "RTX 3090": (44.36733, 44.35681, 45.13122, 44.36733, 44.25931, 43.12704),
        "RTX 4090": (98.33359,),
        "Q RTX 8000": (11.85512, 11.59033),
        "Tesla T4": (4.40071,),
        "Tesla P100": (5.82309,),
        "Tesla V100": (25.71306,),
        "Tesla P4": (2.66823,),
    },
    "DLPerf of one card",
    f"{_OFFERS}; Tesla P4: {_LADDER}",
)
DLPERF_OF_SINGLE_HOSTS = recorded(
    "DLPERF_OF_SINGLE_HOSTS",
    {
        "H100 SXM": (358.6, 184.3),
        "H100 NVL": (305.3,),
        "A100 SXM4": (80.5,),
        "RTX PRO 6000 S": (279.1,),
        "RTX PRO 6000 WS": (282.0, 143.0),
        "RTX 2080 Ti": (11.0,),
        "RTX 3090": (15.9, 38.3),
    },
    "DLPerf of one card of hosts beyond the excerpt, one rounded value per host; half of another's value is a host at "
    "half speed",
    _MORE_OFFERS,
)
SLOW_ROWS = recorded(
    "SLOW_ROWS", (3, 23), "hosts under 0.6 of their card's speed, of all whose DLPerf is named above", _MORE_OFFERS
)
ASKS = recorded(
    "ASKS",
    {
        "RTX 3090": (0.246667, 0.246667, 0.246667),
        "RTX 4090": (0.24,),
        "Tesla V100": (0.248,),
        "Q RTX 8000": (0.252,),
        "Tesla P4": (0.021333,),
    },
    "$/h of one card on demand; the recorder kept a window near $0.25, so these bound a model's range, not its middle",
    f"{_OFFERS}; Tesla P4: {_LADDER}",
)
FLOOR_OVER_ASK = recorded(
    "FLOOR_OVER_ASK",
    (0.540541, 0.324324, 1.0, 0.645161, 0.972973, 0.391534),
    "floor over ask of the on-demand rows at hand; of all 12 the range was 0.26 to 1.11, the median 0.79",
    _OFFERS,
)
FLOOR_OVER_ASK_MEDIAN = recorded("FLOOR_OVER_ASK_MEDIAN", 0.79, "median of 12 on-demand rows", _OFFERS)
FLOOR_OVER_ASK_RANGE = recorded("FLOOR_OVER_ASK_RANGE", (0.26, 1.11), "extremes of 12 on-demand rows", _OFFERS)
FLOOR_OVER_ASK_ROWS = recorded("FLOOR_OVER_ASK_ROWS", 12, "on-demand rows behind the two above", _OFFERS)
FLOOR_AT_OR_ABOVE_ASK = recorded(
    "FLOOR_AT_OR_ABOVE_ASK", (7, 18), "rows whose floor is at or above the ask, of all that were seen", _MORE_OFFERS
)
FLOOR_OVER_ASK_MOST = recorded("FLOOR_OVER_ASK_MOST", 6.0, "the most that floor over ask came to there", _MORE_OFFERS)

# --- interruptions --------------------------------------------------------------------------------------------------
OUTBID_JUMPS = recorded(
    "OUTBID_JUMPS",
    (3.175, 2.4125, 2.222222, 4.166667, 1.5625, 2.0625, 5.714286),
    "new floor over the bid that lost, of the outbids at hand",
    _INBOX,
)
OUTBID_JUMP_MEDIAN = recorded("OUTBID_JUMP_MEDIAN", 2.3, "median of all 16 outbids", _INBOX)
OUTBID_JUMP_RANGE = recorded("OUTBID_JUMP_RANGE", (0.94, 5.7), "extremes of all 16 outbids", _INBOX)
OUTBID_COUNT = recorded("OUTBID_COUNT", 16, "outbids behind the two above", _INBOX)
FIRST_OUTBID_MEDIAN_SECONDS = recorded(
    "FIRST_OUTBID_MEDIAN_SECONDS", 720.0, "start notice to first outbid, median of the 10 rentals that were", _INBOX
)
FIRST_OUTBID_RANGE_SECONDS = recorded(
    "FIRST_OUTBID_RANGE_SECONDS", (165.0, 5760.0), "extremes of the same 10 (165 s to 1.6 h)", _INBOX
)
FIRST_OUTBID_COUNT = recorded("FIRST_OUTBID_COUNT", 10, "rentals behind the two above", _INBOX)
STARTS_WATCHED = recorded(
    "STARTS_WATCHED", 18, "rentals whose start is in the 2.35 h of the inbox at hand, at most 2.35 h watched", _INBOX
)
STARTS_OUTBID = recorded("STARTS_OUTBID", 3, "of them outbid within the same 2.35 h", _INBOX)
RECORDER_BID = recorded(
    "RECORDER_BID", (1.2, 0.65), "the inbox's owner bids this times the floor, at most this share of the ask", _HERDD
)
STOPPED_EPISODES = recorded("STOPPED_EPISODES", 103, "stopped episodes watched", _STOPPED)
RESUME_MINUTES = recorded(
    "RESUME_MINUTES",
    (
        *(1.4, 3.7, 4.2, 4.8, 5.2, 6.4, 6.7, 7.9, 7.9, 7.9, 8.0, 8.1),
        *(9.4, 15.9, 16.0, 16.4, 25.6, 32.1, 40.1, 40.2, 42.9, 87.4, 89.0, 93.0),
    ),
    "stop to resume of the 24 that resumed, seen every 7.7 min",
    _STOPPED,
)
RESUMED_BY_45 = recorded("RESUMED_BY_45", 0.3841, "Kaplan-Meier chance to resume within 45 min", _STOPPED)
RESUMED_BY_90 = recorded("RESUMED_BY_90", 0.5894, "Kaplan-Meier chance to resume within 90 min", _STOPPED)
ECHO_LAG_SECONDS = recorded(
    "ECHO_LAG_SECONDS", (600.0, 1200.0), "until a search shows the holder's own bid as the floor", _HERDD
)
LOWERED_ECHO_FACTOR = recorded("LOWERED_ECHO_FACTOR", (2.0, 4.0), "times that lag when the bid was lowered", _HERDD)
LONGEST_PULL_SECONDS = recorded("LONGEST_PULL_SECONDS", 10_620.0, "longest image pull seen (2 h 57 min)", _RARE)

# --- assumed: demand ------------------------------------------------------------------------------------------------
CHURN_SHAPE = assumed("CHURN_SHAPE", 0.3, "shape of the Gamma from which a host's rivals per hour are drawn")
CHURN_MEAN = assumed("CHURN_MEAN", 0.8, "its mean, rivals per hour and host")
CONTEST_SHARE = assumed("CONTEST_SHARE", 0.15, "chance that another renter soon wants a slice just taken with a bid")
CONTEST_MINUTES = assumed("CONTEST_MINUTES", (13.0, 0.5), "until that renter comes: median and log deviation")
ON_DEMAND_SHARE = assumed("ON_DEMAND_SHARE", 0.22, "of the rivals that come, those who rent on demand")
FIGHT_BACK = assumed("FIGHT_BACK", 0.3, "chance that a displaced rival comes back with a higher bid")
FIGHT_BACK_SECONDS = assumed("FIGHT_BACK_SECONDS", (120.0, 1200.0), "until that rival comes back")
FIGHT_BACK_RAISE = assumed("FIGHT_BACK_RAISE", (1.05, 1.3), "its new bid over the bid that displaced it")
FIGHT_BACK_LIMIT = assumed("FIGHT_BACK_LIMIT", 1.0, "times the ask, beyond which it gives up")
TIMID_SHARE = assumed("TIMID_SHARE", 0.2, "of the bidding rivals, those who bid barely over the floor")
TIMID_BID = assumed("TIMID_BID", (1.12, 0.12), "their bid over the floor: median and log deviation")
BOLD_BID = assumed("BOLD_BID", (3.6, 0.5), "the others' bid over the floor: median and log deviation")
BID_LIMIT = assumed("BID_LIMIT", 2.5, "times the ask, beyond which nobody bids")
HOLDS = assumed(
    "HOLDS",
    ((0.33, 5.5, 0.6), (0.36, 58.0, 0.55), (0.31, 420.0, 0.8)),
    "how long a rival stays: share, median minutes, log deviation of three kinds; fitted to the resumes above",
)
RESIDENT_HOURS = assumed(
    "RESIDENT_HOURS",
    (96.0, 0.9),
    "stay of the on-demand renters that hold TAKEN_SHARE of the hosts: median and log deviation; they come often "
    "enough to keep that share",
)
RESUME_LAG_SECONDS = assumed(
    "RESUME_LAG_SECONDS", (5.0, 60.0), "between GPUs coming free and a waiting contract's start"
)
UNLISTED_SECONDS = assumed(
    "UNLISTED_SECONDS", (60.0, 240.0), "a slice just taken by a bidder is not listed for so long"
)

# --- assumed: prices ------------------------------------------------------------------------------------------------
PRICE_SPREAD = assumed("PRICE_SPREAD", 0.28, "log deviation of hosts' prices around their model's median")
PRICE_WALKS_PER_DAY = assumed("PRICE_WALKS_PER_DAY", 0.5, "times a day that a host changes its prices")
PRICE_STEP = assumed("PRICE_STEP", 0.06, "log deviation of one such change")
FLOOR_KINDS = assumed(
    "FLOOR_KINDS",
    (
        *((0.04, 0.05, 0.26), (0.46, 0.26, 0.80), (0.20, 0.80, 1.0), (0.15, 1.0, 1.0)),
        *((0.11, 1.0, 1.12), (0.03, 1.12, 2.0), (0.01, 2.0, 6.0)),
    ),
    "floor over ask: share, lowest, highest of seven kinds of host; fitted to FLOOR_OVER_ASK and FLOOR_AT_OR_ABOVE_ASK",
)

# --- assumed: speed -------------------------------------------------------------------------------------------------
SPEED_KINDS = assumed(
    "SPEED_KINDS",
    ((0.10, 0.35, 0.55), (0.04, 0.80, 0.95)),
    "hosts slower than their card: share, lowest, highest of two kinds; fitted to SLOW_ROWS, with a lower share, since "
    "the slow ones were reported for being slow",
)
SPEED_NOISE = assumed("SPEED_NOISE", 0.012, "log deviation of the speed of all other hosts")

# --- assumed: hosts and contracts -----------------------------------------------------------------------------------
OUTAGE_MINUTES = assumed("OUTAGE_MINUTES", (18.0, 1.0), "how long a host is silent: median and log deviation")
GONE_SHARE = assumed("GONE_SHARE", 0.01, "of the outages, those from which a host never returns")
PULL_FAILURE = assumed("PULL_FAILURE", 0.005, "chance that an image pull ends in a daemon's error")
SLOW_PULL = assumed("SLOW_PULL", 0.04, "chance that an image pull takes 4 to 30 times as long")
PULL_MBITS = assumed("PULL_MBITS", 1500.0, "Mb/s beyond which a registry does not deliver")
UNPACK_GB_PER_SECOND = assumed("UNPACK_GB_PER_SECOND", 0.12, "at which a pulled image is unpacked")
IMAGE_GB = assumed("IMAGE_GB", (5.0, 0.5), "compressed size of an unknown image: median and log deviation")
RESTART_SECONDS = assumed("RESTART_SECONDS", (6.0, 20.0), "from having the GPUs to running, with the image there")
REPORT_SECONDS = assumed("REPORT_SECONDS", (2.0, 8.0), "until a new contract's container is first reported")
RACE_SECONDS = assumed("RACE_SECONDS", (5.0, 40.0), "after which a contract that lost the create/start race stops")
CREDIT_STOP_SECONDS = assumed("CREDIT_STOP_SECONDS", 60.0, "from empty credit to everything stopped")
EXPIRED_KEPT_SECONDS = assumed("EXPIRED_KEPT_SECONDS", 172_800.0, "an expired contract is deleted 48 h later")
END_NOTICE_SECONDS = assumed("END_NOTICE_SECONDS", 86_400.0, "from the notice to a contract's holder until its end")
PREPAID_MONTHS_OF_FULL_DISCOUNT = assumed(
    "PREPAID_MONTHS_OF_FULL_DISCOUNT",
    6.0,
    "months that a deposit must cover for the whole discount; fewer buy their share",
)
WEBHOOK_RETRY_SECONDS = assumed(
    "WEBHOOK_RETRY_SECONDS", (30.0, 120.0, 600.0, 1800.0, 3600.0), "waits before a failed delivery is sent again"
)
PULLS_ARE_BILLED = assumed("PULLS_ARE_BILLED", value=True, meaning="image pulls count as traffic")


def figures() -> Sequence[Figure]:
    """Return every figure, in the order of this file."""
    return tuple(_FIGURES)


def about() -> str:
    """Return the recorded figures with their sources, then the assumed ones, as text for a person."""
    recorded = [figure for figure in figures() if figure.source is not None]
    assumed = [figure for figure in figures() if figure.source is None]
    lines = ["The climate 'recorded' is the calibrated market; every other climate differs where its file says so.", ""]
    lines.append(f"Recorded ({len(recorded)}):")
    for figure in recorded:
        lines += [f"  {figure.name} = {_shown(figure.value)}", f"      {figure.meaning}", f"      from {figure.source}"]
    lines += ["", f"Assumed ({len(assumed)}):"]
    for figure in assumed:
        lines += [f"  {figure.name} = {_shown(figure.value)}", f"      {figure.meaning}"]
    return "\n".join(lines) + "\n"


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple):
        return "(" + ", ".join(_shown(part) for part in value) + ")"
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_shown(part)}" for key, part in value.items())
    return str(value)
