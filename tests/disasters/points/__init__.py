"""The six points that hold in every story, one file each; the fourth has three, the third and the sixth two."""
