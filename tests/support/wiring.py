"""Whether stories are played as at night."""

import os

IS_WIRED = "GPUBID_WIRED" in os.environ
"""GPUBID_WIRED=1 plays every story over real HTTP and with the ledger's thread, and keeps ledgers on disk."""

IS_NIGHT = IS_WIRED or "GPUBID_NIGHT" in os.environ
"""GPUBID_NIGHT=1 polls in every story as shipped."""
