"""Runs a child process and restarts it when it ends."""

import logging
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence

logger = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0
# After a process that ran this long, the next pause is short again.
_GOOD_SECONDS = 60.0


class SupervisedProcess:
    """A child process that is restarted whenever it ends by itself.

    The child must end at SIGTERM or at the end of its standard input, which also ends
    when this process dies. The child shares the output of this process.
    """

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        self.name = name
        self._command = command
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._changing = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._supervise, name=name, daemon=True)

    def start(self) -> None:
        """Starts the process, and restarts it until `stop`."""
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """Asks the process to end, and kills it after a number of seconds."""
        with self._changing:
            self._stopping.set()
            process = self._process
        if process is not None:
            if process.stdin is not None:
                process.stdin.close()
            process.terminate()
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                logger.warning("%s did not end in %g s", self.name, seconds)
                process.kill()
        self._thread.join()

    def _supervise(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            started = time.monotonic()
            how = self._run()
            if self._stopping.is_set():
                return
            if time.monotonic() - started > _GOOD_SECONDS:
                pause = _FIRST_PAUSE
            logger.error("%s %s; restarting in %g s", self.name, how, pause)
            if self._stopping.wait(pause):
                return
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _run(self) -> str:
        """Runs the process once; returns how it ended."""
        with self._changing:
            if self._stopping.is_set():
                return "was not started"
            try:
                self._process = process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    env=self._environment,
                    # Ctrl-C in a terminal must reach only this process, which stops its
                    # children in order.
                    start_new_session=True,
                )
            except OSError as error:
                return f"could not be started: {error}"
        with process:
            code = process.wait()
        return f"ended by signal {-code}" if code < 0 else f"ended with code {code}"
