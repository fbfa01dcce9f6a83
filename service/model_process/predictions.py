"""Predictions on their way through the model process."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from service.model_process.abstention import abstain, check_abstention
from service.model_process.answer import (
    Arrays,
    Block,
    Request,
    VersionName,
    compute,
    finish,
    prepare,
)
from service.model_process.codecs import CODECS
from service.model_process.large_bodies import LARGE_ANSWER, LargeBodies
from service.model_process.metrics import UncertaintyMetrics
from service.model_process.recorder import PredictionRecorder
from service.model_process.registry import ModelRegistry
from service.model_process.scheduler import Batch, Scheduler, Task
from service.model_process.shadow_metrics import ShadowMetrics
from service.model_process.shadows import Answered, Shadows
from service.model_process.version import ServedVersion
from service.shared.frames import Frame
from service.shared.route import Route
from service.shared.settings import Settings
from tfbbb.export.inputs import Tensors
from tfbbb.export.manifest import Manifest

# Takes what returns the frame to send, or raises the error to send.
Reply = Callable[[Callable[[], Frame]], None]

# Threads that wait for models that are loaded and for large bodies.
_WAITING_THREADS = 8


class Prediction:
    """A prediction that a client waits for.

    Args:
        frame: The request: the `name` of a model, the fields of a `Route`, the time
            `arrived`, by the clock `time.monotonic` of the machine, and the names of
            the codecs, `reads` with its `options` and `writes`.
        reply: Takes a function that returns the response, to call on the thread that
            sends it.
    """

    def __init__(self, frame: Frame, reply: Reply) -> None:
        self.frame = frame
        self.reply = reply
        self.route = Route.from_header(frame.header)
        self.is_cancelled = False
        self.cancel_task: Callable[[], None] | None = None
        # Called when the response is sent.
        self.when_sent: Callable[[], None] | None = None

    @property
    def is_large(self) -> bool:
        """Whether another process should read the body."""
        header = self.frame.header
        return CODECS[header["reads"]].is_large(self.frame.body, header["options"])

    def cancel(self) -> None:
        """Frees the work: the client has hung up."""
        self.is_cancelled = True
        if self.cancel_task is not None:
            self.cancel_task()

    def fail(self, error: Exception) -> None:
        """Replies an error."""

        def raise_error() -> Frame:
            raise error

        self.reply(raise_error)


class Predictions:
    """Reads, schedules, computes and writes predictions.

    Small requests are read on the thread of their connection. Large bodies, and models
    that are not loaded yet, are waited for by other threads.

    Args:
        registry: The models.
        settings: Limits and defaults.
        uncertainty: Counts the uncertainty of the answers.
        recorder: Records predictions for feedback.
        shadows: Counts the predictions of shadows.
    """

    def __init__(
        self,
        registry: ModelRegistry,
        settings: Settings,
        uncertainty: UncertaintyMetrics,
        recorder: PredictionRecorder,
        shadows: ShadowMetrics,
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._uncertainty = uncertainty
        self._recorder = recorder
        self._large_bodies = LargeBodies()
        self._waiting = ThreadPoolExecutor(_WAITING_THREADS, "waiting")
        self.scheduler: Scheduler[Request, Arrays] = Scheduler(
            _compute, settings.max_queue_seconds
        )
        self.scheduler.start(settings.threads)
        self._shadows = Shadows(
            registry, settings, self.scheduler, self._large_bodies, recorder, shadows
        )

    def start(self, prediction: Prediction) -> None:
        """Starts a prediction, which replies from another thread, or at once."""
        name = prediction.frame.header["name"]
        numbers = prediction.route.answering
        versions = [self._registry.loaded(name, number) for number in numbers]
        if prediction.is_large or not all(versions):
            self._waiting.submit(self._advance, prediction, ())
        else:
            self._advance(prediction, [x for x in versions if x is not None])

    def _advance(
        self, prediction: Prediction, versions: Sequence[ServedVersion]
    ) -> None:
        """Reads a request and queues it; replies the error if that fails."""
        if prediction.is_cancelled:
            return
        name, numbers = prediction.frame.header["name"], prediction.route.answering
        try:
            versions = versions or [self._registry.version(name, x) for x in numbers]
            self._queue(prediction, versions)
        except Exception as error:
            prediction.fail(error)

    def _queue(self, prediction: Prediction, versions: Sequence[ServedVersion]) -> None:
        frame, is_large = prediction.frame, prediction.is_large
        candidates = {
            VersionName(x.name, x.number): x.manifest or x.load().manifest
            for x in versions
        }
        if is_large:
            frame = Frame(frame.header, bytes(frame.body))
            request = self._large_bodies.run(_read, frame, candidates, self._settings)
        else:
            request = _read(frame, candidates, self._settings)
        (version,) = (x for x in versions if x.number == request.version.number)
        model = version.load()
        prediction.frame = Frame(frame.header)  # The arrays hold the table now.
        # A shadow reads the body again, once the answer is sent.
        shadowed = None
        if prediction.route.shadow not in (None, version.number):
            shadowed = frame
        arrived = frame.header["arrived"]
        milliseconds = request.query.parameters.deadline_ms
        # The way back should take as long as the way here.
        way = time.monotonic() - arrived
        task: Task[Request, Arrays] = Task(
            subject=request,
            key=(model, request.batch_key),
            rows=request.num_rows,
            work=request.work,
            deadline=arrived
            + (milliseconds or self._settings.deadline_ms) / 1000
            - way,
            waits_anew=milliseconds is None,
            is_separable=request.is_separable,
            speed=version.speed(request.signatures),
            finish=lambda outcome: self._finish(prediction, request, shadowed, outcome),
        )
        self.scheduler.submit(task)
        prediction.cancel_task = lambda: self.scheduler.cancel(task)
        if prediction.is_cancelled:
            self.scheduler.cancel(task)

    def _finish(
        self,
        prediction: Prediction,
        request: Request,
        shadowed: Frame | None,
        outcome: Sequence[Arrays] | Exception,
    ) -> None:
        if isinstance(outcome, Exception):
            prediction.fail(outcome)
            return
        size = sum(array.size for arrays in outcome for array in arrays.values())
        codec = prediction.frame.header["writes"]
        is_large = size > LARGE_ANSWER and CODECS[codec].writes_text

        def write() -> Frame:
            prediction_id = None
            if request.query.parameters.record:
                finish(request, outcome)  # Only rows that have an answer are recorded.
                prediction_id = self._recorder.record(request)
            if is_large:
                small = replace(request, inputs=Tensors(), targets=None)
                frame = self._large_bodies.run(
                    _write, small, outcome, codec, prediction_id
                )
            else:
                frame = _write(request, outcome, codec, prediction_id)
            for arrays in outcome:
                self._uncertainty.observe(request.version, arrays)
            if shadowed is not None:
                answered = Answered(shadowed, request, outcome, prediction_id)
                prediction.when_sent = lambda: self._shadows.start(answered)
            log = {"version": request.version.number, "rows": request.num_rows}
            return Frame({**frame.header, "log": log}, frame.body)

        def write_and_reply() -> None:
            try:
                frame = write()
            except Exception as error:
                prediction.fail(error)
            else:
                prediction.reply(lambda: frame)

        if is_large or request.query.parameters.record:
            self._waiting.submit(write_and_reply)
        else:
            prediction.reply(write)


def _compute(batch: Batch[Request, Arrays]) -> Sequence[Arrays]:
    model: Any = batch[0].task.key
    return compute(
        model[0], [Block(portion.task.subject, portion.rows) for portion in batch]
    )


def _read(
    frame: Frame, candidates: Mapping[VersionName, Manifest], settings: Settings
) -> Request:
    """Reads a request, and chooses the version that answers it."""
    header = frame.header
    query = CODECS[header["reads"]].read(frame.body, header["options"])
    version, *canaries = candidates
    # Ids that the API has made are random, so they share the requests by weight.
    key = query.parameters.routing_key or header["request_id"]
    if canaries and Route.from_header(header).uses_canary(version.name, key):
        (version,) = canaries
    request = prepare(version, candidates[version], query, settings)
    check_abstention(request)
    return request


def _write(
    request: Request, blocks: Sequence[Arrays], codec: str, prediction_id: str | None
) -> Frame:
    answer = replace(finish(request, blocks), prediction_id=prediction_id)
    return CODECS[codec].write(abstain(answer))
