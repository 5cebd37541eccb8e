"""The auction of the rehearsed market in memory: strategies that bid, against what clients commonly do.

Semi-synthetic: hosts, rivals and prices are drawn from figures of which some were recorded and some are assumed
(`gpubid simulate --about` says which).
"""
