"""Point 4: how long rule 21 doubts a listed rate, as ARCHITECTURE.md says it; the judge's own reading of it."""

SECONDS = 900.0
LISTINGS = 3
"""How long, and in how many listings, a fall, or a rise of more than `STEEP` times, is doubted."""
PLAUSIBLE = 1.5
"""A rate of up to so many times the agreed one counts at once; a higher one after those listings."""
STEEP = 3.0
"""A rise of up to so many times the agreed price is doubted for those listings alone."""
