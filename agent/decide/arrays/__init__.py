"""Arrays: batches whose slots are numbered tasks, of which only some are live at once."""
