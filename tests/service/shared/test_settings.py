from pathlib import Path

import pytest
from pydantic import SecretStr

from service.shared.settings import Settings, SettingsError


def test_environment_overrides_defaults():
    environment = {"TFBBB_MODELS": "/srv/models", "TFBBB_THREADS": "3", "PATH": "/bin"}
    settings = Settings.from_environment(environment)
    assert settings.models == Path("/srv/models")
    assert settings.threads == 3
    assert settings.max_body_bytes == Settings().max_body_bytes


def test_wrong_variable_is_named():
    with pytest.raises(
        SettingsError, match=r"TFBBB_THREADS must be a whole number. Received: 'many'"
    ):
        Settings.from_environment({"TFBBB_THREADS": "many"})


def test_unknown_variable_is_warned_of_with_those_there_are(caplog):
    Settings.from_environment({"TFBBB_THREAD": "3", "TFBBB_THREADS": "2", "PATH": ""})
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith(
        "TFBBB_THREAD is not a setting; the settings are TFBBB_MODELS, TFBBB_DATA_DIR, "
    )


def test_variables_of_clients_are_not_warned_of(caplog):
    Settings.from_environment({"TFBBB_URL": "http://localhost", "TFBBB_KEY": "a.b"})
    assert not caplog.records


def test_children_inherit_all_settings_except_the_key():
    settings = Settings(models=Path("elsewhere"), default_num_samples=7, insecure=True)
    with_key = settings.model_copy(update={"admin_key": SecretStr("secret")})
    assert Settings.from_environment(with_key.environment()) == settings
