"""Runs queued jobs on a Ray cluster: each attempt is one Ray job, `tfbbb worker --job`.

The submission id of a Ray job names the job and the attempt. Ray refuses a second
submission of one id, so each attempt runs once.
"""

import errno
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import requests
from ray.exceptions import AuthenticationError
from ray.job_submission import JobSubmissionClient

from service.job_process.upkeep import Upkeep
from service.shared.files import JobFiles
from service.shared.queue import Lease, Queue, StaleAttemptError

Result = TypeVar("Result")

# Time between two looks at a Ray job that has not leased its job yet.
_SECONDS_BETWEEN_LOOKS = 10.0
_SECONDS_TO_ANSWER = 10.0


class RayJobs:
    """Submits jobs to the Jobs API of a Ray cluster at `http://HOST:8265`.

    Ray reserves `cpus` and `gpus` for each job, and runs `command` on its nodes.
    """

    def __init__(
        self,
        queue: Queue,
        address: str,
        *,
        cpus: float = 1.0,
        gpus: float = 0.0,
        command: str = "tfbbb worker",
    ) -> None:
        self._queue = queue
        self._address = address
        self._cpus, self._gpus = cpus, gpus
        self._command = command
        self._connection: JobSubmissionClient | None = None
        self._upkeep = Upkeep(queue)
        # When to look again at the Ray job of an attempt that is still queued.
        self._look_at: dict[Lease, float] = {}

    def step(self) -> bool:
        """Submits the attempts that could begin; returns False, as it is never busy."""
        self._upkeep.do()
        attempts = self._queue.next_attempts()
        self._look_at = {a: self._look_at[a] for a in attempts if a in self._look_at}
        for attempt in attempts:
            now = time.monotonic()
            if attempt not in self._look_at:
                self._submit(attempt)
            elif now > self._look_at[attempt]:
                self._look(attempt)
            else:
                continue
            self._look_at[attempt] = now + _SECONDS_BETWEEN_LOOKS
        return False

    def _submit(self, attempt: Lease) -> None:
        name, settings = submission_id(attempt), self._queue.settings
        # A node works in another directory.
        places = {x: getattr(settings, x).absolute() for x in ("data_dir", "models")}
        variables = settings.model_copy(update=places).environment()
        try:
            self._ask(
                lambda client: client.submit_job(
                    entrypoint=f"{self._command} --job {attempt.job_id}",
                    submission_id=name,
                    runtime_env={"env_vars": variables},
                    metadata={"tfbbb_job": attempt.job_id},
                    entrypoint_num_cpus=self._cpus,
                    entrypoint_num_gpus=self._gpus or None,
                )
            )
        except OSError as error:
            # Submitted before, by this process or another one.
            if "already exists" not in str(error.strerror):
                raise
            return
        log: Path = JobFiles(settings, attempt.job_id).log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a") as file:
            file.write(f"submitted to Ray; `ray job logs {name}` prints the log\n")

    def _look(self, attempt: Lease) -> None:
        """Counts a death if a Ray job ended before it could lease its job."""
        name = submission_id(attempt)
        details = self._ask(lambda client: client.get_job_info(name))
        if not details.status.is_terminal():
            return
        lease = self._queue.lease_job(attempt.job_id)
        if lease is None:
            return
        how = _first_line(details.message or details.status)
        reason = f"its Ray job {name} ended before it began: {how}"
        with suppress(StaleAttemptError):
            self._queue.record_death(lease, reason)

    def _ask(self, request: Callable[[JobSubmissionClient], Result]) -> Result:
        try:
            if self._connection is None:
                self._connection = _Client(self._address)
            return request(self._connection)
        except (ConnectionError, requests.RequestException) as error:
            told = f"The Ray cluster does not answer ({_first_line(error)})"
            raise OSError(errno.EIO, told, self._address) from None
        except (AuthenticationError, RuntimeError, ValueError) as error:
            self._connection = None  # The next request reads the token again.
            told = f"The Ray cluster refused: {_first_line(error)}"
            raise OSError(errno.EIO, told, self._address) from None


class _Client(JobSubmissionClient):
    """A client that does not wait for ever."""

    def _do_request(self, *arguments: Any, **options: Any) -> requests.Response:
        return super()._do_request(*arguments, timeout=_SECONDS_TO_ANSWER, **options)


def submission_id(attempt: Lease) -> str:
    """Returns the id of the Ray job of an attempt."""
    return f"tfbbb-{attempt.job_id}-{attempt.attempt}"


def _first_line(error: object) -> str:
    return str(error).partition("\n")[0].strip().rstrip(".")[:500]
