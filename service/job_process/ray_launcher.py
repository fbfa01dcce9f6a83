"""Starts trainers as jobs of a Ray cluster, through its Jobs API."""

import errno
import logging
import shlex
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from zipfile import ZipFile

import requests
from ray.exceptions import AuthenticationError
from ray.job_submission import JobDetails, JobStatus, JobSubmissionClient

from service.job_process.launcher import with_last_line
from service.shared.files import JobFiles
from service.shared.json_types import JsonObject
from service.shared.queue import Lease
from service.shared.ray_cluster import (
    RayClusterError,
    authorization,
    describe_refusal,
)
from service.shared.settings import Settings
from service.shared.temporary import temporary_directory

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

# Time between two looks at the state of one job, and at its log.
_STATE_SECONDS, _LOG_SECONDS = 1.0, 10.0
# Requests of one step, so that the dispatcher also does its other work.
_LOOKS_PER_STEP = 10
# Time without requests after one that failed.
_SECONDS_TO_RECOVER = 5.0
_SECONDS_TO_ANSWER = 10.0
_SECONDS_BETWEEN_STOPS = 10.0

# Sets `python` to the Python of the node's Ray, in the shell that Ray's supervisor of a
# job starts. Ray tells it to no job, but its raylet, which has started the supervisor,
# has it among its arguments. An environment that Ray made for the job is activated.
_FIND_PYTHON = (
    "raylet=$(sed -n 's/^PPid:[[:space:]]*//p' /proc/$PPID/status); "
    r"python=$(tr '\0' '\n' < /proc/$raylet/cmdline "
    r"| sed -n 's/^--python_worker_command=\([^ ]*\) .*/\1/p'); "
    '[ -z "$VIRTUAL_ENV" ] && [ -x "$python" ] || python=python; '
    'exec "$python"'
)
# Ray writes it before the output of a job.
_ENTRYPOINT = "Running entrypoint for job "


class RayError(OSError):
    """The cluster does not answer, or refuses; `strerror` is a sentence."""

    def __init__(self, sentence: str, address: str) -> None:
        super().__init__(errno.EIO, sentence, address)


@dataclass
class _RayJob:
    """What is known of one submitted job.

    Args:
        lease: The attempt that the job runs.
        log: Writes the output of the job.
        runs_since: Monotonic time when the job was first seen running; None before.
        seen_at: Monotonic time of the last look at its state.
        logged_at: Monotonic time of the last look at its log.
        stopped_at: Monotonic time of the last request to stop.
    """

    lease: Lease
    log: "_AttemptLog"
    runs_since: float | None = None
    seen_at: float = float("-inf")
    logged_at: float = field(default_factory=time.monotonic)
    stopped_at: float = float("-inf")


class RayLauncher:
    """Runs `python -m service.trainer` on the nodes of a Ray cluster.

    The submission id of a Ray job is that of the job and its attempt, so that one
    attempt is submitted once, and another dispatcher finds the jobs of one that ended.
    Ray jobs outlive the dispatcher; their trainers renew their leases.
    """

    def __init__(self, settings: Settings, module: str = "service.trainer") -> None:
        assert settings.ray_address is not None
        self._address = settings.ray_address
        self._settings = settings
        self._module = module
        self._connection: JobSubmissionClient | None = None
        self._jobs: dict[Lease, _RayJob] = {}
        self._ended: list[tuple[Lease, str]] = []
        self._may_ask_at = float("-inf")
        self._unpacked: Path | None = None
        self._directories = ExitStack()

    def prepare(self) -> None:
        """Does nothing: a Ray job is that of one attempt."""

    def start(self, lease: Lease) -> None:
        """Submits the attempt of a lease; Ray starts it once a node has room."""
        settings, log = self._settings, _AttemptLog(self._settings, lease)
        python = settings.ray_python
        attempt = ["--attempt", str(lease.attempt), "--print-log"]
        trainer = shlex.join(["-m", self._module, lease.job_id, *attempt])
        try:
            self._ask(
                lambda client: client.submit_job(
                    entrypoint=(
                        f"{_FIND_PYTHON if python is None else shlex.quote(python)} "
                        f"{trainer}"
                    ),
                    submission_id=submission_id(lease),
                    runtime_env=self._environment(),
                    metadata={"tfbbb_job": lease.job_id},
                    entrypoint_num_cpus=settings.ray_job_cpus,
                    entrypoint_num_gpus=settings.ray_job_gpus or None,
                    entrypoint_memory=settings.ray_job_memory_bytes,
                )
            )
        except RayError as error:
            # An earlier request arrived, although its answer did not.
            if "already exists" not in str(error.strerror):
                raise
        self._jobs[lease] = _RayJob(lease, log)

    def has(self, lease: Lease) -> bool:
        """Returns whether Ray has the job of an attempt."""
        return self._details(lease) is not None

    def take_over(self, lease: Lease) -> None:
        """Watches an attempt that another dispatcher started."""
        self._jobs[lease] = _RayJob(lease, _AttemptLog(self._settings, lease))

    def running(self) -> list[Lease]:
        """Returns the leases whose attempts run or wait for a node."""
        return list(self._jobs)

    def ended(self) -> Sequence[tuple[Lease, str]]:
        """Returns the leases whose jobs ended since the last call, and how."""
        now = time.monotonic()
        if now >= self._may_ask_at:
            oldest_first = sorted(self._jobs.values(), key=lambda job: job.seen_at)
            try:
                for job in oldest_first[:_LOOKS_PER_STEP]:
                    if now - job.seen_at > _STATE_SECONDS:
                        self._look(job, now)
            except RayError as error:
                self._may_ask_at = time.monotonic() + _SECONDS_TO_RECOVER
                logger.warning("%s: %s", error.filename, error.strerror)
        ended, self._ended = self._ended, []
        return ended

    def seconds(self, lease: Lease) -> float:
        """Returns the seconds for which an attempt has run on a node."""
        since = self._jobs[lease].runs_since
        return 0.0 if since is None else time.monotonic() - since

    def memory(self, lease: Lease) -> int:
        """Returns 0: Ray watches the memory of its nodes."""
        return 0

    def terminate(self, lease: Lease) -> None:
        """Asks its process to save the job and to end; Ray soon kills it."""
        job, now = self._jobs[lease], time.monotonic()
        if now - job.stopped_at < _SECONDS_BETWEEN_STOPS:
            return
        job.stopped_at = now
        with suppress(RayError):  # Asked again later.
            self._ask(lambda client: client.stop_job(submission_id(lease)))

    def kill(self, lease: Lease) -> None:
        """Stops its process, as `terminate` does."""
        self.terminate(lease)

    def close(self, seconds: float) -> None:
        """Leaves all jobs running, for the next dispatcher to take over."""
        self._directories.close()

    def _environment(self) -> JsonObject:
        """Returns Ray's description of the environment of a trainer."""
        settings = self._settings
        directories = {
            "data_dir": settings.data_dir.absolute(),
            "models": settings.models.absolute(),
        }
        variables = settings.model_copy(update=directories).environment()
        environment: JsonObject = {"env_vars": variables}
        if settings.ray_wheel is not None:
            # Ray would install a wheel with the newest packages that it depends on.
            if self._unpacked is None:
                directory = temporary_directory("wheel")
                self._unpacked = self._directories.enter_context(directory)
                with ZipFile(settings.ray_wheel) as wheel:
                    wheel.extractall(self._unpacked)
            environment["working_dir"] = str(self._unpacked)
        if settings.ray_requirements is not None:
            environment["pip"] = locked_requirements(settings.ray_requirements)
        return environment

    def _look(self, job: _RayJob, now: float) -> None:
        job.seen_at = now
        details = self._details(job.lease)
        status = None if details is None else details.status
        if status == JobStatus.RUNNING and job.runs_since is None:
            job.runs_since = now
        has_ended = status is None or status.is_terminal()
        if status is not None and (has_ended or now - job.logged_at > _LOG_SECONDS):
            job.logged_at = now
            self._fetch_log(job)
        if has_ended:
            del self._jobs[job.lease]
            self._ended.append((job.lease, self._describe_end(job, details)))

    def _describe_end(self, job: _RayJob, details: JobDetails | None) -> str:
        if details is None:
            return "the Ray cluster does not know its job any more"
        code = details.driver_exit_code
        if details.status == JobStatus.STOPPED:
            return "Ray stopped it"
        if code is None:
            return f"Ray: {_first_line(details.message or details.status)}"
        output = job.log.read()
        how = with_last_line(f"exit code {code}", output)
        if str(job.lease) in output:
            return how
        python = self._settings.ray_python or "the one of the node's Ray"
        return (
            f"{how}; TFBBB_RAY_PYTHON must name a Python of the nodes that has "
            f"tfbbb. Received: {python}"
        )

    def _fetch_log(self, job: _RayJob) -> None:
        # The log is lost with its node.
        with suppress(RayError):
            text = self._ask(
                lambda client: client.get_job_logs(submission_id(job.lease))
            )
            job.log.write(text)

    def _details(self, lease: Lease) -> JobDetails | None:
        """Returns what Ray knows of an attempt; None if nothing."""
        try:
            return self._ask(lambda client: client.get_job_info(submission_id(lease)))
        except RayError as error:
            if "does not exist" in str(error.strerror):
                return None
            raise

    def _ask(self, request: Callable[[JobSubmissionClient], Result]) -> Result:
        try:
            if self._connection is None:
                self._connection = _Client(self._address, headers=authorization())
            return request(self._connection)
        except AuthenticationError as error:
            # The next request reads the token again.
            self._connection = None
            status = 401 if str(error).startswith("Authentication required") else 403
            raise RayError(describe_refusal(status), self._address) from None
        except RayClusterError as error:
            raise RayError(str(error), self._address) from None
        except (ConnectionError, requests.RequestException) as error:
            raise RayError(
                f"The Ray cluster does not answer ({_first_line(error)})", self._address
            ) from None
        except (RuntimeError, ValueError) as error:
            raise RayError(
                f"The Ray cluster refused: {_first_line(error)}", self._address
            ) from None


class _Client(JobSubmissionClient):
    """A client that does not wait for ever."""

    def _do_request(self, *arguments: Any, **options: Any) -> requests.Response:
        return super()._do_request(*arguments, timeout=_SECONDS_TO_ANSWER, **options)


class _AttemptLog:
    """The part of a job's log that has the output of one attempt."""

    def __init__(self, settings: Settings, lease: Lease) -> None:
        self._path = JobFiles(settings, lease.job_id).log
        # Of all attempts, and of this one.
        self._heading_of_job = f"Ray job tfbbb-{lease.job_id}-".encode()
        heading = self._heading_of_job + f"{lease.attempt}:\n".encode()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a+b") as file:
            file.seek(0)
            before, found, _ = file.read().rpartition(heading)
            if not found:
                file.write(heading)
            self._start = file.seek(0, 2) if not found else len(before) + len(heading)

    def read(self) -> str:
        """Returns the output of the attempt, without the line that Ray adds."""
        with self._path.open("rb") as file:
            file.seek(self._start)
            output = file.read().partition(self._heading_of_job)[0]
        lines = output.decode(errors="replace").splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith(_ENTRYPOINT))

    def write(self, text: str) -> None:
        """Writes the whole output so far, unless a later attempt writes already."""
        with self._path.open("r+b") as file:
            file.seek(self._start)
            if self._heading_of_job in file.read():
                return
            file.seek(self._start)
            file.write(text.encode())
            file.truncate()


def submission_id(lease: Lease) -> str:
    """Returns the id of the Ray job of an attempt."""
    return f"tfbbb-{lease.job_id}-{lease.attempt}"


def locked_requirements(path: Path) -> list[str]:
    """Reads a lock file of pip, one requirement with its hashes per line."""
    lines = path.read_text().replace("\\\n", " ").splitlines()
    found = (" ".join(line.partition(" #")[0].split()) for line in lines)
    return [line for line in found if line and not line.startswith("#")]


def _first_line(error: object) -> str:
    return str(error).partition("\n")[0].strip().rstrip(".")[:500]
