"""The bodies that REST v2 takes; an unknown field is an error."""

from typing import Annotated, Literal, TypeVar

import msgspec

T = TypeVar("T")
Text = Annotated[str, msgspec.Meta(min_length=1)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class Strict(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Refuse unknown fields."""


class Gpu(Strict):
    """The GPUs of a create."""

    id: str
    count: Count = 1
    allowedCudaVersions: list[str] = []  # noqa: N815
    minCudaVersion: str | None = None  # noqa: N815


class Cpu(Strict):
    """The processor of a create."""

    id: Text
    vcpuCount: Annotated[int, msgspec.Meta(ge=2)]  # noqa: N815


class Persistent(Strict):
    """A volume of the host."""

    size: Annotated[int, msgspec.Meta(ge=10)]
    path: str


class Network(Strict):
    """A network volume."""

    volumeId: str  # noqa: N815
    path: str


class Mounts(Strict):
    """The mounts of a pod."""

    persistent: Persistent | None = None
    network: Annotated[list[Network], msgspec.Meta(max_length=1)] = []


class Patch(Strict):
    """A change of a pod."""

    name: Text | None = None
    image: str | None = None
    args: str | None = None
    disk: Count | None = None
    env: dict[str, str] | None = None
    ports: list[str] | None = None
    registry: str | None = None
    mounts: Mounts | None = None
    locked: bool | None = None
    globalNetworking: bool | None = None  # noqa: N815
    templateId: str | None = None  # noqa: N815


class Create(Strict):
    """A new pod."""

    name: Text
    image: str | None = None
    args: str = ""
    disk: Count = 50
    env: dict[str, str] = {}
    ports: list[str] = []
    registry: str | None = None
    cloud: Literal["SECURE", "COMMUNITY"] = "SECURE"
    gpu: Gpu | None = None
    cpu: Cpu | None = None
    dataCenterIds: list[str] = []  # noqa: N815
    globalNetworking: bool = False  # noqa: N815
    mounts: Mounts = msgspec.field(default_factory=Mounts)
    startJupyter: bool = False  # noqa: N815
    startSsh: bool = False  # noqa: N815
    templateId: str | None = None  # noqa: N815


class Action(Strict):
    """An action on a pod."""

    action: Literal["start", "stop", "restart", "terminate"]


class CreateVolume(Strict):
    """A new network volume."""

    name: Text
    size: Annotated[int, msgspec.Meta(ge=10, le=4096)]
    dataCenter: Text  # noqa: N815
    type: Literal["STANDARD", "HIGH_PERFORMANCE"] = "STANDARD"


class ChangeVolume(Strict):
    """A change of a network volume."""

    name: Text | None = None
    size: Annotated[int, msgspec.Meta(ge=10, le=4096)] | None = None


def read(body: object, kind: type[T]) -> T:
    """Read a decoded body. Raises msgspec.ValidationError."""
    return msgspec.convert(body, kind)
