"""The states of a job."""

from enum import StrEnum


class JobState(StrEnum):
    """The states of a job.

    `queued → running → exporting → succeeded | failed | cancelled`. A running or
    exporting job returns to `queued` if its attempt ends first; a failed or cancelled
    job returns to `queued` if it is retried.
    """

    QUEUED = "queued"
    RUNNING = "running"
    EXPORTING = "exporting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


ACTIVE = (JobState.RUNNING, JobState.EXPORTING)
UNFINISHED = (JobState.QUEUED, *ACTIVE)
ENDED = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)
