import os
from contextlib import nullcontext

import pytest

from tfbbb.cli import imports
from tfbbb.cli.errors import CommandError
from tfbbb.cli.imports import import_tensorflow


def test_another_keras_backend_is_refused(monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    with pytest.raises(CommandError, match="Received: KERAS_BACKEND='torch'"):
        import_tensorflow()


@pytest.mark.parametrize("fails", [False, True])
def test_what_an_import_writes_is_shown_if_it_fails(monkeypatch, capfd, fails):
    def write():
        os.write(2, b"No such library.\n")
        if fails:
            raise ImportError

    monkeypatch.setattr(imports, "import_with_devices", write)
    with pytest.raises(ImportError) if fails else nullcontext():
        import_tensorflow()
    assert capfd.readouterr().err == ("No such library.\n" if fails else "")
