import os

import pytest

from tfbbb.cli.errors import CommandError
from tfbbb.cli.imports import _withheld_stderr, import_tensorflow


def test_what_libraries_write_to_the_terminal_is_withheld(capfd):
    with _withheld_stderr():
        os.write(2, b"a note of a library\n")
    os.write(2, b"a message\n")
    assert capfd.readouterr().err == "a message\n"


def test_what_libraries_write_before_an_error_is_shown(capfd):
    def broken_import():
        with _withheld_stderr():
            os.write(2, b"the reason\n")
            raise ImportError

    with pytest.raises(ImportError):
        broken_import()
    assert capfd.readouterr().err == "the reason\n"


def test_another_keras_backend_is_refused(monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    with pytest.raises(CommandError, match="KERAS_BACKEND, which is 'torch'"):
        import_tensorflow()
