"""The models of an API process: loads them, predicts with them, describes them."""

import asyncio
import contextlib
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from prometheus_client import CollectorRegistry

from service.predicting import loaded_model
from service.predicting.answer import (
    Arrays,
    Block,
    Request,
    VersionName,
    compute,
    finish,
    prepare,
)
from service.predicting.batcher import Batcher, Portion, Task
from service.predicting.codecs import CODECS
from service.predicting.codecs.codec import Body, Written
from service.predicting.descriptions import (
    DescribedVersion,
    Metadata,
    ModelList,
    ModelStatus,
    model_status,
    model_summary,
)
from service.predicting.loaded_model import ChildProcess, LoadedModel
from service.predicting.metrics import ProcessMetrics, UncertaintyMetrics
from service.predicting.refreshes import Refreshes
from service.predicting.registry import ModelRegistry
from service.predicting.scores import ScoredRows, score_feedback
from service.predicting.version import ServedVersion
from service.shared.errors import InvalidRequest, Unavailable
from service.shared.settings import Settings
from tfbbb.export.inputs import Tensors
from tfbbb.export.manifest import InputError, Manifest

logger = logging.getLogger(__name__)

T = TypeVar("T")

# Threads that wait for models that are loaded, and for large bodies.
_WAITING_THREADS = 8
# Answers with more numbers are worth the way to another process.
_LARGE_ANSWER = 2**14
# Small predictions go first where both want a core.
_NICENESS = 5
_SECONDS_BETWEEN_LOOKS = 0.05


class Prediction(NamedTuple):
    """A request with the model that answers it, which may be unloaded meanwhile."""

    model: LoadedModel
    request: Request
    codec: str


class Predicted(NamedTuple):
    """An answer, and the request as it was understood."""

    answer: Written
    request: Request


class Models:
    """The models of this process; a child process reads and writes large bodies."""

    def __init__(
        self,
        registry: ModelRegistry,
        settings: Settings,
        metrics: CollectorRegistry,
        refreshes: Refreshes,
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._uncertainty = UncertaintyMetrics(metrics)
        self._metrics = ProcessMetrics(metrics)
        self._refreshes = refreshes
        self._stopping = threading.Event()
        self._threads = ThreadPoolExecutor(_WAITING_THREADS, "waiting")
        self._reader = ChildProcess("The process that reads large bodies", _NICENESS)
        # Whether a request is taken is decided here.
        self.batcher = Batcher(
            self._compute, _finish, settings, self._metrics.refused.inc
        )

    def start(self) -> None:
        """Begins to compute, and to follow the models directory."""
        self.batcher.start()
        threading.Thread(target=self._watch, name="registry", daemon=True).start()

    def close(self) -> None:
        """Ends the child processes, and stops following the directory."""
        self._stopping.set()
        self._reader.close()
        loaded_model.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def knows(self, name: str) -> bool:
        """Whether there is a model, as far as this process knows."""
        return self._registry.knows(name)

    async def predict(
        self,
        name: str,
        version: int | None,
        body: Body,
        arrived: float,
        *,
        reads: str = "json",
        writes: str = "json",
        options: Mapping[str, object] = MappingProxyType({}),
    ) -> Predicted:
        """Predicts with a version of a model; if cancelled, frees the work."""
        with _input_errors():
            ready = self._registry.loaded(name, version)
            codec = CODECS[reads]
            is_large = codec.text_bytes(body, options) > codec.most
            if ready is None or is_large:
                served, request = await self._in_thread(
                    self._read_slowly, name, version, body, reads, options, is_large
                )
            else:
                served = ready
                request = _read(body, reads, options, *self._understood(served))
            milliseconds = request.query.parameters.deadline_ms
            seconds = (milliseconds or self._settings.deadline_ms) / 1e3
            prediction = Prediction(served.load(), request, writes)
            key = request.batch_key
            found = await self.batcher.answer(
                Task(
                    subject=prediction,
                    key=None if key is None else (prediction.model, key),
                    rows=request.num_rows,
                    work=request.work,
                    deadline=arrived + seconds,
                    pace=served.pace(request.kind),
                )
            )
            if not isinstance(found, Written):
                small = replace(request, inputs=Tensors(), targets=None)
                found = await self._in_thread(
                    self._reader.run, _write, small, found, writes
                )
            return Predicted(found, request)

    async def score(self, name: str, version: int | None, body: Body) -> ScoredRows:
        """Scores the rows of feedback by a version."""
        with _input_errors():
            return await self._in_thread(self._score, name, version, body)

    async def models(self) -> ModelList:
        """Returns every model with the states of its versions."""

        def find() -> ModelList:
            self._registry.scan()
            catalog, latest = self._registry.catalog(), self._registry.latest
            found = [model_summary(x, catalog[x], latest(x)) for x in catalog]
            return ModelList(models=found)

        return await self._in_thread(find)

    async def model(self, name: str) -> ModelStatus:
        """Returns the states of all versions of a model."""

        def find() -> ModelStatus:
            self._registry.scan()
            return self._status(name, self._registry.versions(name))

        return await self._in_thread(find)

    async def version(self, name: str, version: int | None) -> ModelStatus:
        """Returns the state of one version, by default `latest`."""

        def find() -> ModelStatus:
            chosen = self._registry.version(name, version)
            with contextlib.suppress(Unavailable):
                chosen.adopt()  # If that fails now, the next refresh retries.
            return self._status(name, [chosen])

        return await self._in_thread(find)

    async def metadata(self, name: str, version: int | None) -> Metadata:
        """Returns signatures and manifest of a version."""

        def find() -> Metadata:
            chosen = self._registry.version(name, version)
            spec = {"name": name, "signature_name": "", "version": str(chosen.number)}
            metadata = {
                "signature_def": {"signature_def": chosen.signatures()},
                "manifest": json.loads(chosen.load().manifest.to_json()),
            }
            return Metadata(model_spec=DescribedVersion(**spec), metadata=metadata)

        return await self._in_thread(find)

    async def load(self, name: str, version: int) -> str | None:
        """Loads and tries a version; returns the reason if it cannot predict."""

        def load() -> str | None:
            chosen = self._registry.version(name, version)
            try:
                self._registry.load(chosen)
            except Unavailable:
                if not chosen.is_broken:
                    raise
                return str(chosen.problem)
            return None

        return await self._in_thread(load)

    async def load_newest(self, name: str) -> None:
        """Loads the newest version of a model, which becomes `latest` everywhere."""
        self._registry.check_ready()
        await self._in_thread(self._registry.load_newest, name)
        await self._refreshes.wait_for_all()

    async def rescan(self) -> None:
        """Rescans the models directory, and drops deleted versions everywhere."""
        await self._in_thread(self._registry.scan)
        await self._refreshes.wait_for_all()

    async def check_ready(self) -> None:
        """Raises `Unavailable` until every model is loaded or known to be broken."""
        await self._in_thread(self._registry.check_ready)

    def _watch(self) -> None:
        """Follows the models directory, also when another process wants it."""
        while not self._stopping.is_set():
            began = time.monotonic_ns()
            try:
                self._registry.refresh(self._stopping)
            except Exception:  # The versions stay as they are.
                logger.exception("could not read the models")
            self._metrics.observe(self.batcher.num_waiting)
            self._refreshes.note(began)
            due = time.monotonic() + self._settings.poll_seconds
            while not self._refreshes.is_wanted and time.monotonic() < due:
                if self._stopping.wait(_SECONDS_BETWEEN_LOOKS):
                    return

    async def _in_thread(self, function: Callable[..., T], *args: object) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, function, *args)

    def _read_slowly(
        self,
        name: str,
        number: int | None,
        body: Body,
        codec: str,
        options: Mapping[str, object],
        is_large: bool,
    ) -> tuple[ServedVersion, Request]:
        served = self._registry.version(name, number)
        self._registry.load(served)
        understood = self._understood(served)
        if is_large:
            arguments = bytes(body), codec, dict(options), *understood
            return served, self._reader.run(_read, *arguments)
        return served, _read(body, codec, options, *understood)

    def _understood(
        self, served: ServedVersion
    ) -> tuple[VersionName, Manifest, Settings]:
        name = VersionName(served.name, served.number)
        return name, served.manifest or served.load().manifest, self._settings

    def _compute(self, batch: Sequence[Portion]) -> Sequence[Arrays]:
        model, request, _ = batch[0].task.subject
        blocks = [Block(task.subject.request, rows) for task, rows in batch]
        found: Sequence[Arrays] = model.run(compute, blocks)
        self._uncertainty.observe(request.version, found)
        return found

    def _score(self, name: str, version: int | None, body: Body) -> ScoredRows:
        served = self._registry.version(name, version)
        self._registry.load(served)
        return score_feedback(body, served, self._settings)

    def _status(self, name: str, versions: Sequence[ServedVersion]) -> ModelStatus:
        return model_status(name, versions, self._registry.latest(name))


def _read(
    body: Body,
    codec: str,
    options: Mapping[str, object],
    version: VersionName,
    manifest: Manifest,
    settings: Settings,
) -> Request:
    """Reads a request."""
    return prepare(version, manifest, CODECS[codec].read(body, options), settings)


@contextlib.contextmanager
def _input_errors() -> Iterator[None]:
    """Reports inputs that do not fit a model as mistakes of the client."""
    try:
        yield
    except InputError as error:
        raise InvalidRequest(str(error), error.column) from None


def _finish(
    prediction: Prediction, blocks: Sequence[Arrays]
) -> Written | Sequence[Arrays]:
    """Writes an answer, unless that would hold the interpreter."""
    _, request, codec = prediction
    size = sum(array.size for arrays in blocks for array in arrays.values())
    if size > _LARGE_ANSWER and CODECS[codec].writes_text:
        return blocks
    return _write(request, blocks, codec)


def _write(request: Request, blocks: Sequence[Arrays], codec: str) -> Written:
    return CODECS[codec].write(finish(request, blocks))
