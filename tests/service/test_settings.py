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


def test_unknown_variable_is_warned_of_with_those_there_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    Settings.from_environment({"TFBBB_THREAD": "3", "TFBBB_THREADS": "2", "PATH": ""})
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage() == (
        "TFBBB_THREAD is no setting; those are TFBBB_MODELS, TFBBB_POLL_SECONDS, "
        "TFBBB_THREADS, TFBBB_DEFAULT_NUM_SAMPLES, TFBBB_MAX_ROWS_TIMES_SAMPLES, "
        "TFBBB_MAX_BODY_BYTES"
    )


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError):
        Settings().threads = 2
