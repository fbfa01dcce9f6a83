import os
import subprocess
import sys

import tensorflow as tf

from tfbbb.base.tensorflow_startup import let_gpu_memory_grow

LEVEL = "TF_CPP_MIN_LOG_LEVEL"


def run(block, **environment):
    """Runs a program in a process of its own."""
    program = (
        "import os, sys\n"
        "from tfbbb.base.tensorflow_startup import import_tensorflow\n"
        f"{block}"
    )
    inherited = {k: v for k, v in os.environ.items() if k != LEVEL}
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=inherited | environment,
    )


def test_tensorflow_comes_without_matplotlib_and_logs_fatal_errors_only():
    done = run(
        "import_tensorflow()\n"
        "print(*(name in sys.modules for name in ('tensorflow', 'matplotlib')))\n"
        f"print(os.environ['{LEVEL}'])\n"
        "import matplotlib"
    )
    assert done.stdout == "True False\n3\n"


def test_a_level_of_the_log_that_the_user_sets_stays():
    done = run(f"import_tensorflow()\nprint(os.environ['{LEVEL}'])", **{LEVEL: "1"})
    assert done.stdout == "1\n"


def test_memory_of_gpus_is_set_to_grow_at_the_start():
    done = run(
        "import tfbbb.base.tensorflow_startup as startup\n"
        "startup.let_gpu_memory_grow = lambda: print('grow')\n"
        "startup.import_tensorflow()"
    )
    assert done.stdout == "grow\n"


def test_memory_of_every_gpu_grows(monkeypatch):
    grown = []
    monkeypatch.setattr(
        tf.config, "list_physical_devices", lambda kind: [f"{kind}:0", f"{kind}:1"]
    )
    monkeypatch.setattr(
        tf.config.experimental, "set_memory_growth", lambda *given: grown.append(given)
    )
    let_gpu_memory_grow()
    assert grown == [("GPU:0", True), ("GPU:1", True)]
