"""Starts trainers: what every launcher does, and the one for this machine."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Protocol

import psutil

from service.shared.files import JobFiles, last_line
from service.shared.queue import Lease
from service.shared.settings import Settings

logger = logging.getLogger(__name__)

# The end of a log, with room for its last line.
_OUTPUT_BYTES = 2**14


class Launcher(Protocol):
    """Starts a trainer for each lease, and reports how it ended."""

    def prepare(self) -> None:
        """Starts a trainer for the next lease, if it can and none is idle."""

    def start(self, lease: Lease) -> None:
        """Starts the attempt of a lease."""

    def has(self, lease: Lease) -> bool:
        """Returns whether an attempt runs although its dispatcher has ended."""

    def take_over(self, lease: Lease) -> None:
        """Watches such an attempt from now on."""

    def running(self) -> Sequence[Lease]:
        """Returns the leases whose attempts run, or wait for a machine."""

    def ended(self) -> Sequence[tuple[Lease, str]]:
        """Returns the leases whose processes died since the last call, and how."""

    def seconds(self, lease: Lease) -> float:
        """Returns the seconds for which an attempt has run; 0 while it waits."""

    def memory(self, lease: Lease) -> int:
        """Returns the resident memory of its process in bytes."""

    def terminate(self, lease: Lease) -> None:
        """Asks its process to save the job and to end."""

    def kill(self, lease: Lease) -> None:
        """Kills its process."""

    def close(self, seconds: float) -> None:
        """Ends all processes that must not outlive the dispatcher.

        Kills those that still run after a timeout.
        """


class LocalLauncher:
    """Runs `python -m service.trainer` on this machine.

    After an attempt, a trainer keeps TensorFlow imported and waits `warm_seconds` for
    the next lease. A trainer also ends when its input ends, so that it does not outlive
    the dispatcher.
    """

    def __init__(self, settings: Settings, module: str = "service.trainer") -> None:
        self._settings = settings
        self._module = module
        self._trainers: list[_TrainerProcess] = []

    def prepare(self) -> None:
        """Starts a trainer that imports its libraries, unless one is idle."""
        if self._settings.warm_seconds and not any(x.is_idle() for x in self._trainers):
            self._trainers.append(_TrainerProcess(self._settings, self._module, None))

    def start(self, lease: Lease) -> None:
        """Starts the attempt of a lease."""
        for trainer in self._trainers:
            if trainer.is_idle() and trainer.take(lease):
                return
        self._trainers.append(_TrainerProcess(self._settings, self._module, lease))

    def has(self, lease: Lease) -> bool:
        """Returns False: a trainer ends with its dispatcher."""
        return False

    def take_over(self, lease: Lease) -> None:
        """Does nothing, for the same reason."""

    def running(self) -> list[Lease]:
        """Returns the leases whose attempts run."""
        return [t.lease for t in self._trainers if t.lease and not t.is_idle()]

    def ended(self) -> list[tuple[Lease, str]]:
        """Returns the leases whose processes died since the last call, and how."""
        ended = []
        for trainer in list(self._trainers):
            code = trainer.process.poll()
            if code is not None:
                self._trainers.remove(trainer)
                trainer.close_input()
                if not trainer.is_idle() and trainer.lease:
                    how = with_last_line(_describe_exit(code), trainer.output())
                    ended.append((trainer.lease, how))
            elif trainer.idle_seconds() > self._settings.warm_seconds:
                trainer.close_input()
        return ended

    def seconds(self, lease: Lease) -> float:
        """Returns the seconds for which an attempt has run."""
        return time.monotonic() - self._find(lease).started_at

    def memory(self, lease: Lease) -> int:
        """Returns the resident memory of its process in bytes."""
        try:
            return int(psutil.Process(self._find(lease).process.pid).memory_info().rss)
        except psutil.NoSuchProcess:
            return 0

    def terminate(self, lease: Lease) -> None:
        """Asks its process to save the job and to end."""
        self._find(lease).process.terminate()

    def kill(self, lease: Lease) -> None:
        """Kills its process."""
        self._find(lease).process.kill()

    def close(self, seconds: float) -> None:
        """Asks all processes to end, and kills those that run after a timeout."""
        for trainer in self._trainers:
            trainer.close_input()
            trainer.process.terminate()
        deadline = time.monotonic() + seconds
        for trainer in self._trainers:
            try:
                trainer.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                trainer.process.kill()
                trainer.process.wait()

    def _find(self, lease: Lease) -> "_TrainerProcess":
        return next(t for t in self._trainers if t.lease == lease)


class _TrainerProcess:
    """A process that runs one attempt after the other."""

    def __init__(self, settings: Settings, module: str, lease: Lease | None) -> None:
        self.lease = lease
        self.started_at = time.monotonic()
        self._settings = settings
        self._idle_since = self.started_at if lease is None else None
        self._log_begins = 0
        attempt: list[str] = []
        with ExitStack() as stack:
            errors = None
            if lease is not None:
                attempt = [lease.job_id, "--attempt", str(lease.attempt)]
                files = JobFiles(settings, lease.job_id)
                files.directory.mkdir(parents=True, exist_ok=True)
                self._log_begins = files.size_of_log()
                errors = stack.enter_context(files.log.open("ab"))
            self.process = subprocess.Popen(
                [sys.executable, "-m", module, *attempt, "--stay"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=os.environ | settings.environment(),
                text=True,
                # Ctrl-C in a terminal must reach only the service.
                start_new_session=True,
            )
        self._changing = threading.Lock()
        threading.Thread(target=self._listen, name="trainer", daemon=True).start()

    def is_idle(self) -> bool:
        return self._idle_since is not None

    def idle_seconds(self) -> float:
        since = self._idle_since
        return 0.0 if since is None else time.monotonic() - since

    def take(self, lease: Lease) -> bool:
        """Sends an idle trainer its next lease; returns False if it has ended."""
        assert self.process.stdin is not None
        with self._changing:
            if self.process.poll() is not None or self.process.stdin.closed:
                return False
            try:
                self.process.stdin.write(f"{lease.job_id} {lease.attempt}\n")
                self.process.stdin.flush()
            except BrokenPipeError:
                return False
            self.lease, self._idle_since = lease, None
            self.started_at = time.monotonic()
            self._log_begins = JobFiles(self._settings, lease.job_id).size_of_log()
            return True

    def output(self) -> str:
        """Returns the end of what its attempt wrote to the job's log."""
        assert self.lease is not None
        files = JobFiles(self._settings, self.lease.job_id)
        written = files.size_of_log() - self._log_begins
        return files.log_tail(min(written, _OUTPUT_BYTES)) if written > 0 else ""

    def close_input(self) -> None:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                if line == "ready\n":
                    with self._changing:
                        self._idle_since = time.monotonic()


def with_last_line(how: str, output: str) -> str:
    """Adds the last line of what a process wrote to how it ended."""
    line = last_line(output)
    return how if line is None else f"{how}; the last line of its log: {line}"


def _describe_exit(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    name = signal.Signals(-code).name
    hint = ", e.g. because memory ran out" if -code == signal.SIGKILL else ""
    return f"signal {name}{hint}"
