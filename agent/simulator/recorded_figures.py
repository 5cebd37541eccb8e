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
_MORE_OFFERS = "more offers that the same recorder saw on 2026-07-27 and reported to us; they are not in the excerpt"
_INBOX = "notifications inbox recorded 2026-08-16 (freeqaz/herdd inbox_2026-08-16.json @f8ce6ff)"
_STOPPED = "103 stopped episodes of 2026-07-27/28 (trimcrae/Rare-cancers vast-stopped-resume.json @d899a88)"
_LADDER = "bid ladder of 2026-07-25 (trimcrae/Rare-cancers vast-bid-semantics-probe-ladder.json @79165a8)"
_CENSUS = "whole-market census of 2026-10-05 (ai-compute-arbitrage-monitor docs/adr/020 @59caa62)"
_HERDD = "freeqaz/herdd bidpolicy.py and bid_echo_probe.py @f8ce6ff"
_RARE = "trimcrae/Rare-cancers gpu_backend.py"

# --- recorded: size of the market, hosts and prices -----------------------------------------------------------------
CENSUS_OFFERS = recorded("CENSUS_OFFERS", 13_069, "number of offers on the whole market", _CENSUS)
CENSUS_HOSTS = recorded("CENSUS_HOSTS", 7_357, "number of hosts on the whole market", _CENSUS)
TAKEN_SHARE = recorded("TAKEN_SHARE", 0.82, "share of all offers that nobody can rent now", _RARE)
FEE = recorded(
    "FEE",
    4 / 3,
    "price that the renter pays, divided by the price that the host gets: GPU, floor, disk and traffic",
    _OFFERS,
)
SINGLE_GPU_SHARES = recorded(
    "SINGLE_GPU_SHARES",
    (0.5, 0.25, 1.0, 1.0, 0.5, 0.5, 1 / 6, 0.25, 0.125, 0.25, 0.5, 0.25),
    "GPUs of an offer with one GPU, as a share of its host's GPUs",
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
    "price of disk in $/GB/month, of 12 offers",
    _OFFERS,
)
INET_DOWN = recorded(
    "INET_DOWN",
    (927.3, 6848.8, 30893.0, 255.9, 187.0, 662.0, 2903.8, 5858.0, 430.7, 928.6, 6925.1, 4658.3),
    "download speed in Mb/s, of 12 offers",
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
    "DLPerf of one card, of hosts that are not in the excerpt, one rounded value per host; a host with half of "
    "another's value runs at half speed",
    _MORE_OFFERS,
)
SLOW_ROWS = recorded(
    "SLOW_ROWS",
    (3, 23),
    "hosts below 0.6 of the speed of their card, and all hosts with a DLPerf in the list above",
    _MORE_OFFERS,
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
    "on-demand price of one card in $/h; the recorder kept only prices near $0.25, so these are no typical prices",
    f"{_OFFERS}; Tesla P4: {_LADDER}",
)
FLOOR_OVER_ASK = recorded(
    "FLOOR_OVER_ASK",
    (0.540541, 0.324324, 1.0, 0.645161, 0.972973, 0.391534),
    "floor divided by ask, of the on-demand offers in the excerpt; all 12 had 0.26 to 1.11, with the median 0.79",
    _OFFERS,
)
FLOOR_OVER_ASK_MEDIAN = recorded(
    "FLOOR_OVER_ASK_MEDIAN", 0.79, "median of floor divided by ask, of 12 on-demand offers", _OFFERS
)
FLOOR_OVER_ASK_RANGE = recorded("FLOOR_OVER_ASK_RANGE", (0.26, 1.11), "least and most of the same 12 offers", _OFFERS)
FLOOR_OVER_ASK_ROWS = recorded("FLOOR_OVER_ASK_ROWS", 12, "number of offers in the two figures above", _OFFERS)
FLOOR_AT_OR_ABOVE_ASK = recorded(
    "FLOOR_AT_OR_ABOVE_ASK",
    (7, 18),
    "offers with a floor at or above their ask, and all offers that were seen",
    _MORE_OFFERS,
)
FLOOR_OVER_ASK_MOST = recorded(
    "FLOOR_OVER_ASK_MOST", 6.0, "highest floor divided by ask, of the same offers", _MORE_OFFERS
)

# --- recorded: interruptions ----------------------------------------------------------------------------------------
OUTBID_JUMPS = recorded(
    "OUTBID_JUMPS",
    (3.175, 2.4125, 2.222222, 4.166667, 1.5625, 2.0625, 5.714286),
    "new floor divided by the losing bid, of the outbids in the excerpt",
    _INBOX,
)
OUTBID_JUMP_MEDIAN = recorded("OUTBID_JUMP_MEDIAN", 2.3, "median of the same quotient, of all 16 outbids", _INBOX)
OUTBID_JUMP_RANGE = recorded("OUTBID_JUMP_RANGE", (0.94, 5.7), "least and most of the same 16 outbids", _INBOX)
OUTBID_COUNT = recorded("OUTBID_COUNT", 16, "number of outbids in the two figures above", _INBOX)
FIRST_OUTBID_MEDIAN_SECONDS = recorded(
    "FIRST_OUTBID_MEDIAN_SECONDS",
    720.0,
    "seconds from the notice of the start to the first outbid, median of the 10 rentals that were outbid",
    _INBOX,
)
FIRST_OUTBID_RANGE_SECONDS = recorded(
    "FIRST_OUTBID_RANGE_SECONDS", (165.0, 5760.0), "least and most of the same 10 rentals (165 s to 1.6 h)", _INBOX
)
FIRST_OUTBID_COUNT = recorded("FIRST_OUTBID_COUNT", 10, "number of rentals in the two figures above", _INBOX)
STARTS_WATCHED = recorded(
    "STARTS_WATCHED", 18, "rentals that started within the 2.35 h of the excerpt of the inbox", _INBOX
)
STARTS_OUTBID = recorded("STARTS_OUTBID", 3, "of these rentals, those that were outbid within the same 2.35 h", _INBOX)
RECORDER_BID = recorded(
    "RECORDER_BID",
    (1.2, 0.65),
    "the owner of the inbox bids the first figure times the floor, and at most the second times the ask",
    _HERDD,
)
STOPPED_EPISODES = recorded("STOPPED_EPISODES", 103, "stops of instances that were watched", _STOPPED)
RESUME_MINUTES = recorded(
    "RESUME_MINUTES",
    (
        *(1.4, 3.7, 4.2, 4.8, 5.2, 6.4, 6.7, 7.9, 7.9, 7.9, 8.0, 8.1),
        *(9.4, 15.9, 16.0, 16.4, 25.6, 32.1, 40.1, 40.2, 42.9, 87.4, 89.0, 93.0),
    ),
    "minutes from stop to resume, of the 24 that resumed; read every 7.7 min",
    _STOPPED,
)
RESUMED_BY_45 = recorded("RESUMED_BY_45", 0.3841, "Kaplan-Meier chance to resume within 45 min", _STOPPED)
RESUMED_BY_90 = recorded("RESUMED_BY_90", 0.5894, "Kaplan-Meier chance to resume within 90 min", _STOPPED)
ECHO_LAG_SECONDS = recorded(
    "ECHO_LAG_SECONDS",
    (600.0, 1200.0),
    "seconds until a search shows the bid of the holder as the floor, least and most",
    _HERDD,
)
LOWERED_ECHO_FACTOR = recorded(
    "LOWERED_ECHO_FACTOR", (2.0, 4.0), "the same after a lowered bid: this many times as long, least and most", _HERDD
)
LONGEST_PULL_SECONDS = recorded("LONGEST_PULL_SECONDS", 10_620.0, "longest image pull seen (2 h 57 min)", _RARE)

# --- assumed: demand ------------------------------------------------------------------------------------------------
CHURN_SHAPE = assumed("CHURN_SHAPE", 0.3, "shape of the Gamma distribution of rivals per hour, drawn for each host")
CHURN_MEAN = assumed("CHURN_MEAN", 0.8, "mean of that distribution, in rivals per hour")
CONTEST_SHARE = assumed(
    "CONTEST_SHARE", 0.15, "chance that another renter soon wants a slice that was just rented with a bid"
)
CONTEST_MINUTES = assumed("CONTEST_MINUTES", (13.0, 0.5), "minutes until that renter comes: median and log deviation")
ON_DEMAND_SHARE = assumed("ON_DEMAND_SHARE", 0.22, "share of rivals that rent on demand")
FIGHT_BACK = assumed("FIGHT_BACK", 0.3, "chance that a displaced rival comes back with a higher bid")
FIGHT_BACK_SECONDS = assumed(
    "FIGHT_BACK_SECONDS", (120.0, 1200.0), "seconds until that rival comes back, least and most"
)
FIGHT_BACK_RAISE = assumed(
    "FIGHT_BACK_RAISE", (1.05, 1.3), "new bid of that rival, divided by the bid that displaced it, least and most"
)
FIGHT_BACK_LIMIT = assumed("FIGHT_BACK_LIMIT", 1.0, "that rival gives up above this share of the ask")
TIMID_SHARE = assumed("TIMID_SHARE", 0.2, "share of bidding rivals that bid barely above the floor")
TIMID_BID = assumed("TIMID_BID", (1.12, 0.12), "bid of these rivals, divided by the floor: median and log deviation")
BOLD_BID = assumed("BOLD_BID", (3.6, 0.5), "bid of the other rivals, divided by the floor: median and log deviation")
BID_LIMIT = assumed("BID_LIMIT", 2.5, "no rival bids more than this many times the ask")
HOLDS = assumed(
    "HOLDS",
    ((0.33, 5.5, 0.6), (0.36, 58.0, 0.55), (0.31, 420.0, 0.8)),
    "stay of three kinds of rivals: share of rivals, median in minutes, log deviation; fitted to RESUME_MINUTES",
)
RESIDENT_HOURS = assumed(
    "RESIDENT_HOURS",
    (96.0, 0.9),
    "stay in hours of the on-demand renters that hold TAKEN_SHARE of the hosts: median and log deviation; enough of "
    "them come to keep that share",
)
RESUME_LAG_SECONDS = assumed(
    "RESUME_LAG_SECONDS", (5.0, 60.0), "seconds from free GPUs to the start of a waiting contract, least and most"
)
UNLISTED_SECONDS = assumed(
    "UNLISTED_SECONDS",
    (60.0, 240.0),
    "seconds for which a slice that a bidder just rented is not listed, least and most",
)

# --- assumed: prices ------------------------------------------------------------------------------------------------
PRICE_SPREAD = assumed("PRICE_SPREAD", 0.28, "log deviation of the prices of hosts from the median of their GPU model")
PRICE_WALKS_PER_DAY = assumed("PRICE_WALKS_PER_DAY", 0.5, "number of price changes of a host per day")
PRICE_STEP = assumed("PRICE_STEP", 0.06, "log deviation of one price change")
FLOOR_KINDS = assumed(
    "FLOOR_KINDS",
    (
        *((0.04, 0.05, 0.26), (0.46, 0.26, 0.80), (0.20, 0.80, 1.0), (0.15, 1.0, 1.0)),
        *((0.11, 1.0, 1.12), (0.03, 1.12, 2.0), (0.01, 2.0, 6.0)),
    ),
    "floor divided by ask, of seven kinds of host: share of hosts, least, most; fitted to FLOOR_OVER_ASK and "
    "FLOOR_AT_OR_ABOVE_ASK",
)

# --- assumed: speed -------------------------------------------------------------------------------------------------
SPEED_KINDS = assumed(
    "SPEED_KINDS",
    ((0.10, 0.35, 0.55), (0.04, 0.80, 0.95)),
    "speed of two kinds of slow hosts, divided by the speed of their card: share of hosts, least, most; fitted to "
    "SLOW_ROWS, with a lower share, because those hosts were reported for being slow",
)
SPEED_NOISE = assumed("SPEED_NOISE", 0.012, "log deviation of the speed of all other hosts")

# --- assumed: hosts and contracts -----------------------------------------------------------------------------------
OUTAGE_MINUTES = assumed("OUTAGE_MINUTES", (18.0, 1.0), "minutes of an outage of a host: median and log deviation")
GONE_SHARE = assumed("GONE_SHARE", 0.01, "share of outages after which the host never returns")
PULL_FAILURE = assumed("PULL_FAILURE", 0.005, "chance that an image pull fails with an error of the host's daemon")
SLOW_PULL = assumed("SLOW_PULL", 0.04, "chance that an image pull takes 4 to 30 times as long")
PULL_MBITS = assumed("PULL_MBITS", 1500.0, "highest speed of a registry, in Mb/s")
UNPACK_GB_PER_SECOND = assumed("UNPACK_GB_PER_SECOND", 0.12, "speed of unpacking a pulled image, in GB/s")
IMAGE_GB = assumed("IMAGE_GB", (5.0, 0.5), "compressed size in GB of an unknown image: median and log deviation")
RESTART_SECONDS = assumed(
    "RESTART_SECONDS", (6.0, 20.0), "seconds from the GPUs to running, if the image is on the host, least and most"
)
REPORT_SECONDS = assumed(
    "REPORT_SECONDS", (2.0, 8.0), "seconds until the container of a new contract is first reported, least and most"
)
RACE_SECONDS = assumed(
    "RACE_SECONDS",
    (5.0, 40.0),
    "seconds until a contract stops that lost the race between create and start, least and most",
)
CREDIT_STOP_SECONDS = assumed("CREDIT_STOP_SECONDS", 60.0, "seconds from empty credit until all contracts are stopped")
EXPIRED_KEPT_SECONDS = assumed(
    "EXPIRED_KEPT_SECONDS", 172_800.0, "seconds from the end of an expired contract until it is deleted (48 h)"
)
END_NOTICE_SECONDS = assumed(
    "END_NOTICE_SECONDS", 86_400.0, "seconds from the notice of the end of a contract until its end (24 h)"
)
PREPAID_MONTHS_OF_FULL_DISCOUNT = assumed(
    "PREPAID_MONTHS_OF_FULL_DISCOUNT",
    6.0,
    "months that a deposit must cover for the whole discount; fewer months buy that share of it",
)
WEBHOOK_RETRY_SECONDS = assumed(
    "WEBHOOK_RETRY_SECONDS",
    (30.0, 120.0, 600.0, 1800.0, 3600.0),
    "seconds before each further attempt of a failed delivery",
)
PULLS_ARE_BILLED = assumed("PULLS_ARE_BILLED", value=True, meaning="image pulls count as traffic")


def figures() -> Sequence[Figure]:
    """Return every figure, in the order of this file."""
    return tuple(_FIGURES)


def about() -> str:
    """Return the recorded figures with their sources, then the assumed ones, as text for a person."""
    recorded = [figure for figure in figures() if figure.source is not None]
    assumed = [figure for figure in figures() if figure.source is None]
    lines = [
        "The climate 'recorded' is the calibrated market. Every other climate sets the keys in which it differs.",
        "",
    ]
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
