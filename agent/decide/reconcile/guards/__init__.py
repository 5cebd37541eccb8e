"""Reports of the guards of leases, and the facts that follow from them."""
