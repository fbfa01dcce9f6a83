"""Predictions on their way through the model process."""

import threading
import time
import weakref
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from service.model_process.answer import (
    Arrays,
    Block,
    LoadedRequest,
    Request,
    VersionName,
    compute,
    draws_taken,
    finish,
    prepare,
    truncate,
)
from service.model_process.codecs import CODECS
from service.model_process.large_bodies import LARGE_ANSWER, LargeBodies
from service.model_process.metrics import UncertaintyMetrics
from service.model_process.registry import ModelRegistry
from service.model_process.scheduler import Batch, Portion, Scheduler, Task
from service.model_process.version import ServedVersion
from service.shared.errors import DeadlineExceeded
from service.shared.frames import Frame
from service.shared.settings import Settings
from tfbbb.export.inputs import Tensors
from tfbbb.export.manifest import Manifest

if TYPE_CHECKING:
    from tfbbb.export.exported_model import ExportedModel

# Takes what returns the frame to send, or raises the error to send.
Reply = Callable[[Callable[[], Frame]], None]

# Threads that wait for models that are loaded and for large bodies.
_WAITING_THREADS = 8
# The share of the time left that fewer draws are to take: estimates may be wrong.
_RESERVE = 0.7


class Prediction:
    """A prediction that a client waits for."""

    def __init__(self, frame: Frame, reply: Reply) -> None:
        self.frame = frame
        self.reply = reply
        self.is_cancelled = False
        self.cancel_task: Callable[[], None] | None = None

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
    """

    def __init__(
        self,
        registry: ModelRegistry,
        settings: Settings,
        uncertainty: UncertaintyMetrics,
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._uncertainty = uncertainty
        self._large_bodies = LargeBodies()
        self._waiting = ThreadPoolExecutor(_WAITING_THREADS, "waiting")
        self._computed: defaultdict[str, float] = defaultdict(float)
        self._counting = threading.Lock()
        self.scheduler: Scheduler[LoadedRequest, Arrays] = Scheduler(
            self._compute, settings.max_queue_seconds, work_done=_work_done
        )
        self.scheduler.start(settings.threads)

    def close(self) -> None:
        """Ends the processes that read large bodies."""
        self._large_bodies.close()

    def start(self, prediction: Prediction) -> None:
        """Starts a prediction, which replies from another thread, or at once."""
        header = prediction.frame.header
        version = self._registry.loaded(header["name"], header["version"])
        if prediction.is_large or version is None:
            self._waiting.submit(self._advance, prediction, None)
        else:
            self._advance(prediction, version)

    def seconds_computed(self) -> dict[str, float]:
        """Returns how long each model has computed since the process started."""
        with self._counting:
            return dict(self._computed)

    def _compute(self, batch: Batch[LoadedRequest, Arrays]) -> Sequence[Arrays]:
        model = batch[0].task.subject.model
        blocks = [Block(_in_time(portion.task), portion.rows) for portion in batch]
        begin = time.perf_counter()
        try:
            return compute(model, blocks)
        finally:
            seconds = time.perf_counter() - begin
            with self._counting:
                self._computed[blocks[0].request.version.name] += seconds

    def _advance(self, prediction: Prediction, version: ServedVersion | None) -> None:
        """Reads a request and queues it; replies the error if that fails."""
        if prediction.is_cancelled:
            return
        header = prediction.frame.header
        try:
            if version is None:
                version = self._registry.version(header["name"], header["version"])
            self._queue(prediction, version)
        except Exception as error:
            prediction.fail(error)

    def _queue(self, prediction: Prediction, version: ServedVersion) -> None:
        frame, settings = prediction.frame, self._settings
        name = VersionName(version.name, version.number)
        manifest = version.manifest or version.load().manifest
        if prediction.is_large:
            frame = Frame(frame.header, bytes(frame.body))
            request = self._large_bodies.run(_read, frame, name, manifest, settings)
        else:
            request = _read(frame, name, manifest, settings)
        prediction.frame = Frame(frame.header)  # The arrays hold the table now.
        arrived = frame.header["arrived"]
        self._submit(prediction, version, version.load(), request, arrived)

    def _submit(
        self,
        prediction: Prediction,
        version: ServedVersion,
        model: "ExportedModel",
        request: Request,
        arrived: float,
    ) -> None:
        """Queues a request, with fewer draws if it would be too late and may have."""
        milliseconds = request.query.parameters.deadline_ms
        # The way back should take as long as the way here.
        way = time.monotonic() - arrived
        subject = LoadedRequest(model, request)
        task: Task[LoadedRequest, Arrays] = Task(
            subject=subject,
            key=subject.batch_key,
            rows=request.num_rows,
            work=request.work,
            deadline=arrived
            + (milliseconds or self._settings.deadline_ms) / 1000
            - way,
            waits_anew=milliseconds is None,
            speed=version.speed(request.signatures),
            finish=lambda outcome: self._finish(prediction, queued(), outcome),
            has_substitute=request.may_truncate and not request.is_truncated,
        )
        # A reference cycle would keep the model in memory.
        queued = weakref.ref(task)
        try:
            self.scheduler.submit(task)
        except DeadlineExceeded as error:
            in_time = task.speed.work_within(_RESERVE * error.seconds_left)
            shorter = truncate(request, in_time) if task.has_substitute else request
            if shorter is request:
                raise
            self._submit(prediction, version, model, shorter, arrived)
            return
        prediction.cancel_task = lambda: self._cancel(queued())
        if prediction.is_cancelled:
            self._cancel(task)

    def _cancel(self, task: Task[LoadedRequest, Arrays] | None) -> None:
        """Drops a task that is not finished."""
        if task is not None:
            self.scheduler.cancel(task)

    def _finish(
        self,
        prediction: Prediction,
        task: Task[LoadedRequest, Arrays] | None,
        outcome: Sequence[Arrays] | Exception,
    ) -> None:
        assert task is not None  # The scheduler holds it.
        request = task.subject.request
        if isinstance(outcome, Exception):
            prediction.fail(outcome)
            return
        size = sum(array.size for arrays in outcome for array in arrays.values())
        codec = prediction.frame.header["writes"]
        is_large = size > LARGE_ANSWER and CODECS[codec].writes_text

        def write() -> Frame:
            if is_large:
                small = replace(request, inputs=Tensors(), targets=None)
                frame = self._large_bodies.run(_write, small, outcome, codec)
            else:
                frame = _write(request, outcome, codec)
            for arrays in outcome:
                self._uncertainty.observe(request.version, arrays)
            log = {"version": request.version.number, "rows": request.num_rows}
            told = {"log": log, "faults": [*request.faults]}
            return Frame(frame.header | told, frame.body)

        def write_and_reply() -> None:
            try:
                frame = write()
            except Exception as error:
                prediction.fail(error)
            else:
                prediction.reply(lambda: frame)

        if is_large:
            self._waiting.submit(write_and_reply)
        else:
            prediction.reply(write)


def _in_time(task: Task[LoadedRequest, Arrays]) -> Request:
    """Returns the request of a task, with the most draws that are in time.

    It matters where the number of draws is found by passes, of which the last two have
    as many draws as the answer.
    """
    request = task.subject.request
    parameters = request.query.parameters
    if parameters.max_standard_error is None or parameters.deadline_ms is None:
        return request
    seconds = _RESERVE * (task.deadline - time.monotonic()) / 2
    share = task.speed.work_within(seconds) / request.work
    return replace(request, most_in_time=max(2, int(share * request.num_samples)))


def _read(
    frame: Frame, version: VersionName, manifest: Manifest, settings: Settings
) -> Request:
    """Reads a request."""
    query = CODECS[frame.header["reads"]].read(frame.body, frame.header["options"])
    return prepare(version, manifest, query, settings)


def _write(request: Request, blocks: Sequence[Arrays], codec: str) -> Frame:
    return CODECS[codec].write(finish(request, blocks))


def _share_of_draws(request: Request, blocks: Sequence[Arrays]) -> float:
    """Returns the draws that were taken, as a share of those that were expected.

    A request with `max_standard_error` may take more than it starts with.
    """
    return (draws_taken(blocks) or request.num_samples) / request.num_samples


def _work_done(portion: Portion[LoadedRequest, Arrays], result: Arrays) -> float:
    return portion.work * _share_of_draws(portion.task.subject.request, [result])
