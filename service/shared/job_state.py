from enum import StrEnum


class State(StrEnum):
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


ACTIVE = (State.RUNNING, State.EXPORTING)
UNFINISHED = (State.QUEUED, *ACTIVE)
ENDED = (State.SUCCEEDED, State.FAILED, State.CANCELLED)
