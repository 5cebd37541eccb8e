"""One spelling of every GPU model for the different spellings of markets and operators."""

import re
from functools import lru_cache
from typing import NewType

GpuModel = NewType("GpuModel", str)
"""The canonical name of a GPU model, such as "RTX 4090" or "H100 SXM"."""

_VENDOR_WORDS = re.compile(r"\b(nvidia|geforce|amd|radeon|tesla|quadro)\b", re.IGNORECASE)
_SEPARATORS = re.compile(r"[\s_\-]+")
_SUPER = re.compile(r"(\d)( TI)? ?SUPER\b")
_LONE_S = re.compile(r"^(RTX (?:20|40|50)[1-9]0)( TI)? S\b")
_GTX_SUPER = re.compile(r"^(GTX 16\d0) ?S\b")
_ADA = re.compile(r"(\d) ?ADA\b( GENERATION\b)?")
_QUADRO = re.compile(r"^Q (?=RTX )")
_TI = re.compile(r"(\d)TI\b")
_LETTERS_THEN_DIGITS = re.compile(r"^(RTX|GTX|RX)(\d)", re.IGNORECASE)


@lru_cache(maxsize=4096)
def model(text: str) -> GpuModel:
    """Return the canonical model of a free spelling.

    "rtx_4090", "RTX4090", "NVIDIA GeForce RTX 4090" and "RTX 4090" are all "RTX 4090"; "RTX 3090Ti" is "RTX 3090 TI",
    "RTX 6000Ada" is "RTX 6000 ADA", "Q RTX 8000" is "RTX 8000" and "RTX 4070 SUPER" is "RTX 4070S". Names are upper
    case, words are separated by one space.

    A SUPER has an "S" at its number, but a "GTX 1660 S" a space before it: the one market that has that card writes it
    so. An "S" of another card, as of "RTX PRO 6000 S", is none.
    """
    words = _SEPARATORS.sub(" ", _VENDOR_WORDS.sub(" ", text.replace("_", " "))).strip()
    words = _LETTERS_THEN_DIGITS.sub(r"\1 \2", words)
    words = _QUADRO.sub("", " ".join(words.upper().split()))
    words = _SUPER.sub(r"\1S\2", _TI.sub(r"\1 TI", _ADA.sub(r"\1 ADA", words)))
    return GpuModel(_GTX_SUPER.sub(r"\1 S", _LONE_S.sub(r"\1S\2", words)))
