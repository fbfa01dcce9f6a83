"""Ctrl-C at a running command: no traceback, one line at most, exit code 130."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import pytest

INTERRUPTED = 128 + signal.SIGINT
COMMAND = [sys.executable, "-m", "tfbbb"]
WITHOUT_CHILDREN = {"TFBBB_JOB_SLOTS": "0"}


@contextmanager
def running(*arguments, directory, command=COMMAND, **environment):
    """Runs a command in a process group of its own, as a terminal does."""
    # The tests may run in the background of a shell, which ignores Ctrl-C.
    process = subprocess.Popen(
        ["env", "--default-signal=INT", *command, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=directory,
        env=os.environ | environment,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def interrupt(process):
    """Sends SIGINT to the process group; returns what the command writes then."""
    os.killpg(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate()
    assert process.returncode == INTERRUPTED, stderr
    return stdout, stderr


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["train", "tune", "serve", "demo", "predict"])
def test_library_that_catches_everything_is_interrupted(tmp_path, name):
    (tmp_path / "typer.py").write_text(
        "import time\n"
        "print('importing', flush=True)\n"
        "try:\n"
        "    time.sleep(600)\n"
        "except BaseException:\n"
        "    pass\n"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    with running(name, directory=tmp_path, PYTHONPATH=path) as process:
        assert process.stdout.readline() == "importing\n"
        assert interrupt(process) == ("", "")


def test_importing_tensorflow_is_interrupted(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{i},{i}\n" for i in range(40)))
    command = ("train", "t.csv", "--target", "y", "--output", "models/t")
    with running(*command, directory=tmp_path) as process:
        # The columns are printed before TensorFlow is imported.
        assert "y" in process.stdout.readline()
        assert "Traceback" not in interrupt(process)[1]
    assert not (tmp_path / "models").exists()


def test_waiting_for_a_service_is_interrupted(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        command = ("remote", "models", "--url", url, "--key", "a.b")
        with running(*command, directory=tmp_path) as process:
            connection, _ = listener.accept()
            with connection:
                assert connection.recv(1)
                assert interrupt(process) == ("", "")


def test_a_service_is_interrupted(tmp_path):
    command = ("serve", "--port", 0)
    with running(*command, directory=tmp_path, **WITHOUT_CHILDREN) as process:
        for line in process.stderr:
            if "startup complete" in line:
                break
        _, stderr = interrupt(process)
    assert "Traceback" not in stderr
    assert "Finished server process" in stderr.splitlines()[-1]


def test_importing_the_commands_is_interrupted(tmp_path):
    program = (
        "import sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'tfbbb.cli.train':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from tfbbb.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "--help"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (INTERRUPTED, "", "")
