"""dstack's server in a story: what is drawn for it, what befalls its clouds, and how its answers lie."""
