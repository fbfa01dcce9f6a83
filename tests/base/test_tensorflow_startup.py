import os
import subprocess
import sys

import pytest
import tensorflow as tf

from tfbbb.base import tensorflow_startup

LEVEL = "TF_CPP_MIN_LOG_LEVEL"


def test_tensorflow_comes_without_matplotlib_and_logs_fatal_errors_only():
    program = (
        "import os, sys\n"
        "import tfbbb.base.tensorflow_startup as startup\n"
        "startup.let_gpu_memory_grow = lambda: print('memory grows')\n"
        "startup.import_tensorflow()\n"
        "print(*(name in sys.modules for name in ('tensorflow', 'matplotlib')))\n"
        f"print(os.environ['{LEVEL}'])\n"
        "import matplotlib"
    )
    inherited = {k: v for k, v in os.environ.items() if k != LEVEL}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=inherited
    )
    assert done.stdout == "memory grows\nTrue False\n3\n"


def test_a_level_of_the_log_that_the_user_sets_stays(monkeypatch):
    monkeypatch.setenv(LEVEL, "1")
    # Importing it raises.
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    monkeypatch.setattr(tensorflow_startup, "has_tensorflow", lambda: True)
    with pytest.raises(ImportError):
        tensorflow_startup.import_tensorflow()
    assert os.environ[LEVEL] == "1"


def test_memory_of_every_gpu_grows(monkeypatch):
    grown = []
    monkeypatch.setattr(
        tf.config, "list_physical_devices", lambda kind: [f"{kind}:0", f"{kind}:1"]
    )
    monkeypatch.setattr(
        tf.config.experimental, "set_memory_growth", lambda *given: grown.append(given)
    )
    tensorflow_startup.let_gpu_memory_grow()
    assert grown == [("GPU:0", True), ("GPU:1", True)]
