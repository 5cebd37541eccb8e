"""Messages of a host's daemon: an image that nobody can have, a container that died, or the usual chatter."""

import pytest

from agent.markets.vast import states


@pytest.mark.parametrize(
    ("message", "has_trouble", "is_image_refused"),
    [
        ("", False, False),
        ("success, running docker.io/pytorch_latest/ssh", False, False),
        ("Successfully loaded docker.io/ubuntu:22.04", False, False),
        ("#7 Pulling docker.io/ubuntu:22.04: 42%", False, False),
        ("Error response from daemon: failed to register layer: unexpected EOF", True, False),
        ("Error response from daemon: manifest for me/img:nope not found: manifest unknown", True, True),
        ("Error response from daemon: pull access denied for me/img, repository does not exist", True, True),
        ("write /layer: no space left on device", True, False),
        ("container exited with code 137", True, False),
        ("exit status 1", True, False),
        ("exited (0) a minute ago", False, False),
        ("killed by the kernel: out of memory", True, False),
    ],
)
def test_messages(message: str, has_trouble: bool, is_image_refused: bool) -> None:
    assert states.has_trouble(message) is has_trouble
    assert states.is_image_refused(message) is is_image_refused
