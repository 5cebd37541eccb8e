"""The reasons for which a GPU runs slower than it could, by the vendor's bits."""

SLOWED: tuple[tuple[int, str], ...] = (
    (0x04, "power limit"),
    (0x08, "hardware slowdown"),
    (0x20, "heat"),
    (0x40, "heat, by the hardware"),
    (0x80, "power brake"),
)
"""`nvmlClocksEventReason...` of NVML's header. The other bits are an idle GPU and clocks that somebody set."""


def slowed(bits: int) -> str:
    """Return the reasons in words, or an empty text if none slows the clock."""
    return ", ".join(dict.fromkeys(word for bit, word in SLOWED if bits & bit))
