"""Trains the network of a job on its dataset."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

import tfbbb
from service.shared.database import timestamp
from service.shared.database.tables import Job
from service.shared.files import JobFiles, dataset_name
from service.shared.settings import Settings
from service.shared.store import Store, open_store
from tfbbb.base.tensorflow_startup import import_tensorflow
from tfbbb.base.types import JsonObject
from tfbbb.training.job_clock import Interrupted, JobClock, Progress
from tfbbb.training.spec import JobSpec

if TYPE_CHECKING:
    from tfbbb.training import TrainedTable
    from tfbbb.training.serving_version import ServingVersion

# Writes a trained model as a SavedModel at a path that does not exist yet.
Export = Callable[[Path], None]

# Enough to choose a likelihood for.
_REHEARSED_ROWS = 100


class OtherVersionError(Exception):
    """The job was accepted by a version of tfbbb whose specs this one cannot read."""


@dataclass(frozen=True)
class TableTrainer:
    """Trains networks on tables."""

    settings: Settings

    def prepare(self, should_stop: Callable[[], bool]) -> None:
        """Imports what training needs, and takes its first steps, which are slow."""
        clock = JobClock()
        clock.begin("loading")
        import_tensorflow()
        from tfbbb.training import train_table

        calls = 0

        def after_a_step() -> bool:
            nonlocal calls
            calls += 1
            return calls > 1 or should_stop()

        if should_stop():
            return
        rows = [{"x": float(n), "y": n % 7 / 3 + 1} for n in range(_REHEARSED_ROWS)]
        with suppress(Interrupted):
            train_table(rows, {"target": "y"}, should_stop=after_a_step, clock=clock)
        clock.end()

    def train(
        self,
        job: Job,
        serving: int | None,
        report: Callable[[Progress], None],
        should_stop: Callable[[], bool],
        clock: JobClock,
    ) -> Export:
        """Trains the network of a job, from where an earlier attempt stopped."""
        spec = _spec(job)
        import_tensorflow()
        from tfbbb.tables.scan import TableScan
        from tfbbb.training import train_table

        settings = self.settings
        files, store = JobFiles(settings, job.id), open_store(settings)

        files.scratch.mkdir(parents=True, exist_ok=True)
        table = train_table(
            TableScan(
                store.dataset(dataset_name(job.dataset_sha256, job.dataset_format)),
                format=job.dataset_format,
            ),
            spec,
            directory=files.scratch,
            report=report,
            should_stop=should_stop,
            clock=clock,
            checkpoint_seconds=settings.checkpoint_seconds,
            start_from=_directory(store, spec),
            serving=_serving(store, job.name, serving),
        )
        return partial(table.export_to, lineage=_lineage(job, spec, table))


def _spec(job: Job) -> JobSpec:
    """Returns the spec of a job, which the API has validated."""
    try:
        return JobSpec.model_validate(job.spec)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise OtherVersionError(
            f"Another version of tfbbb accepted the job, whose field {field!r} the "
            f"worker of version {tfbbb.__version__} cannot read ({first['msg']}): "
            "retry the job when all have the same version."
        ) from None


def _directory(store: Store, spec: JobSpec) -> Path | None:
    """Returns the directory of the parent version, or None."""
    if spec.start_from is None:
        return None
    return store.version(spec.start_from.model, spec.start_from.version)


def _serving(store: Store, name: str, number: int | None) -> "ServingVersion | None":
    """Returns the version that serves; None if there is none, or it was deleted."""
    from tfbbb.training.serving_version import ServingVersion

    if number is None:
        return None
    try:
        return ServingVersion(store.version(name, number))
    except FileNotFoundError:
        return None


def _lineage(job: Job, spec: JobSpec, table: "TrainedTable") -> JsonObject:
    metrics = table.metrics
    return {
        "job_id": job.id,
        "created_at": timestamp(time.time()),
        "dataset_sha256": job.dataset_sha256,
        "spec": job.spec,
        "seed": spec.training.seed,
        "code_version": tfbbb.__version__,
        "metrics": dict(metrics),
        "calibration": {
            name: value
            for name, value in metrics.items()
            if name.startswith("coverage") or name.endswith("calibration_error")
        },
        "recalibration": dict(table.recalibration_choice),
        "recipe": dict(table.recipe),
        "judgement": dict(table.judgement),
    }
