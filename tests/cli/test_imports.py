import os

import pytest

from tfbbb.cli.errors import CommandError
from tfbbb.cli.imports import _suppress_stderr, import_tensorflow


def test_messages_of_libraries_are_not_shown(capfd):
    with _suppress_stderr():
        os.write(2, b"a note of a library\n")
    os.write(2, b"a message\n")
    assert capfd.readouterr().err == "a message\n"


def test_messages_of_libraries_are_shown_after_an_error(capfd):
    def broken_import():
        with _suppress_stderr():
            os.write(2, b"the reason\n")
            raise ImportError

    with pytest.raises(ImportError):
        broken_import()
    assert capfd.readouterr().err == "the reason\n"


def test_another_keras_backend_is_refused(monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    with pytest.raises(CommandError, match="Received: KERAS_BACKEND='torch'"):
        import_tensorflow()
