"""`/metrics`: those of the API processes, of the database and of the disks."""

import asyncio
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import psutil
from fastapi import Request, Response
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Info,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector
from sqlalchemy import func, select

from service.api.feedback.repository import running_figures
from service.api.http.routes import scoped_router
from service.api.keys.keyring import may_read_metrics
from service.shared.database import Database
from service.shared.database.tables import Feedback, Job, ModelVersion
from service.shared.files import directory_bytes
from service.shared.job_state import ENDED, JobState
from service.shared.settings import Settings
from tfbbb.version import __version__, commit


@dataclass(frozen=True)
class _Reading(Collector):
    """Metrics that a function reads."""

    read: Callable[[], Iterable[Metric]]

    def collect(self) -> Iterable[Metric]:
        return self.read()


class Registries:
    """The metrics of the API.

    This process counts those of `counted`; if several processes share the counters,
    their sums are reported. Those of `observed` are read from elsewhere.
    """

    def __init__(self) -> None:
        self.counted = CollectorRegistry()
        self.observed = CollectorRegistry()
        about = "Version of the service and commit of its source."
        build = Info("tfbbb_build", about, registry=self.observed)
        build.info({"version": __version__, "commit": commit()})
        self._directory = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
        if self._directory is None:
            ProcessCollector(registry=self.observed)

    def observe(self, read: Callable[[], Iterable[Metric]]) -> None:
        """Adds the metrics that a function reads."""
        self.observed.register(_Reading(read))

    def text(self) -> bytes:
        """Returns all metrics, in the format of Prometheus."""
        counted = self.counted
        if self._directory is not None:
            counted = CollectorRegistry()
            _forget_dead_workers(Path(self._directory))
            MultiProcessCollector(counted, self._directory)  # type: ignore[no-untyped-call]
        return generate_latest(self.observed) + generate_latest(counted)


def _forget_dead_workers(directory: Path) -> None:
    """Removes the gauges of processes that were killed."""
    for file in directory.glob("gauge_live*_*.db"):
        pid = int(file.stem.rpartition("_")[2])
        if not psutil.pid_exists(pid):
            mark_process_dead(pid, str(directory))  # type: ignore[no-untyped-call]


def disk_metrics(
    settings: Settings, models: Path, database: Database
) -> Iterable[Metric]:
    """Reads the bytes of what the service stores, and the free bytes beside them.

    With an object store those of versions and datasets are the bytes of this machine's
    copies.
    """
    about = "Bytes of files on this machine, counted once a minute."
    used = GaugeMetricFamily("tfbbb_disk_bytes", about, labels=["kind"])
    data, minute = settings.data_dir, time.monotonic() // 60
    for kind, num_bytes in _count_bytes(data, models, database.path, minute).items():
        used.add_metric([kind], num_bytes)
    about = "Bytes that are free on the disk of a directory."
    free = GaugeMetricFamily("tfbbb_disk_free_bytes", about, labels=["directory"])
    for directory, place in (("data", data), ("models", models)):
        with suppress(OSError):
            free.add_metric([directory], shutil.disk_usage(place).free)
    return used, free


@lru_cache(maxsize=1)
def _count_bytes(
    data: Path, models: Path, database: Path | None, minute: float
) -> Mapping[str, int]:
    """Counts bytes once a minute: those of ten thousand versions take a second."""
    kinds = ("datasets", "uploads", "jobs")
    counted = {kind: directory_bytes(data / kind) for kind in kinds}
    counted["versions"] = directory_bytes(models)
    if database is not None:
        files = database.parent.glob(f"{database.name}*")
        counted["database"] = sum(file.stat().st_size for file in files)
    return counted


def feedback_metrics(database: Database) -> Iterable[Metric]:
    """Reads the feedback about each version that is not deleted."""
    count, figures, martingale, alarm = (
        GaugeMetricFamily(f"tfbbb_{name}", about, labels=["model", "version", *labels])
        for name, about, *labels in (
            ("feedback_rows", "Rows of which feedback came."),
            ("feedback_figure", "Mean of a score over these rows.", "figure"),
            ("drift_martingale", "Test of drift, whose alarm is at 20."),
            ("drift_alarm", "Whether the test of drift has raised an alarm."),
        )
    )
    exists = (
        (ModelVersion.name == Feedback.name)
        & (ModelVersion.number == Feedback.number)
        & ModelVersion.deleted_at.is_(None)
    )
    with database.reading() as session:
        rows = session.scalars(select(Feedback).join(ModelVersion, exists)).all()
    for row in rows:
        version = [row.name, str(row.number)]
        count.add_metric(version, row.num_rows)
        for figure, (mean, _) in running_figures(row).items():
            figures.add_metric([*version, figure], mean)
        martingale.add_metric(version, row.drift["martingale"])
        alarm.add_metric(version, row.drift["alarm"])
    return count, figures, martingale, alarm


def job_metrics(database: Database) -> Iterable[Metric]:
    """Reads the jobs of all processes of a service."""
    states = GaugeMetricFamily("tfbbb_jobs", "Jobs by state.", labels=["state"])
    about = "Time from the first start of a job to its end."
    durations = SummaryMetricFamily(
        "tfbbb_job_duration_seconds", about, labels=["state"]
    )
    took = Job.finished_at - Job.started_at
    columns = Job.state, func.count(), func.count(took), func.sum(took)
    with database.reading() as session:
        found = session.execute(select(*columns).group_by(Job.state)).all()
        queued = select(func.min(Job.created_at)).where(Job.state == JobState.QUEUED)
        oldest = session.scalar(queued)
        age = 0.0 if oldest is None else database.now(session) - oldest
    for state, _, num_timed, seconds in found:
        if state in ENDED and seconds is not None:
            durations.add_metric([state], num_timed, seconds)
    counts = {state: count for state, count, *_ in found}
    for state in JobState:
        states.add_metric([state], counts.get(state, 0))
    waiting = GaugeMetricFamily(
        "tfbbb_job_oldest_queued_seconds", "Age of the oldest queued job.", age
    )
    return states, waiting, durations


router = scoped_router("", "health", may_read_metrics)


@router.get(
    "/metrics",
    summary="Metrics for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def get_metrics(request: Request) -> Response:
    """Returns metrics of requests, jobs, processes, models and their uncertainty."""
    registries: Registries = request.state.service.metrics
    text = await asyncio.to_thread(registries.text)
    return Response(text, media_type=CONTENT_TYPE_LATEST)
