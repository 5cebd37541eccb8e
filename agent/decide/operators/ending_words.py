"""The commands that end leases for a reload, as clauses.

The present files want a lease in each slot, so a release alone is followed by a rent.
"""


def released(target: str, *, is_kept: bool = False) -> str:
    """Return the clause that ends the leases of a target and rents nothing in their place.

    With `is_kept` the new files have the target too, and the clause also says how it is rented for again.
    """
    fix = f"first `gpubid drain {target}`, then `gpubid release {target}`"
    return f"{fix}, and `gpubid resume {target}` after the reload" if is_kept else fix


def stopped(target: str, *, is_kept: bool = False) -> str:
    """Return the clause that stops the leases of a target, or ends them; `is_kept` as in `released`."""
    fix = f"first `gpubid pause {target}`, or `gpubid drain {target}` and then `gpubid release {target}`"
    return f"{fix}; `gpubid resume {target}` after the reload" if is_kept else fix
