"""The process of a worker: its cores, its output and its end."""

import logging
import os
import sys
from pathlib import Path
from typing import NoReturn

_OUTPUTS = (1, 2)


def leave_half_of_the_cores() -> None:
    """Lets the libraries of this process compute with half of the machine's cores.

    The rest is for predictions. Libraries read the variables when they are imported;
    variables that are set stay as they are.
    """
    threads = str(max(1, (os.cpu_count() or 1) // 2))
    for variable in (
        "TF_NUM_INTRAOP_THREADS",
        "TF_NUM_INTEROP_THREADS",
        "OMP_NUM_THREADS",
    ):
        os.environ.setdefault(variable, threads)


def end_process(code: int) -> NoReturn:
    """Ends the process without TensorFlow's clean-up, which takes up to 30 s."""
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)


class Process:
    """This process; with `once` it runs one job, prints the job's log, and ends."""

    def __init__(self, *, once: bool = False) -> None:
        self._once = once
        self._outputs = [os.dup(number) for number in _OUTPUTS]

    def write_to(self, log: Path | None) -> None:
        """Appends all output to a file from now on; None for where it went before."""
        if self._once:
            return
        if log is None:
            self._redirect(self._outputs)
            return
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as file:
            self._redirect([file.fileno()] * len(_OUTPUTS))

    def start_anew(self) -> NoReturn:
        """Replaces the program by a new run of itself; ends it if it runs one job."""
        if self._once:
            end_process(1)
        self._redirect(self._outputs)
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])

    def _redirect(self, descriptors: list[int]) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, descriptor in zip(_OUTPUTS, descriptors, strict=True):
            os.dup2(descriptor, number)
