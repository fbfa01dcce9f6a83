"""Imports TensorFlow, and drops the messages that it writes at every start.

The distribution `tfbbb-predict` comes without TensorFlow: what needs it says so.

TensorFlow writes them to file descriptor 2 before it reads any setting of its log.
While it is imported, another process (this file, run as a program) filters the
descriptor, so that all other output arrives at once, even if the import crashes.
"""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
# Messages about features of the machine. All other lines are passed on.
_STARTUP_MESSAGE = re.compile(
    rb"WARNING: All log messages before absl::InitializeLog\(\) is called are written "
    rb"|(I\d{4} [\d:.]+ +\d+ |[\d-]+ [\d:.]+: I \S+/)"
    rb"(port|cudart_stub|cpu_feature_guard)\.cc:\d+\] "
    # Of a machine without a driver for GPUs.
    rb"|(E\d{4} [\d:.]+ +\d+ |[\d-]+ [\d:.]+: E \S+/)"
    rb"cuda_platform\.cc:\d+\] failed call to cuInit: .*UNKNOWN ERROR \(303\)"
    rb"|To enable the following instructions: .* rebuild TensorFlow"
)
_CHUNK = 65536


class MissingTensorFlowError(ImportError):
    """What was asked for needs TensorFlow; the message says how to get it."""


def has_tensorflow() -> bool:
    """Returns whether TensorFlow is installed, without importing it."""
    return importlib.util.find_spec("tensorflow") is not None


def require_tensorflow(what: str) -> None:
    """Raises an error unless TensorFlow is installed."""
    if not has_tensorflow():
        raise MissingTensorFlowError(
            f"{what} needs TensorFlow: `pip install tfbbb`, or take the full image in "
            "place of the one that only predicts."
        )


def import_tensorflow() -> None:
    """Imports TensorFlow and lists the devices, without the start-up messages.

    TensorFlow takes the memory of GPUs as it needs it, and Keras does not import
    Matplotlib with it.

    If the environment variable `TF_CPP_MIN_LOG_LEVEL` is not set, it becomes 3:
    TensorFlow logs fatal errors only. The value 0 shows the start-up messages too.
    """
    if sys.modules.get("tensorflow") is not None:
        return
    require_tensorflow("This")
    with without_startup_messages():
        with _without_matplotlib():
            import tensorflow as tf

        let_gpu_memory_grow()
        # TensorFlow looks for a GPU when it lists the devices for the first time.
        tf.config.list_logical_devices()


def let_gpu_memory_grow() -> None:
    """Makes TensorFlow take the memory of a GPU bit by bit, not all of it at once.

    Otherwise the first process, such as one that predicts, would leave none to the
    others, such as one that trains. Must be called before TensorFlow uses a device.
    """
    import tensorflow as tf

    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)


@contextmanager
def without_startup_messages() -> Iterator[None]:
    """Drops TensorFlow's start-up messages from file descriptor 2.

    All other output is passed on at once. If the block raises an error or the process
    crashes, the start-up messages are written too, because they may tell the cause.
    """
    if os.environ.setdefault(_LEVEL, "3") == "0":
        yield
        return
    # Separates the filtered output from what child processes write afterwards.
    mark = os.urandom(16).hex()
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, mark],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # Ctrl-C in a terminal must not end the filter.
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with _redirect_stderr(process.stdin.fileno()):
            process.stdin.close()
            try:
                yield
            except (KeyboardInterrupt, SystemExit):
                os.write(2, mark.encode())
                raise
            else:
                os.write(2, mark.encode())
    finally:
        # The filter closes its output after the last line.
        process.stdout.read()
        process.stdout.close()
        # It stays while a child process that was started meanwhile may write.
        with suppress(subprocess.TimeoutExpired):
            process.wait(1.0)


@contextmanager
def _without_matplotlib() -> Iterator[None]:
    """Keeps Keras from importing Matplotlib, which takes a second.

    Keras does without it, unless it draws, which no command and no service makes it do.
    """
    name = "matplotlib"
    if name in sys.modules:
        yield
        return
    # An import then raises `ModuleNotFoundError`.
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]


@contextmanager
def _redirect_stderr(descriptor: int) -> Iterator[None]:
    sys.stderr.flush()
    stderr = os.dup(2)
    os.dup2(descriptor, 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(stderr, 2)
        os.close(stderr)


def _filter(mark: bytes) -> None:
    """Copies standard input to standard error; drops start-up messages before `mark`.

    Closes standard output at the mark. If the input ends without a mark, writes the
    dropped messages.
    """
    dropped, rest = [], b""
    while chunk := os.read(0, _CHUNK):
        before, found, after = (rest + chunk).partition(mark)
        *lines, rest = before.split(b"\n")
        for line in lines:
            if _STARTUP_MESSAGE.match(line):
                dropped.append(line + b"\n")
            else:
                _write(line + b"\n")
        if found:
            _write(rest + after)
            os.close(1)
            while chunk := os.read(0, _CHUNK):
                _write(chunk)
            return
    _write(b"".join(dropped) + rest)


def _write(output: bytes) -> None:
    while output:
        output = output[os.write(2, output) :]


if __name__ == "__main__":
    _filter(sys.argv[1].encode())
