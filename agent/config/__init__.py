"""agent.toml as frozen values, and every mistake in it with file, line, key and fix."""

from agent.config.loading import load
from agent.config.problems import ConfigError, Problem
from agent.config.settings import Config, Listen, MarketSettings

__all__ = ["Config", "ConfigError", "Listen", "MarketSettings", "Problem", "load"]
