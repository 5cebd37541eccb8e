"""The simulated Mithril: pools of like instances, sold in a blind second-price auction every two minutes."""
