"""The states of a job."""

from enum import StrEnum


class JobState(StrEnum):
    """The life of a job.

    `queued → running → exporting → succeeded | failed | cancelled`, and from `running`
    and `exporting` back to `queued` when the attempt ends before the job does. A failed
    or cancelled job that is tried again is queued once more.
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
