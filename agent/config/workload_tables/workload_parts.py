"""The tables inside a workload's table: its checkpoints, and the login for its image."""

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from agent.config.toml_table import Table
from agent.config.value_kinds import ONE_WORD, Line, Number, Span, credential_name


class CheckpointTable(Table):
    """How the workload keeps checkpoints."""

    interval: Annotated[Span, Field(examples=["15m"])] = timedelta(minutes=15)
    """Time between two checkpoints. An interruption loses at most this much work."""
    takes: Annotated[Span, Field(examples=["30s"])] | None = None
    """How long the workload stops to write a checkpoint. With this key gpubid advises the best interval."""
    restore_seconds: Annotated[Number, Field(ge=0, le=86_400)] = 60.0
    """Seconds from the start of the container to useful work."""
    size_gb: Annotated[Number, Field(ge=0, le=100_000)] = 0.0
    """Gigabytes of a checkpoint, fetched at a start on another host."""
    at: Literal["disk", "remote", "none"] = "disk"
    """Where checkpoints are kept."""


class ImageLoginTable(Table):
    """Login for a private image."""

    registry: Annotated[Line, Field(pattern=ONE_WORD, max_length=256, examples=["ghcr.io"])]
    """Host of the registry."""
    user: Annotated[Line, Field(pattern=ONE_WORD, max_length=128, examples=["me"])]
    """User name at the registry."""
    credential: Annotated[Line, AfterValidator(credential_name), Field(examples=["ghcr_token"])]
    """Name of the credential, or in capitals of the environment variable, that holds the password."""
