import pytest

from tfbbb.cli.errors import CommandError
from tfbbb.cli.imports import import_tensorflow


def test_another_keras_backend_is_refused(monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    with pytest.raises(CommandError, match="Received: KERAS_BACKEND='torch'"):
        import_tensorflow()
