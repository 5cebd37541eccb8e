"""The nouns that all simulated markets share: a refusal of a call, and a charge.

1. Times are epoch seconds as floats, money is float dollars: this is the vendor's world, not ours.
2. The names here are the project's own words; the vendors' field names exist only in the HTTP surfaces.
"""

import dataclasses


class Refusal(Exception):
    """The market refused a call. `code` is one of the class constants, `sentence` is for people."""

    NO_SUCH_ASK = "no_such_ask_404"
    ASK_TAKEN = "no_such_ask_410"
    INSUFFICIENT_CREDIT = "insufficient_credit"
    BAD_PRICE = "bad_price"
    BAD_DISK = "bad_disk"
    NOT_A_BID = "not_a_bid"
    NO_SUCH_CONTRACT = "no_such_contract"
    EXPIRED = "expired"
    NO_SUCH_HOST = "no_such_host"

    def __init__(self, code: str, sentence: str) -> None:
        """Keep the machine code and the sentence."""
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


@dataclasses.dataclass(frozen=True, slots=True)
class Charge:
    """The cost of one contract on one UTC day, for one kind of charge at one rate."""

    contract_id: int
    label: str | None
    machine_id: int
    day: float  # midnight UTC that opens the day
    kind: str  # "gpu", "disk", "download", "upload"
    rate: float  # $/h, or $/GB for traffic
    quantity: float  # hours, or GB for traffic
    amount: float
    start: float
    end: float
