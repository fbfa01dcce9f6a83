import os
import subprocess
import sys

import pytest

from tfbbb.cli import imports
from tfbbb.cli.errors import CommandError
from tfbbb.cli.imports import import_tensorflow


def test_another_keras_backend_is_refused(monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    with pytest.raises(CommandError, match="Received: KERAS_BACKEND='torch'"):
        import_tensorflow()


def test_a_command_imports_tensorflow_without_a_line():
    program = "from tfbbb.cli.imports import import_tensorflow; import_tensorflow()"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_a_failing_import_wrote_is_shown(monkeypatch, capfd):
    def fail():
        os.write(2, b"No such library.\n")
        raise ImportError

    monkeypatch.setattr(imports, "import_with_devices", fail)
    with pytest.raises(ImportError):
        import_tensorflow()
    assert capfd.readouterr().err == "No such library.\n"
