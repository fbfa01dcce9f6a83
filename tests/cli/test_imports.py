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


@pytest.mark.parametrize(
    ("command", "model"),
    [
        (["predict", "--log-prob"], "regression"),
        (["predict", "--prediction-sets"], "classification"),
        (["report"], "regression"),
        (["report"], "classification"),
    ],
)
def test_predictions_and_reports_are_made_without_tensorflow(
    command, model, request, data, tmp_path
):
    program = f"""
import sys
sys.modules["tensorflow"] = sys.modules["keras"] = None  # Importing them raises.
from tfbbb.__main__ import main
sys.argv = ["tfbbb", *{command!r}, *sys.argv[1:]]
main()
"""
    version, _ = request.getfixturevalue(model)
    done = subprocess.run(
        [sys.executable, "-c", program, str(version / "1"), str(data)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
