"""Tasks in processes of this machine."""

import os
import selectors
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import cloudpickle

from tfbbb.base.numbers import positive_integer
from tfbbb.training.executor.executor import Executor
from tfbbb.training.executor.frames import read_frame, write_frame
from tfbbb.training.executor.task import (
    LostProcess,
    Task,
    TaskError,
)
from tfbbb.training.executor.threads import thread_settings


class LocalExecutor(Executor):
    """Runs tasks in processes of this machine, which are started, never forked.

    A process runs one task after the other, so TensorFlow is imported once in each. It
    imports modules from where this program does, but does not run the program itself:
    a script needs no `if __name__ == "__main__"`.

    Args:
        processes: Number of processes.
        threads: Number of threads that TensorFlow and NumPy compute with in each
            process. More threads change sums in their last bits, so this number does
            not depend on `processes`: the results do not, either.

    Raises:
        ValueError: An argument is not a positive integer.

    Example:

    >>> from tfbbb.training.executor import LocalExecutor, Task
    >>> tasks = [Task(f"{n} squared", pow, {"base": n, "exp": 2}) for n in range(4)]
    >>> LocalExecutor(processes=2).run(tasks)
    [0, 1, 4, 9]
    """

    def __init__(self, processes: int = 1, *, threads: int = 1):
        super().__init__()
        self._processes = positive_integer("processes", processes)
        self._threads = positive_integer("threads", threads)
        self._idle: list[_Process] = []
        self._busy: dict[str, _Process] = {}

    @property
    def places(self) -> int:
        return self._processes

    def start(self, task: Task) -> None:
        process = self._idle.pop() if self._idle else _Process(self._threads)
        self._busy[task.key] = process
        process.send(task)

    def next(self) -> tuple[str, Any]:
        with selectors.DefaultSelector() as selector:
            for key, process in self._busy.items():
                selector.register(process.socket, selectors.EVENT_READ, key)
            (ready, _), *_ = selector.select()
        key = ready.data
        process = self._busy.pop(key)
        answer = process.receive()
        if answer is None:
            return key, LostProcess(process.end())
        self._idle.append(process)
        succeeded, result = answer
        return key, result if succeeded else TaskError.caused_by(result, key)

    def stop(self) -> None:
        for process in self._busy.values():
            process.end()
        self._busy.clear()

    def close(self) -> None:
        super().close()
        for process in self._idle:
            process.end()
        self._idle.clear()


class _Process:
    """A process that runs `tfbbb.executor.task_process`."""

    def __init__(self, threads: int):
        self.socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tfbbb.training.executor.task_process"],
                stdin=theirs.fileno(),
                env=os.environ | thread_settings(threads) | _module_paths(),
                # Ctrl-C in the terminal is for this process, which ends the other.
                start_new_session=True,
            )
        self._stream = self.socket.makefile("rwb")

    def send(self, task: Task) -> None:
        payload = cloudpickle.dumps((task.function, dict(task.arguments)))
        # A process that has died is noticed by its missing answer.
        with suppress(ConnectionError):
            write_frame(self._stream, payload)

    def receive(self) -> Any:
        """Returns whether the task succeeded, and its result; None if it died."""
        try:
            answer = read_frame(self._stream)
        except ConnectionError:
            return None
        return None if answer is None else cloudpickle.loads(answer)

    def end(self) -> str:
        """Ends the process with its own children; returns how it has ended."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        code = self._process.wait()
        with suppress(ConnectionError):
            self._stream.close()
        self.socket.close()
        return f"signal {-code}" if code < 0 else f"exit code {code}"


def _module_paths() -> dict[str, str]:
    """Returns the setting by which another Python finds the modules of this one."""
    # The empty path is the working directory.
    return {"PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)}
