"""Each way in which a configuration can be broken, and the place, code and fix that are reported."""

import os
from pathlib import Path

import pytest

from agent import config
from agent.config import problems
from tests.support.configs import GOOD, STRATEGIES, added, changed, live

# (the mistake, text, line, key, code, a part of the sentence); a key that begins with a dot is of workloads.train.


def capped(line: str) -> str:
    """Return the good configuration with one more line of [limits], which is line 10."""
    return changed("max_instances = 3", f"max_instances = 3\n{line}")


def guarded(*lines: str) -> str:
    """Return the good configuration with a command and a guard; its header is line 16, the first of the lines is 17."""
    return added('command = "python train.py"', "[workloads.train.guard]", *lines)


BUCKET = ("paths = ['/c']", "region = 'eu-1'", "credential = 'k'")
"""All that a bucket needs but its name, which is then line 20."""
SWITCHED = (*BUCKET, "bucket = 's3://abc/d'", "deadman = '6h'")
TO_VAST_FIRST = 'markets = ["vast"]\nfallback_markets = ["{}"]\n'
MITHRIL = "[markets.mithril]\nsimulated = 'calm'\ndisk_per_gb_month = {}\n"
GUARDS: list[tuple[str, str | bytes, int, str, str, str]] = [
    ("guard of nothing", guarded(), 16, ".guard.paths", "missing_key", 'paths = ["/data/ckpt"]'),
    ("relative path", guarded("paths = ['ckpt']"), 17, ".guard.paths[0]", "bad_path", "absolute path"),
    ("path that climbs", guarded("paths = ['/a/../b']"), 17, ".guard.paths[0]", "bad_path", 'without ".."'),
    ("whole disk", guarded("paths = ['//']"), 17, ".guard.paths[0]", "bad_path", "absolute path"),
    ("unknown signal", guarded("paths = ['/c']", "ask = 'SIGKILL'"), 18, ".guard.ask", "unknown_value", '"SIGUSR1"'),
    ("no bucket", guarded(*BUCKET, "bucket = 'my-runs'"), 20, ".guard.bucket", "bad_bucket", "s3://my-runs/train"),
    ("bucket that climbs", guarded(*BUCKET, "bucket = 's3://abc/../x'"), 20, ".guard.bucket", "bad_bucket", "s3://"),
    ("key of no bucket", guarded(*BUCKET), 16, ".guard", "conflict", "region is for a bucket"),
    ("bucket without its key", guarded("paths = ['/c']", "bucket = 's3://abc/d'"), 16, ".guard", "missing_key", "key"),
    (
        "bucket of no region",
        guarded("paths = ['/c']", "bucket = 's3://abc/d'", "credential = 'k'"),
        16,
        ".guard",
        "missing_key",
        "write the region of the bucket",
    ),
    (
        "a bucket's secret in the file",
        guarded("paths = ['/c']", f"credential = '{'ab' * 20}'"),
        18,
        ".guard.credential",
        "key_in_file",
        "keep the key out",
    ),
    ("store in clear text", guarded(*BUCKET, "endpoint = 'http://s3.eu'"), 20, ".guard.endpoint", "bad_url", "https"),
    ("one checkpoint", guarded("paths = ['/c']", "keep = 1"), 18, ".guard.keep", "out_of_range", "at least 2"),
    (
        "long last words",
        guarded("paths = ['/c']", "final_within = '11m'"),
        18,
        ".guard.final_within",
        "out_of_range",
        "at most 10m",
    ),
    (
        "a service that is done",
        guarded("paths = ['/c']", "done_codes = [0]"),
        11,
        "workloads.train",
        "conflict",
        "done_codes is for a batch",
    ),
    (
        "guard of no command",
        added("[workloads.train.guard]", "paths = ['/c']"),
        11,
        "workloads.train",
        "missing_key",
        "write command, onstart",
    ),
    (
        "the guard's variable",
        guarded("paths = ['/c']", "[workloads.train.env]", "GPUBID_GUARD_HOME = '/x'"),
        11,
        "workloads.train",
        "conflict",
        "GPUBID_GUARD_HOME is the guard's own",
    ),
]
BROKEN: list[tuple[str, str | bytes, int, str, str, str]] = [
    ("wrong type", added("slots = '2'"), 15, ".slots", "wrong_type", "write for example slots = 1"),
    ("boolean for a number", added("gpus = true"), 15, ".gpus", "wrong_type", "a whole number, not true"),
    ("number for text", changed('"pytorch/pytorch:latest"', "5"), 12, ".image", "wrong_type", "in quotes"),
    ("text for a list", added('gpu = "RTX 4090"'), 15, ".gpu", "wrong_type", 'gpu = ["RTX 4090"]'),
    ("number in a list", added("regions = ['SE', 1]"), 15, ".regions[1]", "wrong_type", "in quotes"),
    ("text for a flag", added("verified = 'yes'"), 15, ".verified", "wrong_type", "true or false"),
    ("list for a table", added("checkpoint = []"), 15, ".checkpoint", "wrong_type", "must be a table"),
    ("unknown key", added("max_prise = 1"), 15, ".max_prise", "unknown_key", "did you mean max_price?"),
    ("unknown table", GOOD + "[limit]\n", 15, "limit", "unknown_key", "did you mean limits?"),
    ("unknown market", GOOD + "[markets.lambda]\n", 15, "markets.lambda", "unknown_key", "of dstack, mithril, runpod"),
    ("cap no number", added("budget = { max_total = '5' }"), 15, ".budget.max_total", "wrong_type", "number"),
    ("cap below nothing", added("budget = { max_per_day = -1 }"), 15, ".budget.max_per_day", "out_of_range", "= 10.0"),
    ("told too late", added("budget = { max_total = 5, warn_total = 6 }"), 15, ".budget", "conflict", "warn_total"),
    ("told too late of all", capped("warn_per_day = 13"), 4, "limits", "conflict", "warn_per_day = 12"),
    ("reserve too long", capped("reserve = '60d'"), 10, "limits.reserve", "out_of_range", "1m to 31d"),
    ("credit of a workload", added("budget = { min_credit = 5 }"), 15, ".budget.min_credit", "unknown_key", "max_t"),
    ("market without a key", GOOD + "[markets.runpod]\n", 15, "markets.runpod", "no_credential", "credential_file"),
    ("no market", changed("[markets.vast]\nsimulated", "markets = {}\n[other]\nx"), 1, "markets", "no_market", "] or "),
    (
        "a batch nobody sees end",
        added('kind = "batch"', "[markets.runpod]", 'simulated = "calm"'),
        15,
        ".kind",
        "never_done",
        "write done_line, [workloads.train.guard] with bucket, or markets",
    ),
    (
        "a batch nobody sees end on a machine",
        added('kind = "batch"', 'done_line = "done"', "[markets.mithril]", 'simulated = "calm"'),
        15,
        ".kind",
        "never_done",
        "mithril keeps no log and its machine goes on",
    ),
    (
        "a line of a log that nobody keeps",
        added('ready = "log"', 'ready_line = "up"', "[markets.mithril]", 'simulated = "calm"'),
        15,
        ".ready",
        "never_ready",
        "mithril keeps no log, so the line is never seen",
    ),
    (
        "a stall that nobody sees",
        added('stalled_after = "45m"', "[markets.mithril]", 'simulated = "calm"'),
        15,
        ".stalled_after",
        "never_stalled",
        "write [workloads.train.guard] with bucket, or markets without mithril",
    ),
    (
        "a batch nobody sees end in its fallback",
        added('kind = "batch"', TO_VAST_FIRST.format("runpod"), "[markets.runpod]", 'simulated = "calm"'),
        15,
        ".kind",
        "never_done",
        "runpod restarts a container that ends",
    ),
    (
        "a switch that never fires in its fallback",
        guarded(*SWITCHED).replace("[workloads.train]\n", "[workloads.train]\n" + TO_VAST_FIRST.format("mithril"))
        + "[markets.mithril]\nsimulated = 'calm'\n",
        23,
        ".guard.deadman",
        "conflict",
        'write deadman = "never", or fallback_markets without mithril',
    ),
    (
        "a switch that never fires",
        guarded(*SWITCHED) + "[markets.mithril]\nsimulated = 'calm'\n",
        21,
        ".guard.deadman",
        "conflict",
        'write deadman = "never", or markets without mithril',
    ),
    (
        "no price of a disk",
        GOOD + "[markets.mithril]\ncredential = 'mithril_api_key'\nproject = 'proj_1'\n",
        15,
        "markets.mithril",
        "missing_key",
        "a live market of this kind needs disk_per_gb_month",
    ),
    (
        "no cloud of a server",
        GOOD + "[markets.dstack]\ncredential = 'dstack_api_key'\nfleet = 'gpubid'\n",
        15,
        "markets.dstack",
        "missing_key",
        "a live market of this kind needs backends",
    ),
    ("a dear disk", GOOD + MITHRIL.format(101), 17, "markets.mithril.disk_per_gb_month",
     "out_of_range", "at most 100"),
    ("unknown key far from any", added("zzz = 1"), 15, ".zzz", "unknown_key", "write one of after, at_once, budget"),
    ("quoted unknown key", added('"a.b" = 1'), 15, '."a.b"', "unknown_key", "write one of"),
    ("dotted unknown key", added("checkpoint.att = 'disk'"), 15, ".checkpoint.att", "unknown_key", "mean at?"),
    ("inline unknown key", added("checkpoint = { sizegb = 1 }"), 15, ".checkpoint.sizegb", "unknown_key", "size_gb"),
    *GUARDS,
    ("negative price", changed("0.45", "-0.45"), 13, ".max_price", "out_of_range", "more than 0, not -0.45"),
    ("price off by a thousand", changed("0.45", "4500.0"), 13, ".max_price", "out_of_range", "at most 1000"),
    ("own price of nothing", added("max_price_by_gpu = { 'RTX 4090' = 0 }"), 15, '.max_price_by_gpu."RTX 4090"',
     "out_of_range", "more than 0"),
    ("own price in quotes", added("max_price_by_gpu = { 'RTX 4090' = '1' }"), 15, '.max_price_by_gpu."RTX 4090"',
     "wrong_type", "without quotes"),
    ("own price twice", added("max_price_by_gpu = { 'RTX 4090' = 1, rtx4090 = 2 }"), 15, ".max_price_by_gpu",
     "duplicate", "RTX 4090 is named twice"),
    ("own price of a model that is not accepted", added("gpu = ['RTX 4090']", "max_price_by_gpu = { 'RTX 4080' = 1 }"),
     11, "workloads.train", "unknown_model", "which gpu does not accept; did you mean RTX 4090?"),
    ("price too fine", changed("0.45", "0.4500001"), 13, ".max_price", "too_fine", "millionths"),
    ("price in quotes", changed("0.45", "'0.45'"), 13, ".max_price", "wrong_type", "max_price = 0.45"),
    ("infinite budget", changed("12.00", "inf"), 7, "limits.max_per_day", "not_finite", "finite"),
    ("budget not a number", changed("12.00", "nan"), 7, "limits.max_per_day", "not_finite", "finite"),
    ("budget of a googol", changed("12.00", "1e100"), 7, "limits.max_per_day", "not_finite", "finite"),
    ("budget of 400 digits", changed("12.00", "9" * 400), 7, "limits.max_per_day", "not_finite", "finite"),
    ("missing cap", changed("max_per_month = 250.00\n", ""), 4, "limits.max_per_month", "missing_key", "= 200.0"),
    ("missing image", changed('image = "pytorch/pytorch:latest"\n', ""), 11, ".image", "missing_key", "image ="),
    ("missing market", changed('[markets.vast]\nsimulated = "calm"\n', ""), 1, "markets", "missing_key", "[markets."),
    ("no workload", GOOD.split("[workloads")[0], 1, "workloads", "missing_key", "[workloads.NAME]"),
    ("empty workloads", GOOD.split("[workloads")[0] + "[workloads]\n", 11, "workloads", "empty", "at least 1"),
    ("slots below none", added("slots = -1"), 15, ".slots", "out_of_range", "at least 0, not -1"),
    ("empty gpu", added("gpu = []"), 15, ".gpu", "empty", 'write for example gpu = ["RTX 4090"]'),
    ("gpu without a name", added("gpu = ['NVIDIA']"), 15, ".gpu", "empty", "names no model"),
    ("gpu named twice", added("gpu = ['RTX 4090', 'rtx_4090']"), 15, ".gpu", "duplicate", "RTX 4090"),
    ("reliability in percent", added("min_reliability = 98"), 15, ".min_reliability", "out_of_range", "at most 1"),
    ("unknown strategy", changed('"patient"', '"pateint"'), 14, ".strategy", "unknown_strategy", "mean patient?"),
    ("unmade market", added("markets = ['vats']"), 15, ".markets", "unknown_market", "mean vast?"),
    ("unmade fallback", added("fallback_markets = ['vats']"), 15, ".fallback_markets", "unknown_market", "mean vast?"),
    ("no fallback", added("markets = ['vast']\nfallback_markets = ['vast']"), 11, "workloads.train", "conflict", "one"),
    ("unknown climate", changed('"calm"', '"clam"'), 2, "markets.vast.simulated", "unknown_climate", "mean calm?"),
    ("climate that runs", changed('"calm"', '"real"'), 2, "markets.vast.simulated", "climate_runs_processes", "daemon"),
    ("bad query", added("query = 'gpu_nam = x'"), 15, ".query", "bad_query", "gpu_name"),
    ("place of checkpoints", added("checkpoint = { at = 'moon' }"), 15, ".checkpoint.at", "unknown_value", '"remote"'),
    ("bare seconds", added("checkpoint.interval = 900"), 15, ".checkpoint.interval", "bad_duration", '"15m"'),
    ("no unit", added("checkpoint.interval = '15'"), 15, ".checkpoint.interval", "bad_duration", 'not "15"'),
    ("a century", added("checkpoint.interval = '99999d'"), 15, ".checkpoint.interval", "bad_duration", '"15m"'),
    ("interval never", added("checkpoint.interval = 'never'"), 15, ".checkpoint.interval", "out_of_range", "a year"),
    ("too many", added(f"checkpoint.interval = '{10**21}m'"), 15, ".checkpoint.interval", "out_of_range", "year"),
    ("poll of a second", GOOD + "[agent]\npoll = '1s'\n", 16, "agent.poll", "out_of_range", "5s to 10m; write"),
    ("command and onstart", added("command = 'a'", "onstart = 'b'"), 11, "workloads.train", "conflict", "keep one"),
    ("image with a space", changed("pytorch/pytorch:latest", "py torch"), 12, ".image", "bad_image", "spaces"),
    ("control character", added(r'regions = ["a\u001b[31m"]'), 15, ".regions[0]", "control_character", "U+001B"),
    ("bidirectional override", added(r'gpu = ["RTX\u202e4090"]'), 15, ".gpu[0]", "control_character", "U+202E"),
    ("over-long name", changed("train", "a" * 65), 11, f"workloads.{'a' * 65}", "bad_name", "1 to 64 letters"),
    ("spaced name", changed("workloads.train", 'workloads."my train"'), 11, 'workloads."my train"', "bad_name", "64"),
    ("name of a variable", added("env = { 'A B' = 'x' }"), 15, '.env."A B"', "bad_name", "underscores"),
    ("number in env", added("[workloads.train.env]", "EPOCHS = 90"), 16, ".env.EPOCHS", "wrong_type", "quotes"),
    ("simulated and live", changed('"calm"', '"calm"\nspend = true'), 1, "markets.vast", "conflict", "remove one"),
    ("live without a key", live("spend = true"), 1, "markets.vast", "no_credential", "credential ="),
    ("two keys", live("credential = 'a'", "credential_file = 'b'"), 1, "markets.vast", "no_credential", "either"),
    ("the key itself", live(f"credential = '{'ab12' * 16}'"), 2, "markets.vast.credential", "key_in_file", "name"),
    ("odd credential", live("credential = '../x y'"), 2, "markets.vast.credential", "bad_name", "letters"),
    ("key in clear text", live("url = 'http://example.com'"), 2, "markets.vast.url", "bad_url", "https://"),
    ("no address", live("url = 'console'"), 2, "markets.vast.url", "bad_url", "scheme"),
    ("bad port", live("url = 'https://h:99999'"), 2, "markets.vast.url", "bad_url", "url ="),
    ("port too high", GOOD + "[web]\nlisten = '127.0.0.1:70000'\n", 16, "web.listen", "bad_address", "9477"),
    ("a name with a port", GOOD + "[web]\nnames = ['a', 'b:1']\n", 16, "web.names[1]", "bad_name", "gpu-box.lan"),
    ("a name of any host", GOOD + "[web]\nnames = ['*.lan']\n", 16, "web.names[0]", "bad_name", "stars"),
    ("a name that is an address", GOOD + "[web]\nnames = ['10.0.0.7']\n", 16, "web.names[0]", "bad_name", "host name"),
    ("a name that is no list", GOOD + "[web]\nnames = 'a'\n", 16, "web.names", "wrong_type", "["),
    ("no port", GOOD + "[web]\nlisten = '127.0.0.1'\n", 16, "web.listen", "bad_address", "9477"),
    ("duplicate key", added("slots = 1", "", "slots = 2"), 17, ".slots", "duplicate_key", "line 15"),
    ("duplicate workload", GOOD + "[workloads.train]\n", 15, "workloads.train", "duplicate_key", "line 11"),
    ("dots", added("checkpoint.at = 'disk'", "checkpoint.at = 'none'"), 16, ".checkpoint.at", "duplicate_key", "line"),
    ("array of tables", GOOD + "[[limits]]\n", 15, "limits[0]", "bad_toml", "is no TOML"),
    ("not closed", added('query = "a'), 15, ".query", "bad_toml", "is no TOML"),
    ("no value", added("slots ="), 15, ".slots", "bad_toml", "invalid value"),
    ("no text at all", "", 1, "limits", "missing_key", "write it as a table, [limits]"),
    ("no text and so no market", "", 1, "markets", "missing_key", "[markets.runpod], [markets.vast]"),
    ("YAML", "limits:\n  max: 1\n", 1, "(file)", "bad_toml", "key = value"),
    ("deep nesting", added(f"gpu = {'[' * 5000}"), 15, ".gpu", "too_deep", "24 levels"),
    ("deep dots", "a." * 100_000 + "b = 1\n", 1, "a.a.a", "too_deep", "flat"),
    ("number without end", added(f"slots = {'9' * 5000}"), 1, "(file)", "bad_toml", "shorter numbers"),
    ("endless exponent", changed("12.00", f"1e{'9' * 20}"), 7, "limits.max_per_day", "bad_toml", "usual size"),
    ("endless fraction", changed("12.00", f"1e-{'9' * 20}"), 7, "limits.max_per_day", "bad_toml", "usual size"),
    ("not UTF-8", GOOD.encode() + b"# caf\xe9\n", 15, "(file)", "not_utf8", "byte 261 (0xe9)"),
    ("UTF-16", GOOD.encode("utf-16"), 1, "(file)", "not_utf8", "byte 0 (0xff)"),
    ("NUL bytes", GOOD + "# \0\n", 15, "(file)", "nul_byte", "NUL"),
    ("byte order mark", "\ufeff" + GOOD, 1, "(file)", "byte_order_mark", "without one"),
    ("huge file", GOOD + "#" * (1 << 20), 1, "(file)", "too_large", "1048576"),
]  # fmt: skip


def check_query(query: str) -> None:
    if query.startswith("gpu_nam "):
        raise ValueError("'gpu_nam' is no field; write gpu_name")


def problems_in(path: Path) -> tuple[config.Problem, ...]:
    with pytest.raises(config.ConfigError) as caught:
        config.load(
            path,
            strategies=STRATEGIES,
            climates=("calm", "blackout", "real"),
            runs_processes=lambda climate: climate == "real",
            check_query=check_query,
        )
    return caught.value.problems


@pytest.mark.parametrize(
    ("text", "line", "key", "code", "part"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN]
)
def test_a_broken_configuration_is_told_with_its_place_and_mend(
    tmp_path: Path, text: str | bytes, line: int, key: str, code: str, part: str
) -> None:
    path = tmp_path / "agent.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    key = f"workloads.train{key}" if key.startswith(".") else key
    found = {(problem.line, problem.key, problem.code): problem for problem in problems_in(path)}
    assert (line, key, code) in found, sorted(map(str, found.values()))
    problem = found[line, key, code]
    assert part in problem.sentence
    assert ";" in problem.sentence, "a problem says what to write instead"
    assert str(problem).startswith(shown_place(path, line, key, code))
    assert "\n" not in str(problem)


def shown_place(path: Path, line: int, key: str, code: str) -> str:
    """Return the words before a problem: a mistake of a whole file has no key, and no line where none is meant."""
    if key != problems.WHOLE_FILE:
        return f"{path}:{line}: {key}: "
    return f"{path}: " if code in {"too_large", "byte_order_mark"} else f"{path}:{line}: "


def test_there_are_as_many_broken_files_as_promised() -> None:
    assert len({row[0] for row in BROKEN}) == len(BROKEN) >= 30


def test_a_missing_file(tmp_path: Path) -> None:
    (problem,) = problems_in(tmp_path / "none.toml")
    assert (problem.code, problem.line) == ("missing_file", 1)


def test_a_directory(tmp_path: Path) -> None:
    opened = list(Path("/proc/self/fd").iterdir())
    (problem,) = problems_in(tmp_path)
    assert (problem.code, problem.sentence) == ("not_a_file", "is a directory; name the TOML file inside it")
    assert len(list(Path("/proc/self/fd").iterdir())) == len(opened), "each reload would leak one"


def test_a_symlink_loop(tmp_path: Path) -> None:
    (tmp_path / "a.toml").symlink_to(tmp_path / "b.toml")
    (tmp_path / "b.toml").symlink_to(tmp_path / "a.toml")
    (problem,) = problems_in(tmp_path / "a.toml")
    assert problem.code == "symlink_loop"


def test_a_named_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "agent.toml")
    (problem,) = problems_in(tmp_path / "agent.toml")
    assert (problem.code, problem.sentence) == ("not_a_file", "is no regular file; name a TOML file")


def test_a_path_through_a_file_and_a_path_with_a_nul(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert problems_in(tmp_path / "file" / "agent.toml")[0].code == "missing_file"
    assert problems_in(tmp_path / "a\0b")[0].code == "missing_file"


def test_an_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno
    import os

    def refuse(*_arguments: object) -> int:
        raise PermissionError(errno.EACCES, "no")

    # Root reads everything, so the refusal is the system call's own.
    monkeypatch.setattr(os, "open", refuse)
    (problem,) = problems_in(tmp_path / "agent.toml")
    assert problem.code == "unreadable"


def test_all_mistakes_are_told_at_once_in_the_order_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "agent.toml"
    text = (
        added("slots = -1", "gpu = []", "query = 'gpu_nam = x'")
        .replace('"patient"', '"pateint"')
        .replace("12.00", "-1")
    )
    path.write_text(text)
    assert [(problem.line, problem.code) for problem in problems_in(path)] == [
        (7, "out_of_range"),
        (14, "unknown_strategy"),
        (15, "out_of_range"),
        (16, "empty"),
        (17, "bad_query"),
    ]


def test_no_message_repeats_what_may_be_secret(tmp_path: Path) -> None:
    path = tmp_path / "agent.toml"
    path.write_text(
        changed('simulated = "calm"', "credential = 'hunter2 hunter2'")
        + "[workloads.train.env]\n'A B' = 'hunter2'\nC = ['hunter2']\nD = \"hunter2\\u0000\"\n"
    )
    assert len(problems_in(path)) == 4
    assert "hunter2" not in "\n".join(map(str, problems_in(path)))


def test_no_message_paints_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "agent.toml"
    path.write_text(added(r'"\u001b]0;x\u0007\u202e" = 1', r'strategy2 = "\u001b[31m"', r'checkpoint.at = "\u001b[2J"'))
    text = "".join(map(str, problems_in(path)))
    assert text.isprintable()
