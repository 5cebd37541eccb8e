"""The tables inside a workload's table of agent.toml."""
