"""The rules are tried under their own profile, whatever else is collected."""

from hypothesis import settings


def test_the_rules_have_their_own_profile() -> None:
    assert settings.get_current_profile_name() == "rules"
    assert settings().stateful_step_count == 25
