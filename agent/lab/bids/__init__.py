"""The auction of the rehearsed market in memory: strategies that bid, compared with the rules of common clients.

Semi-synthetic: hosts, rivals and prices are drawn from figures of which some were recorded and some are assumed
(`gpubid simulate --about` says which).
"""
