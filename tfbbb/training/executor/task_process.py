"""The program of a process of `LocalExecutor`: it reads tasks and answers results."""

import os
import signal
import socket
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import cloudpickle

from tfbbb.training.executor.frames import read_frame, write_frame

_SECONDS_BETWEEN_LOOKS = 1.0


def main() -> None:
    """Runs the tasks that arrive on the socket of standard input."""
    with socket.socket(fileno=os.dup(0)) as connection:
        # A task that reads its input, or a child of it, gets none.
        with Path(os.devnull).open() as nothing:
            os.dup2(nothing.fileno(), 0)
        threading.Thread(target=_end_with_parent, daemon=True).start()
        stream = connection.makefile("rwb")
        while (payload := read_frame(stream)) is not None:
            write_frame(stream, _answer(payload))


def _answer(payload: bytes) -> bytes:
    """Returns whether a task succeeded, and its result or its error."""
    answer: tuple[bool, Any]
    try:
        function, arguments = cloudpickle.loads(payload)
        answer = True, function(**arguments)
        return cloudpickle.dumps(answer)
    except Exception as error:
        error.add_note(f"In the process of the task:\n{traceback.format_exc()}")
        try:
            return cloudpickle.dumps((False, error))
        except Exception:
            plain = RuntimeError(f"{type(error).__name__}: {error}")
            return cloudpickle.dumps((False, plain))


def _end_with_parent() -> None:
    """Ends this process and its children once the parent is gone."""
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    os.killpg(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
