"""Pages of the lab: one file each that shows itself, without network and without script."""
