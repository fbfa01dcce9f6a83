import subprocess
import sys

import pytest

from tfbbb.cli.errors import CommandError
from tfbbb.cli.imports import import_tensorflow


def test_another_keras_backend_is_refused(monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    with pytest.raises(CommandError, match="Received: KERAS_BACKEND='torch'"):
        import_tensorflow()


@pytest.mark.parametrize(
    ("command", "model"),
    [
        (["predict", "--adapt"], "regression"),
        (["predict", "--prediction-sets", "--adapt"], "classification"),
        (["report"], "regression"),
        (["report"], "classification"),
    ],
)
def test_intervals_adapt_and_reports_are_made_without_tensorflow(
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
