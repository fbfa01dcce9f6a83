"""A training job of the service."""

import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from tfbbb.base.types import JsonObject
from tfbbb.client.errors import JobFailedError, UnreachableError
from tfbbb.client.event_stream import Event, read_events
from tfbbb.client.resource import Resource

if TYPE_CHECKING:
    from tfbbb.client.model import Model

_ENDED = ("succeeded", "failed", "cancelled")
# The service sends a comment at least every 15 s.
_MAX_SILENCE = 45.0
_PAUSES = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0)


class Job(Resource):
    """A training job, as of the last request.

    Attributes:
        id: Id of the job.
        name: Name of the model that the job trains.
        state: `queued`, `running`, `exporting`, `succeeded`, `failed` or `cancelled`.
        progress: `epoch`, `epochs`, `step`, `steps` and the latest `figures`; empty
            before the job starts.
        timing: The `stage` that the job is at, the share `done`, least and most
            `seconds_left` or None, and the seconds `elapsed`; None if it has ended.
        error: Reason of a failure, or None.
        version: The version that the job published, or None.
        log: The end of the job's log.
        judgement: The figures of the version beside those of baselines, and sentences
            about them; None before the job succeeds.
        created_at: Time of the submission.
        details: The service's whole response.
    """

    @property
    def state(self) -> str:
        return str(self.details["state"])

    @property
    def progress(self) -> JsonObject:
        return dict(self.details["progress"])

    @property
    def timing(self) -> JsonObject | None:
        # An older service does not tell it.
        found: JsonObject | None = self.details.get("timing")
        return found

    @property
    def error(self) -> str | None:
        reason: str | None = self.details["error"]
        return reason

    @property
    def version(self) -> int | None:
        number: int | None = self.details["version"]
        return number

    @property
    def log(self) -> str:
        # The entries of a list of jobs lack the log.
        if "log" not in self.details:
            self.refresh()
        return str(self.details["log"])

    @property
    def judgement(self) -> JsonObject | None:
        # The entries of a list of jobs lack it.
        if "judgement" not in self.details:
            self.refresh()
        found: JsonObject | None = self.details.get("judgement")
        return found

    @property
    def created_at(self) -> datetime:
        return datetime.fromisoformat(self.details["created_at"])

    @property
    def duration(self) -> float | None:
        """Seconds from the submission to the end; None before it has ended."""
        ended = self.details.get("finished_at")
        if ended is None:
            return None
        return (datetime.fromisoformat(ended) - self.created_at).total_seconds()

    @property
    def has_ended(self) -> bool:
        """Whether the job succeeded, failed or was cancelled."""
        return self.state in _ENDED

    def refresh(self) -> "Job":
        """Updates the job from the service and returns the job."""
        self.details = self._connection.request("GET", self._path)
        return self

    def events(self, after: int = 0) -> Iterator[Event]:
        """Yields the events of the job until the job ends.

        Reconnects if the connection breaks, for instance when the service restarts, and
        continues after the last received event.

        Args:
            after: Id of the event to continue after; 0 yields all events.

        Raises:
            ServiceError: The job is unknown.
            UnreachableError: The service does not respond for half a minute.
        """
        failures = 0
        while True:
            last: Event | None = None
            headers = {"Last-Event-ID": str(after)}
            try:
                with self._connection.stream(
                    f"{self._path}/events", headers, _MAX_SILENCE
                ) as response:
                    for last in read_events(response.iter_lines()):
                        after, failures = last.id, 0
                        yield last
                # The stream ends with the job, or when the service stops.
                if self.refresh().has_ended and _is_complete(last):
                    return
            except UnreachableError:
                if failures == len(_PAUSES):
                    raise
            time.sleep(_PAUSES[failures])
            failures = min(failures + 1, len(_PAUSES))

    def wait(self, progress: Callable[[Event], object] | None = None) -> "Job":
        """Waits until the job succeeds and returns the job.

        Args:
            progress: Called with every event.

        Raises:
            JobFailedError: The job failed or was cancelled.
        """
        for event in self.events():
            if progress is not None:
                progress(event)
        self.refresh()
        if self.state != "succeeded":
            reason = f": {self.error}" if self.error else ""
            raise JobFailedError(f"Job {self.id} {self.state}{reason}")
        return self

    def cancel(self) -> "Job":
        """Cancels the job: a queued job at once, a running job after its step."""
        self.details = self._post_action("cancel", idempotent=True)
        return self

    def retry(self) -> "Job":
        """Queues a failed or cancelled job again."""
        self.details = self._post_action("retry", idempotent=False)
        return self

    def delete(self) -> None:
        """Deletes the job, its events and its log, but not the model."""
        self._connection.request("DELETE", self._path)

    @property
    def model(self) -> "Model":
        """The model that the job trains, at the version that the job published."""
        from tfbbb.client.model import Model

        return Model(self._connection, self.name, self.version)

    @property
    def _path(self) -> str:
        return f"/v1/jobs/{self.id}"

    def _post_action(self, verb: str, *, idempotent: bool) -> JsonObject:
        path = f"{self._path}:{verb}"
        return self._connection.request("POST", path, idempotent=idempotent)

    def __repr__(self) -> str:
        return f"Job(id={self.id!r}, name={self.name!r}, state={self.state!r})"


def _is_complete(last: Event | None) -> bool:
    """Whether a stream with this last event has sent all events of an ended job."""
    return last is None or last.data.get("state") in _ENDED
