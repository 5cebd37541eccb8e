"""The places of hosts. Recorded answers and the published API document name the data centres.

Their countries and regions follow their names; the types of GPU in each are assumed.
"""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class DataCenter:
    """One data centre."""

    center_id: str
    name: str
    country: str
    region: str


DATA_CENTERS: tuple[DataCenter, ...] = (
    DataCenter("US-KS-2", "US Kansas 2", "US", "NORTH_AMERICA"),
    DataCenter("US-MO-1", "US Missouri 1", "US", "NORTH_AMERICA"),
    DataCenter("US-CA-2", "US California 2", "US", "NORTH_AMERICA"),
    DataCenter("US-TX-3", "US Texas 3", "US", "NORTH_AMERICA"),
    DataCenter("CA-MTL-1", "CA Montreal 1", "CA", "NORTH_AMERICA"),
    DataCenter("CA-MTL-4", "CA Montreal 4", "CA", "NORTH_AMERICA"),
    DataCenter("EU-RO-1", "EU Romania 1", "RO", "EUROPE"),
    DataCenter("EU-SE-1", "EU Sweden 1", "SE", "EUROPE"),
    DataCenter("EUR-IS-3", "EUR Iceland 3", "IS", "EUROPE"),
)
EUROPEAN = "EU-RO-1"
BY_ID = {center.center_id: center for center in DATA_CENTERS}
# Community hosts are in no data centre.
COMMUNITY_COUNTRIES = ("US", "CA", "SE", "NO", "CZ", "PL", "BG", "NL")
