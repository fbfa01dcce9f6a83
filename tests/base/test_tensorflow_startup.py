import os
import signal
import subprocess
import sys

import pytest
import tensorflow as tf

from tfbbb.base.tensorflow_startup import let_gpu_memory_grow

ONEDNN = "I0000 00:00:1795507693.483892   13414 port.cc:153] oneDNN is on."
OLD_FORMAT = "2024-01-02 03:04:05.678901: I tensorflow/core/util/port.cc:153] oneDNN"
FEATURES = (
    "To enable the following instructions: AVX2 FMA, in other operations, rebuild "
    "TensorFlow with the appropriate compiler flags."
)
UNKNOWN = "I0000 00:00:1795507693.483892   13414 other.cc:12] something else"


def run(block, **environment):
    """Runs a program with output to file descriptor 2; returns process and output."""
    program = (
        "import os, signal, subprocess, sys\n"
        "from tfbbb.base.tensorflow_startup import *\n"
        "def say(*lines):\n    os.write(2, ('\\n'.join(lines) + '\\n').encode())\n"
        f"{block}"
    )
    inherited = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=inherited | environment,
    )


def test_importing_tensorflow_writes_nothing():
    done = run(
        "import_tensorflow()\n"
        "print(*(name in sys.modules for name in ('tensorflow', 'matplotlib')))\n"
        "import matplotlib"
    )
    assert done.stdout == "True False\n"
    assert done.stderr == ""


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


@pytest.mark.parametrize("message", [ONEDNN, OLD_FORMAT, FEATURES])
def test_a_startup_message_is_dropped(message):
    done = run(f"with without_startup_messages():\n    say('a', {message!r}, 'b')")
    assert done.stderr == "a\nb\n"


def test_other_output_is_passed_on_in_order():
    done = run(
        "with without_startup_messages():\n"
        f"    say('first', {UNKNOWN!r}, 'x{ONEDNN}')\n"
        "    os.write(2, b'half a ')\n"
        "say('line')\n"
    )
    assert done.stderr == f"first\n{UNKNOWN}\nx{ONEDNN}\nhalf a line\n"


def test_output_is_passed_on_while_the_block_runs():
    program = (
        "import os, time\n"
        "from tfbbb.base.tensorflow_startup import without_startup_messages\n"
        "with without_startup_messages():\n"
        "    os.write(2, b'at once\\n')\n"
        "    input()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr.readline() == b"at once\n"
        process.communicate(b"\n")
    assert process.returncode == 0


def test_a_crash_loses_no_line():
    done = run(
        "with without_startup_messages():\n"
        f"    say({ONEDNN!r}, 'an error')\n"
        "    os.write(2, b'terminate called')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert done.returncode == -signal.SIGKILL
    assert done.stderr == f"an error\n{ONEDNN}\nterminate called"


def test_an_error_of_the_import_shows_every_line():
    done = run(
        "with without_startup_messages():\n"
        f"    say({ONEDNN!r})\n    raise ImportError('no library')\n"
    )
    assert done.stderr.startswith(f"{ONEDNN}\nTraceback")
    assert done.stderr.endswith("ImportError: no library\n")


def test_an_interruption_shows_no_startup_message():
    done = run(
        "try:\n"
        "    with without_startup_messages():\n"
        f"        say({ONEDNN!r}, 'other')\n        raise KeyboardInterrupt\n"
        "except KeyboardInterrupt:\n    say('interrupted')\n"
    )
    assert done.stderr == "other\ninterrupted\n"


def test_a_child_process_may_write_after_the_block():
    done = run(
        "with without_startup_messages():\n"
        "    child = subprocess.Popen(\n"
        "        [sys.executable, '-c', 'import sys; input(); sys.exit(\"late\")'],\n"
        "        stdin=subprocess.PIPE)\n"
        "say('early')\n"
        "child.communicate(b'\\n')\n"
    )
    assert done.stderr == "early\nlate\n"


@pytest.mark.parametrize(("level", "shown"), [("0", True), ("1", False)])
def test_level_zero_of_the_user_shows_the_messages(level, shown):
    done = run(
        f"with without_startup_messages():\n    say({ONEDNN!r})\n"
        "print(os.environ['TF_CPP_MIN_LOG_LEVEL'])\n",
        TF_CPP_MIN_LOG_LEVEL=level,
    )
    assert done.stderr == (f"{ONEDNN}\n" if shown else "")
    assert done.stdout == f"{level}\n"
