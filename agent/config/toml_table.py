"""The base of every table in a configuration file."""

from pydantic import BaseModel, ConfigDict


class Table(BaseModel):
    """A table of agent.toml: only known keys, no change after reading."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
