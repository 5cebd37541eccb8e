"""The six points that hold in every story, one file each; the sixth has two."""
