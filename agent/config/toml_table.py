"""What every table of a configuration file is."""

from pydantic import BaseModel, ConfigDict


class Table(BaseModel):
    """A table of agent.toml: every key known, no value changed after reading."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
