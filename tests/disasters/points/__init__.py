"""The six points that hold in every story, one file each; the fourth and the sixth have two."""
