"""Where the lab's work is computed: in processes of this machine, or on a Dask cluster of the operator's boxes."""
