"""Names below a country, as the markets write them: states of the US, provinces of Canada and China, data centres.

Vast.ai writes "Texas, US", "Quebec, CA" and "Guangdong, CN"; RunPod names its data centres, as "US-KS-2" and "EU-RO-1".
"""

import re

_US = """
Alabama; Alaska; Arizona; Arkansas; California; Colorado; Connecticut; Delaware; District of Columbia; Florida;
Georgia; Hawaii; Idaho; Illinois; Indiana; Iowa; Kansas; Kentucky; Louisiana; Maine; Maryland; Massachusetts;
Michigan; Minnesota; Mississippi; Missouri; Montana; Nebraska; Nevada; New Hampshire; New Jersey; New Mexico;
New York; North Carolina; North Dakota; Ohio; Oklahoma; Oregon; Pennsylvania; Rhode Island; South Carolina;
South Dakota; Tennessee; Texas; Utah; Vermont; Virginia; Washington; West Virginia; Wisconsin; Wyoming
"""
_CANADA = """
Alberta; British Columbia; Manitoba; New Brunswick; Newfoundland and Labrador; Northwest Territories; Nova Scotia;
Nunavut; Ontario; Prince Edward Island; Quebec; Saskatchewan; Yukon
"""
_CHINA = """
Anhui; Beijing; Chongqing; Fujian; Gansu; Guangdong; Guangxi; Guizhou; Hainan; Hebei; Heilongjiang; Henan; Hubei;
Hunan; Inner Mongolia; Jiangsu; Jiangxi; Jilin; Liaoning; Ningxia; Qinghai; Shaanxi; Shandong; Shanghai; Shanxi;
Sichuan; Tianjin; Tibet; Xinjiang; Yunnan; Zhejiang
"""

NAMES = frozenset(name for part in (_US, _CANADA, _CHINA) for name in " ".join(part.split()).split("; "))
DATA_CENTRE = re.compile(r"[A-Z]{2,4}-[A-Z]{2,4}-[0-9]{1,2}", re.IGNORECASE)
"""The form of RunPod's ids of data centres. The set of existing ones changes."""
