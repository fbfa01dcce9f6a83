from pathlib import Path

import pytest
from pydantic import ValidationError

from service.settings import Settings, SettingsError


def test_environment_overrides_defaults() -> None:
    environment = {"TFBBB_MODELS": "/srv/models", "TFBBB_THREADS": "3", "PATH": "/bin"}
    settings = Settings.from_environment(environment)
    assert settings.models == Path("/srv/models")
    assert settings.threads == 3
    assert settings.max_body_bytes == Settings().max_body_bytes


def test_wrong_variable_is_named() -> None:
    with pytest.raises(SettingsError, match=r"TFBBB_THREADS: .* Received: 'many'"):
        Settings.from_environment({"TFBBB_THREADS": "many"})


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError):
        Settings().threads = 2
