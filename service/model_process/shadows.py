"""Predicts the rows of answered requests by the shadow of their label."""

import logging
import math
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from service.model_process.answer import (
    Arrays,
    LoadedRequest,
    Request,
    VersionName,
    finish,
    prepare,
)
from service.model_process.codecs import CODECS
from service.model_process.large_bodies import LargeBodies
from service.model_process.query import Query
from service.model_process.recorder import PredictionRecorder
from service.model_process.registry import ModelRegistry
from service.model_process.scheduler import Scheduler, Task
from service.model_process.shadow_metrics import (
    COMPUTED,
    DROPPED,
    FAILED,
    ShadowMetrics,
)
from service.shared.errors import ServiceError
from service.shared.frames import Frame
from service.shared.prediction_parameters import SIGNATURES, Parameters
from service.shared.route import Route
from service.shared.settings import Settings
from tfbbb.export.manifest import InputError, Manifest

logger = logging.getLogger(__name__)

# What waits for spare time: more is dropped.
_MOST_WAITING = 64
_MOST_BYTES = 2**25


@dataclass(frozen=True)
class Answered:
    """A request that was answered.

    Args:
        frame: The frame of the request, with its body.
        request: What was answered.
        outcome: The arrays of the answer, of each block of rows.
        prediction_id: The id by which the rows are recorded; None if they are not.
    """

    frame: Frame
    request: Request
    outcome: Sequence[Arrays]
    prediction_id: str | None

    @property
    def shadow(self) -> VersionName:
        """The version that predicts the same rows."""
        number = Route.from_header(self.frame.header).shadow
        assert number is not None
        return VersionName(self.request.version.name, number)


class Shadows:
    """Predicts rows again, by another version, after they were answered.

    The shadow reads the body again, because its features may be others. It predicts the
    moments while no request waits for its turn; while there is no such time, and a few
    requests wait for it already, others are dropped.
    """

    def __init__(
        self,
        registry: ModelRegistry,
        settings: Settings,
        scheduler: Scheduler[LoadedRequest, Arrays],
        large_bodies: LargeBodies,
        recorder: PredictionRecorder,
        metrics: ShadowMetrics,
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._scheduler = scheduler
        self._large_bodies = large_bodies
        self._recorder = recorder
        self._metrics = metrics
        self._executor = ThreadPoolExecutor(1, "shadows")
        self._changing = threading.Lock()
        self._num_waiting = 0
        self._bytes_waiting = 0

    def start(self, answered: Answered) -> None:
        """Queues the rows of a request, or drops them; never waits."""
        size = len(answered.frame.body)
        with self._changing:
            drops = self._num_waiting >= _MOST_WAITING or (
                self._num_waiting and self._bytes_waiting + size > _MOST_BYTES
            )
            if not drops:
                self._num_waiting += 1
                self._bytes_waiting += size
        if drops:
            self._metrics.count(answered.shadow, DROPPED)
        else:
            self._executor.submit(self._queue, answered)

    def _queue(self, answered: Answered) -> None:
        try:
            self._scheduler.submit_spare(self._task(answered))
        except Exception as error:
            self._fail(answered, error)

    def _task(self, answered: Answered) -> Task[LoadedRequest, Arrays]:
        name, frame = answered.shadow, answered.frame
        version = self._registry.version(*name)
        model = version.load()
        codec = CODECS[frame.header["reads"]]
        given = (frame, name, model.manifest, self._settings)
        if codec.is_large(frame.body, frame.header["options"]):
            request = self._large_bodies.run(_read, *given)
        else:
            request = _read(*given)

        def finish_task(outcome: Sequence[Arrays] | Exception) -> None:
            self._executor.submit(self._finish, answered, request, outcome)

        subject = LoadedRequest(model, request)
        return Task(
            subject=subject,
            key=subject.batch_key,
            rows=request.num_rows,
            work=request.work,
            deadline=math.inf,
            waits_anew=False,
            speed=version.speed(request.signatures),
            finish=finish_task,
            is_spare=True,
        )

    def _finish(
        self,
        answered: Answered,
        request: Request,
        outcome: Sequence[Arrays] | Exception,
    ) -> None:
        try:
            if isinstance(outcome, Exception):
                raise outcome
            finish(request, outcome)  # Only rows that have an answer are recorded.
            if answered.prediction_id is not None:
                self._recorder.record(request, shadow_of=answered.prediction_id)
            if request.manifest.classes == answered.request.manifest.classes:
                self._metrics.compare(
                    answered.shadow, _joined(answered.outcome), _joined(outcome)
                )
        except Exception as error:
            self._fail(answered, error)
        else:
            self._metrics.count(answered.shadow, COMPUTED)
            self._leave(answered)

    def _fail(self, answered: Answered, error: Exception) -> None:
        name, number = answered.shadow
        if isinstance(error, ServiceError | InputError):
            logger.info("the shadow %d of the model %r failed: %s", number, name, error)
        else:
            logger.error(
                "the shadow %d of the model %r failed", number, name, exc_info=error
            )
        self._metrics.count(answered.shadow, FAILED)
        self._leave(answered)

    def _leave(self, answered: Answered) -> None:
        with self._changing:
            self._num_waiting -= 1
            self._bytes_waiting -= len(answered.frame.body)


def _read(
    frame: Frame, version: VersionName, manifest: Manifest, settings: Settings
) -> Request:
    """Reads the rows of a request, to predict their moments by the same draws."""
    query = CODECS[frame.header["reads"]].read(frame.body, frame.header["options"])
    given = query.parameters
    parameters = Parameters(num_samples=given.num_samples, seed=given.seed)
    moments = Query(
        query.rows, query.columns, SIGNATURES[0], parameters, None, query.fault
    )
    return prepare(version, manifest, moments, settings)


def _joined(blocks: Sequence[Arrays]) -> Arrays:
    return {
        name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]
    }
