"""The places of simulated hosts, and their parts besides GPUs; all shares are assumed."""

# share in per mille, geolocation as a market shows it, how fast its lines are (times the median), price of its power
PLACES: tuple[tuple[float, str, float, float], ...] = (
    (60, ", US", 1.2, 1.0),
    (50, "California, US", 1.2, 1.1),
    (50, "Texas, US", 1.2, 0.98),
    (35, "New York, US", 1.2, 1.08),
    (30, "Washington, US", 1.3, 1.0),
    (25, "Minnesota, US", 1.0, 1.0),
    (20, "Wisconsin, US", 1.0, 0.95),
    (25, "Utah, US", 1.3, 1.0),
    (30, "Virginia, US", 1.6, 1.05),
    (50, "Quebec, CA", 1.0, 0.97),
    (30, "Ontario, CA", 1.2, 1.0),
    (45, "Sweden, SE", 1.6, 1.02),
    (45, "Norway, NO", 1.5, 1.0),
    (45, "Germany, DE", 1.0, 1.08),
    (40, "Czechia, CZ", 1.2, 1.0),
    (35, "The Netherlands, NL", 1.8, 1.08),
    (30, "Poland, PL", 1.0, 1.0),
    (30, "Romania, RO", 1.5, 0.95),
    (30, "France, FR", 1.3, 1.05),
    (25, "United Kingdom, GB", 1.1, 1.08),
    (25, "Spain, ES", 1.0, 1.0),
    (20, "Bulgaria, BG", 1.1, 0.93),
    (15, "Iceland, IS", 1.2, 1.05),
    (15, "Estonia, EE", 1.1, 1.0),
    (20, "Ukraine, UA", 0.8, 0.88),
    (45, "Guangdong, CN", 0.3, 0.85),
    (30, "Guangxi, CN", 0.25, 0.82),
    (25, "Hong Kong, HK", 0.9, 1.0),
    (25, "Taiwan, TW", 0.8, 0.98),
    (25, "Japan, JP", 1.1, 1.1),
    (25, "South Korea, KR", 1.1, 1.05),
    (20, "India, IN", 0.4, 0.85),
    (15, "Thailand, TH", 0.7, 0.95),
    (15, "Vietnam, VN", 0.6, 0.88),
    (15, "Argentina, AR", 0.7, 0.9),
    (10, "Brazil, BR", 0.6, 0.95),
    (15, "Australia, AU", 0.6, 1.12),
)

# name, cores, GHz, the board that goes with it, PCIe generation
PROCESSORS: tuple[tuple[str, int, float, str, float], ...] = (
    ("AMD EPYC 7542 32-Core Processor", 64, 2.9, "ROMED8-2T", 4.0),
    ("AMD EPYC 7642 48-Core Processor", 96, 2.3, "H12SSL", 4.0),
    ("AMD EPYC 7702 64-Core Processor", 128, 2.0, "ROMED8-2T", 4.0),
    ("AMD EPYC 7B13 64-Core Processor", 128, 2.25, "MZ32-AR0", 4.0),
    ("AMD EPYC 9354 32-Core Processor", 64, 3.25, "H13SSL", 5.0),
    ("AMD EPYC 9654 96-Core Processor", 384, 2.4, "K14PG-D24", 5.0),
    ("AMD Ryzen 9 5950X 16-Core Processor", 32, 3.4, "X570 Taichi", 4.0),
    ("AMD Ryzen 9 7950X 16-Core Processor", 32, 4.5, "X670E", 5.0),
    ("AMD Ryzen 5 5600X 6-Core Processor", 12, 3.7, "B550 Phantom", 4.0),
    ("Xeon® E5-2680 v4 ", 56, 2.4, "X10DRG", 3.0),
    ("Xeon® Gold 6248R ", 96, 3.0, "X11DPG", 3.0),
    ("Xeon® Platinum 8468 ", 192, 2.1, "X13DEG", 5.0),
    ("Core™ i7-12700K ", 20, 3.6, "Z690", 5.0),
    ("Core™ i9-10900X ", 20, 3.7, "X299", 3.0),
)

DISKS: tuple[tuple[str, float], ...] = (
    ("Samsung SSD 980 PRO 2TB", 4200.0),
    ("Samsung SSD 990 PRO 4TB", 6100.0),
    ("INTEL SSDPE2KX080T8", 2550.0),
    ("KINGSTON SNV2S2000G", 2700.0),
    ("WD_BLACK SN850X 4000GB", 5800.0),
    ("SAMSUNG MZQL27T6HBLA", 4900.0),
    ("CT2000MX500SSD1", 480.0),
)

DRIVERS: tuple[tuple[float, str, float], ...] = (
    (0.08, "535.183.01", 12.2),
    (0.12, "550.127.05", 12.4),
    (0.15, "560.35.03", 12.6),
    (0.30, "570.195.03", 12.8),
    (0.25, "580.95.05", 13.0),
    (0.10, "590.48.01", 13.2),
)
