import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tfbbb.client.errors import JobFailedError, UnreachableError
from tfbbb.client.event_stream import Event, events_in
from tfbbb.client.resource import Resource

if TYPE_CHECKING:
    from tfbbb.client.model import Model

_ENDED = ("succeeded", "failed", "cancelled")
# The service sends a sign of life every 15 s.
_SILENCE = 45.0
_PAUSES = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0)


class Job(Resource):
    """A training job, as it was when the service was last asked.

    Attributes:
        id: Its id.
        name: The model that it makes a version of.
        state: `queued`, `running`, `exporting`, `succeeded`, `failed` or `cancelled`.
        progress: How far it is: `epoch`, `epochs`, `step`, `steps` and its latest
            `figures`; empty before it starts.
        eta_seconds: Seconds until training is through, if that is known.
        error: Why it failed.
        version: The version that it published.
        log: The end of what its trainer wrote.
        created_at: When it was submitted.
        details: The service's whole answer.
    """

    @property
    def state(self) -> str:
        return str(self.details["state"])

    @property
    def progress(self) -> dict[str, Any]:
        return dict(self.details["progress"])

    @property
    def eta_seconds(self) -> float | None:
        seconds: float | None = self.details.get("eta_seconds")
        return seconds

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
        if "log" not in self.details:  # It comes from a list.
            self.refresh()
        return str(self.details["log"])

    @property
    def created_at(self) -> datetime:
        return datetime.fromisoformat(self.details["created_at"])

    @property
    def has_ended(self) -> bool:
        """Whether it will not change any more."""
        return self.state in _ENDED

    def refresh(self) -> "Job":
        """Asks the service again; returns the job itself."""
        self.details = self._connection.ask("GET", self._path)
        return self

    def events(self, after: int = 0) -> Iterator[Event]:
        """Gives what happens to the job, from its beginning, until it has ended.

        A connection that breaks, as when the service is started anew, is made again
        where it broke off.

        Args:
            after: Id of the last event that is known already.

        Raises:
            ServiceError: The job is unknown.
            UnreachableError: The service is away for half a minute.
        """
        failures = 0
        while True:
            last: Event | None = None
            headers = {"Last-Event-ID": str(after)}
            try:
                with self._connection.stream(
                    f"{self._path}/events", headers, _SILENCE
                ) as answer:
                    for last in events_in(answer.iter_lines()):
                        after, failures = last.id, 0
                        yield last
                # The job has ended, or the service is about to.
                if self.refresh().has_ended and _is_the_end(last):
                    return
            except UnreachableError:
                if failures == len(_PAUSES):
                    raise
            time.sleep(_PAUSES[failures])
            failures = min(failures + 1, len(_PAUSES))

    def wait(self, progress: Callable[[Event], object] | None = None) -> "Job":
        """Waits until the job has ended well, and returns it.

        Args:
            progress: Called with every event.

        Raises:
            JobFailedError: It failed, or was cancelled.
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
        """Cancels the job: at once if it waits, else as soon as its step is done."""
        self.details = self._ask_to("cancel", idempotent=True)
        return self

    def retry(self) -> "Job":
        """Queues the job again after it has failed or was cancelled."""
        self.details = self._ask_to("retry", idempotent=False)
        return self

    def delete(self) -> None:
        """Removes the job, its events and its log; the model stays."""
        self._connection.ask("DELETE", self._path)

    @property
    def model(self) -> "Model":
        """The model that the job makes a version of: once published, that version."""
        from tfbbb.client.model import Model

        return Model(self._connection, self.name, self.version)

    @property
    def _path(self) -> str:
        return f"/v1/jobs/{self.id}"

    def _ask_to(self, verb: str, *, idempotent: bool) -> dict[str, Any]:
        path = f"{self._path}:{verb}"
        details: dict[str, Any] = self._connection.ask(
            "POST", path, idempotent=idempotent
        )
        return details

    def __repr__(self) -> str:
        return f"Job(id={self.id!r}, name={self.name!r}, state={self.state!r})"


def _is_the_end(last: Event | None) -> bool:
    """Whether a stream has told all there is of a job that has ended."""
    return last is None or last.data.get("state") in _ENDED
