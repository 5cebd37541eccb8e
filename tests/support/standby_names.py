"""The setting that makes the replicas of a test's server confirm commits."""


def set_names(url: str, value: str) -> None:
    """Set `synchronous_standby_names` by the superuser's address, and wait until the server has read it."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{value}'".encode())
        raw.execute("SELECT pg_reload_conf()")
        while raw.execute("SHOW synchronous_standby_names").fetchone() != (value,):
            """The server reads its settings again in a moment."""
