"""The market of auctions in a story: what is drawn for it, what befalls it, and how its answers lie."""
