"""Ways in which the answer to an order is lost, from which properties draw."""

from typing import Any

from hypothesis import strategies as st

BEFORE: list[dict[str, Any]] = [
    {"fault": "server_error_before"},
    {"fault": "html_403"},
    {"fault": "reset", "when": "before"},
    {"fault": "throttle_json"},
]
"""Nothing was done."""
AFTER: list[dict[str, Any]] = [
    {"fault": "server_error_after"},
    {"fault": "server_error_after", "status": 500},
    {"fault": "reset", "when": "after"},
    {"fault": "truncated"},
    {"fault": "malformed"},
    {"fault": "slow", "delay": 45},
]
"""It was done."""
ORDERS = ["PUT /asks", "PUT /instances", "PUT /instances/bid_price", "DELETE /instances", "PUT"]

losses = st.builds(
    lambda fault, route, seconds: {**fault, "route": route, "seconds": seconds},
    st.sampled_from(BEFORE + AFTER),
    st.sampled_from(ORDERS),
    st.sampled_from([1, 40, 400]),
)
seeds = st.integers(0, 10_000)
