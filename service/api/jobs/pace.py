from service.shared.database.tables import Job
from service.shared.job_state import JobState


def eta_seconds(job: Job) -> float | None:
    """Seconds until training is through, by its pace; None while there is none."""
    pace = job.progress.get("seconds_per_step")
    if job.state != JobState.RUNNING or pace is None:
        return None
    return float(pace * (job.progress["steps"] - job.progress["step"]))
