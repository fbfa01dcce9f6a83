"""What a job is at, and how long it takes yet, as its status and its events tell it."""

from service.shared.database.tables import Job
from service.shared.job_state import ENDED, JobState
from service.shared.json_types import JsonObject
from tfbbb.training.job_clock import LOADING, WAITING

# Of the time since the trainer has last told, where it had said less.
_LEAST_LEFT, _MOST_LEFT = 0.1, 0.5


def timing(job: Job, now: float) -> JsonObject | None:
    """Returns stage, share done and seconds left of a job; None if it has ended.

    The trainer records them every second. While it is silent, for instance because the
    machine is busy, the time that has passed since is taken off.
    """
    if job.state in ENDED:
        return None
    told: JsonObject = job.progress.get("timing") or {}
    done = told.get("done", 0.0)
    if job.state == JobState.QUEUED or told.get("attempt") != job.attempt:
        is_queued = job.state == JobState.QUEUED
        since = now if is_queued else job.started_at or now
        return {
            "stage": WAITING if is_queued else LOADING,
            "done": done,
            "seconds_left": None,
            "elapsed": round(max(now - since, 0.0), 1),
        }
    age = max(now - told["at"], 0.0)
    least, most = told["seconds_left"]
    least = max(least - age, _LEAST_LEFT * age, 0.0)
    return {
        "stage": told["stage"],
        "done": done,
        "seconds_left": [
            round(least, 1),
            round(max(most - age, _MOST_LEFT * age, least), 1),
        ],
        "elapsed": round(told["elapsed"] + age, 1),
    }
