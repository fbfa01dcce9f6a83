"""The operations that the API can request."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import asdict

import orjson
import psutil
from prometheus_client import (
    CollectorRegistry,
    Gauge,
    ProcessCollector,
    generate_latest,
)
from pydantic import BaseModel

from service.model_process.descriptions import model_status, model_summary
from service.model_process.feedback import score_feedback
from service.model_process.metrics import LoadedMetrics, UncertaintyMetrics
from service.model_process.predictions import Predictions
from service.model_process.registry import ModelRegistry
from service.model_process.version import ServedVersion, importing
from service.shared.errors import Unavailable
from service.shared.frames import Frame
from service.shared.json_types import JsonObject
from service.shared.model_messages import (
    DescribedVersion,
    HostReport,
    Metadata,
    ModelList,
)
from service.shared.settings import Settings


class Operations:
    """The operations of the model process.

    Attributes:
        predictions: The operation that answers later.
    """

    def __init__(
        self,
        registry: ModelRegistry,
        settings: Settings,
    ) -> None:
        self._registry = registry
        self._settings = settings
        uncertainty = UncertaintyMetrics(registry)
        self.predictions = Predictions(registry, settings, uncertainty)
        self._figures = CollectorRegistry()
        self._figures.register(uncertainty)
        self._figures.register(LoadedMetrics(registry))
        waiting = Gauge(
            "tfbbb_waiting_predictions",
            "Predictions that wait for a computing thread.",
            registry=self._figures,
        )
        waiting.set_function(self.predictions.scheduler.num_waiting)
        ProcessCollector("tfbbb_models", registry=self._figures)
        self._by_name: dict[str, Callable[..., Frame]] = {
            "heartbeat": self._heartbeat,
            "keep": self._keep,
            "score": self._score,
            "models": self._models,
            "model": self._model,
            "version": self._version,
            "metadata": self._metadata,
            "load": self._load,
            "load_newest": self._load_newest,
            "rescan": self._rescan,
            "check_ready": self._check_ready,
            "metrics": self._metrics,
        }

    def answer(self, request: Frame) -> Frame:
        """Runs the operation that the header of a request names."""
        arguments: JsonObject = dict(request.header)
        # The connection logs it if the operation fails.
        for name in ("id", "request_id"):
            arguments.pop(name, None)
        operation = self._by_name[arguments.pop("operation")]
        return operation(request.body, **arguments)

    def _heartbeat(self, body: bytes | bytearray) -> Frame:
        return Frame({"is_importing": importing.is_set()})

    def _keep(self, body: bytes | bytearray, names: Sequence[str] | None) -> Frame:
        """Reports the state of the process, and makes it the home of some models.

        The API processes that do not assign homes name none.
        """
        if names is not None:
            self._registry.keep(names)
        report = HostReport(
            is_starting=not self._registry.has_refreshed,
            known=self._registry.names(),
            settled=sorted(self._registry.settled),
            computed=self.predictions.seconds_computed(),
            resident_bytes=psutil.Process().memory_info().rss,
            is_idle=self.predictions.scheduler.is_idle(),
        )
        return _json(report)

    def _score(self, body: bytes | bytearray, name: str, version: int | None) -> Frame:
        request, scores = score_feedback(
            body, self._registry.version(name, version), self._settings
        )
        number, num_rows = request.version.number, request.num_rows
        scored = {"version": number, "num_rows": num_rows, "scores": scores}
        content = orjson.dumps(scored, option=orjson.OPT_SERIALIZE_NUMPY)
        return Frame({"log": {"version": number, "rows": num_rows}}, content)

    def _models(self, body: bytes | bytearray) -> Frame:
        self._registry.scan()
        catalog = self._registry.catalog()
        return _json(
            ModelList(
                models=[
                    model_summary(name, versions, self._registry.latest(name))
                    for name, versions in catalog.items()
                ]
            )
        )

    def _model(self, body: bytes | bytearray, name: str) -> Frame:
        self._registry.scan()
        return self._status(name, self._registry.versions(name))

    def _version(
        self, body: bytes | bytearray, name: str, version: int | None
    ) -> Frame:
        chosen = self._registry.version(name, version)
        with contextlib.suppress(Unavailable):
            chosen.adopt()  # If that fails now, the next refresh retries.
        return self._status(name, [chosen])

    def _metadata(
        self, body: bytes | bytearray, name: str, version: int | None
    ) -> Frame:
        chosen = self._registry.version(name, version)
        return _json(
            Metadata(
                model_spec=DescribedVersion(
                    name=chosen.name, signature_name="", version=str(chosen.number)
                ),
                metadata={
                    "signature_def": {"signature_def": chosen.signatures()},
                    "manifest": asdict(chosen.load().manifest),
                },
            )
        )

    def _load(self, body: bytes | bytearray, name: str, version: int) -> Frame:
        chosen = self._registry.version(name, version)
        try:
            chosen.load()
        except Unavailable:
            if not chosen.is_broken:
                raise
            return Frame({"problem": str(chosen.problem)})
        return Frame({"problem": None})

    def _load_newest(self, body: bytes | bytearray, name: str) -> Frame:
        self._registry.check_ready()
        self._registry.load_newest(name)
        return Frame({})

    def _rescan(self, body: bytes | bytearray) -> Frame:
        self._registry.scan()
        return Frame({})

    def _check_ready(self, body: bytes | bytearray) -> Frame:
        self._registry.check_ready()
        return Frame({})

    def _metrics(self, body: bytes | bytearray) -> Frame:
        return Frame({}, generate_latest(self._figures))

    def _status(self, name: str, versions: Sequence[ServedVersion]) -> Frame:
        return _json(model_status(name, versions, self._registry.latest(name)))


def _json(answer: BaseModel) -> Frame:
    return Frame({}, orjson.dumps(answer.model_dump(mode="json")))
