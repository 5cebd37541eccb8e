"""Leave-one-record-out: fit on all records but one, and judge on that one."""
