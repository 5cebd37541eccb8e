"""Odd requests, part by part: some that no browser sends, some on which libraries fail, and some that are only rare."""

from tests.web.page import TOKEN

PAGES = (
    "/", "/spend", "/savings",
    "/lease/x", "/events", "/login", "/logout", "/confirm", "/order", "/static/page.css", "/metrics", "/healthz",
    "/readyz", "/services", "/webhooks/vast", "/api/v1/fleet", "/api/v1/events", "/api/v1/openapi.json", "/api/v1/",
    "/nothing",
)  # fmt: skip
"""Routes of the web server."""
VERBS = (
    "/order", "/say", "/fleet", "/running", "/holdings", "/plan", "/events", "/prices", "/learned", "/explain",
    "/shadow", "/logs", "/spend", "/savings", "/api/v1/fleet", "/api/v1/events", "/nothing",
)  # fmt: skip
"""Routes of the operators' socket."""
METHODS = (
    b"GET", b"POST", b"HEAD", b"OPTIONS", b"PUT", b"DELETE", b"PATCH", b"TRACE", b"CONNECT", b"PRI", b"get",
)  # fmt: skip
KEYS = (
    b"page", b"before", b"verb", b"target", b"workload", b"name[]", b"since", b"until", b"limit", b"kind", b"gpu",
    b"host", b"by", b"baseline", b"slot", b"lines", b"keep_disks", b"typed",
)  # fmt: skip
VALUES = (
    b"", b"0", b"-1", b"1", b"nan", b"inf", b"-inf", b"1e999", b"9" * 5000, b"\xd9\xa3", b"\xff", b"%ff", b"%",
    b"%zz", b"%00", b"%ed%a0%80", b"%F0%9F%92%A9", b"2026-11-20", b"0001-01-01", b"9999-12-31",
    b"0001-01-01T00:00:00%2B14:00", b"9999-12-31T23:59:59-14:00", b"2026-11-20T12:00:00", b"+00:00", b"2026-W01-1",
    b"train", b"train/0", b"host:7", b"day", b"lease", b"host", b"drain", b"release", b"market", b"aws", b"market:",
    b"\x7f", b"a" * 9000,
)  # fmt: skip
CHARSETS = (
    b"utf-8", b"utf-7", b"utf-16", b"idna", b"punycode", b"rot13", b"base64", b"unicode_escape",
    b"raw_unicode_escape", b"undefined", b"hex", b"mbcs", b"\xff", b"%00", b"a" * 300, b"",
)  # fmt: skip
TYPES = (
    b"application/x-www-form-urlencoded", b"multipart/form-data; boundary=x", b"multipart/form-data",
    b"multipart/mixed", b"multipart/form-data; boundary=" + b"y" * 200, b"application/json", b"text/plain",
    b"\xff/\xfe", b";;", b"",
)  # fmt: skip
HEADERS = (
    (b"X-Vast-Signature-256", b"sha256=\xff\xfe"), (b"X-Vast-Signature-256", b"sha256=" + b"0" * 64),
    (b"X-Vast-Timestamp", b"\xff"), (b"X-Vast-Timestamp", b"nan"), (b"X-Vast-Timestamp", b"1e999"),
    (b"Cookie", b"gpubid_session=\xff"), (b"Cookie", b"gpubid_session"), (b"Cookie", b'=;;;="\\'),
    (b"Cookie", b'"' * 500), (b"Cookie", b'gpubid_session="\\377"; $Path=/'), (b"Host", b"\xff"), (b"Host", b"[::1"),
    (b"Host", b""), (b"Host", b"a:b:c"), (b"Host", b"127.0.0.1:99999999"), (b"Host", b"user@127.0.0.1"),
    (b"Origin", b"null"), (b"Origin", b"http://[::1"), (b"Origin", b"\xff"), (b"Sec-Fetch-Site", b"cross-site"),
    (b"Referer", b"\xff"), (b"Accept", b"\xff"), (b"Accept", b"a/b;q=nan"),
    (b"Accept", b"application/openmetrics-text;version=\xff"), (b"Accept-Encoding", b"gzip;q=nan, \xff"),
    (b"Range", b"bytes=9-1"), (b"Expect", b"100-continue"), (b"Expect", b"a surprise"), (b"Upgrade", b"websocket"),
    (b"Connection", b"upgrade"), (b"Content-Encoding", b"gzip"), (b"Content-Encoding", b"br"),
    (b"Content-Encoding", b"deflate"), (b"If-Modified-Since", b"\xff"), (b"Content-Length", b"nan"),
    (b"Content-Length", b"-1"), (b"Transfer-Encoding", b"chunked"), (b"Transfer-Encoding", b"gzip"),
    (b"X-Long", b"x" * 9000), (b"X-Forwarded-For", b"\xff"), (b"Bad Name", b"x"), (b"", b"x"), (b"X", b"a\x00b"),
)  # fmt: skip
BODIES = (
    b"", b"token=guess", b"token=" + TOKEN.encode(), b"token=%ff%00", b"token=\xff", b"token=\\ud800", b"=&=&;;",
    b"&" * 4000, b"a=b&" * 3000, b"x" * 20_000, b"--x\r\n\r\n--x--\r\n",
    b"--x\r\nContent-Disposition: form-data\r\n\r\nv\r\n--x--\r\n",
    b"--x\r\nContent-Disposition: x; name=a\r\nContent-type: text/plain; charset=undefined\r\n\r\nv\r\n--x--\r\n",
    b"--x\r\nContent-Disposition: form-data; name=token\r\nContent-Transfer-Encoding: base64\r\n\r\n!\r\n--x--\r\n",
    b"--x\r\nContent-Type: multipart/mixed; boundary=y\r\n\r\n--y\r\n\r\n--y--\r\n--x--\r\n", b"--x",
    b"--x\r\n" + b"A: b\r\n" * 300, b"[" * 60_000, b'{"a":' * 10_000, b"[" * 2_000 + b"]" * 2_000, b"{}", b"[]",
    b"null", b"1", b'"x"', b"nan", b"1e999", b"9" * 5000, b'{"verb": "release", "leases": [[]], "keep_disks": false}',
    b'{"verb": "release", "leases": 1, "keep_disks": 0}',
    b'{"verb": "release", "leases": ["\\ud800"], "keep_disks": false}', b'{"verb": [], "target": {}, "seconds": []}',
    b'{"verb": "drain", "target": "train", "seconds": NaN}',
    b'{"verb": "drain", "target": "train", "seconds": 1e308}',
    b'{"verb": "drain", "target": "train", "seconds": -1e14}',
    b'{"verb": "drain", "target": "train", "seconds": 3e11}',
    b'{"verb": "drain", "target": "\\ud800", "seconds": 60}',
    b'{"verb": "progress", "target": "train", "hours": NaN}',
    b'{"verb": "progress", "target": "train", "hours": 1e400}',
    b'{"verb": "adopt", "target": "x", "into": "\\u0000/9"}',
    b'{"verb": "adopt", "target": "train/0", "into": "train/' + b"9" * 5000 + b'"}',
    b'{"verb": "lock", "target": "host:\\udfff"}', b'{"verb": "unlock", "target": ""}',
    b'{"verb": "reset", "target": "pool:"}', b'{"verb": "drain", "target": ' + b"[" * 900 + b"]" * 900 + b"}",
    b"\xff\xfe", b"\xef\xbb\xbf{}", b"\x00" * 100,
)  # fmt: skip
TARGETS = (
    b"*", b"http://", b"http:///x", b"http://[::1", b"http://[::1]:x/", b"http://\xff/", b"//", b"///", b"/\xff",
    b"/%", b"/%ff", b"/lease/%ED%A0%80", b"/lease/\xed\xa0\x80", b"/lease/" + b"x" * 8000,
    b"/static/..%2f..%2fpages.py", b"/static/%00", b"?", b"/?" + b"&" * 4000, b"/?" + b"a=1&" * 1900, b"127.0.0.1:80",
    b"/\x00", b"/a b", b"/#x", b"mailto:x", b"/..;/", b"", b"https://127.0.0.1/", b"ftp://127.0.0.1:1/",
    b"http://127.0.0.1:99999/", b"http://a@b@c/", b"/lease/" + b"%2f" * 2000,
)  # fmt: skip
WORDS = (
    "", "train", "train/0", "train/9", "train/-1", "train/" + "9" * 5000, "all", "host:1446", "host:", "owner:7",
    "market:vast", "pool:x", "pool:", "lease:", "fleet:", "release", "kill", "lift", "drain", "pause", "resume",
    "fleet:all", "adopt", "lock", "unlock", "done", "progress", "reset", "held:workload:train", "\x00", "\ud800",
    "\u202e", "a\nb", "'; DROP TABLE leases; --", "%s%n",
)  # fmt: skip
"""Verbs and targets of orders."""
