"""Sends requests to the model processes."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from service.api.http.request_log import add_to_log
from service.api.models.home_table import HomeTable
from service.api.models.host import ModelHost
from service.shared.errors import Overloaded
from service.shared.frames import Frame
from service.shared.model_messages import ModelList, ModelStatus, ModelSummary
from service.shared.settings import Settings


class ModelsClient:
    """A client of the model processes (`service.model_process`)."""

    def __init__(self, homes: HomeTable, settings: Settings) -> None:
        self._homes = homes
        self._settings = settings
        self._num_waiting = 0
        self._bytes_waiting = 0

    @contextmanager
    def admit(self, size: int) -> Iterator[None]:
        """Counts a prediction and the bytes of its body until the block ends."""
        settings = self._settings
        if self._num_waiting >= settings.max_waiting_requests:
            raise Overloaded(
                f"{self._num_waiting} predictions are waiting, the most that may "
                "(TFBBB_MAX_WAITING_REQUESTS); retry after the seconds of "
                "`Retry-After`."
            )
        # A body within the limit of bodies is taken if no other is waiting.
        if 0 < self._bytes_waiting > settings.max_waiting_bytes - size:
            raise Overloaded(
                f"Bodies of {self._bytes_waiting} bytes are waiting, and at most "
                f"{settings.max_waiting_bytes} may (TFBBB_MAX_WAITING_BYTES); retry "
                "after the seconds of `Retry-After`."
            )
        self._num_waiting += 1
        self._bytes_waiting += size
        try:
            yield
        finally:
            self._num_waiting -= 1
            self._bytes_waiting -= size

    def knows(self, name: str) -> bool:
        """Whether a process has a model, as far as this process knows."""
        return self._homes.knows(name)

    async def predict(
        self,
        name: str,
        version: int | None,
        body: bytes | bytearray,
        arrived: float,
        *,
        reads: str = "json",
        writes: str = "json",
        options: Mapping[str, object] = MappingProxyType({}),
    ) -> Frame:
        """Predicts with a version of a model; if cancelled, frees the work."""
        frame = await self._ask(
            "predict",
            body,
            name=name,
            version=version,
            arrived=arrived,
            reads=reads,
            writes=writes,
            options=dict(options),
        )
        add_to_log(model=name, **frame.header["log"])
        return frame

    async def score(
        self, name: str, version: int | None, body: bytes | bytearray
    ) -> bytes | bytearray:
        """Scores feedback by the versions that it is about."""
        frame = await self._ask("score", body, name=name, version=version)
        add_to_log(model=name, **frame.header["log"])
        return frame.body

    async def models(self) -> ModelList:
        """Returns every model with the states of its versions."""
        found: dict[str, ModelSummary] = {}
        for host, frame in await self._ask_every("models"):
            for model in ModelList.model_validate_json(frame.body).models:
                # Only a home of a model knows which of its versions are loaded.
                if model.name not in found or host in self._homes.all(model.name):
                    found[model.name] = model
        return ModelList(models=[found[name] for name in sorted(found)])

    async def model(self, name: str) -> ModelStatus:
        """Returns the states of all versions of a model."""
        frame = await self._ask("model", name=name)
        return ModelStatus.model_validate_json(frame.body)

    async def version(self, name: str, version: int | None) -> ModelStatus:
        """Returns the state of one version, by default `latest`."""
        frame = await self._ask("version", name=name, version=version)
        return ModelStatus.model_validate_json(frame.body)

    async def metadata(self, name: str, version: int | None) -> bytes | bytearray:
        """Returns signatures and manifest of a version, a `Metadata` as JSON."""
        return (await self._ask("metadata", name=name, version=version)).body

    async def load(self, name: str, version: int) -> str | None:
        """Loads and tries a version; returns the reason if it cannot predict."""
        answers = await self._ask_homes("load", name=name, version=version)
        problems = [answer.header["problem"] for answer in answers]
        return next(filter(None, problems), None)

    async def load_newest(self, name: str) -> None:
        """Loads the newest version of a model, which becomes `latest`."""
        await self._ask_homes("load_newest", name=name)

    async def rescan(self) -> None:
        """Rescans the models directory, and drops deleted versions."""
        await self._ask_every("rescan")

    async def check_ready(self) -> None:
        """Raises `Unavailable` until every model is loaded or known to be broken."""
        await self._ask_every("check_ready")
        self._homes.check_ready()

    async def metrics(self) -> Sequence[bytes | bytearray]:
        """Returns the metrics of each process, in the format of Prometheus."""
        answers = dict(await self._ask_every("metrics"))
        return [answers[h].body if h in answers else b"" for h in self._homes.hosts]

    async def close(self) -> None:
        """Closes the connections."""
        for host in self._homes.hosts:
            await host.close()

    async def _ask(
        self, operation: str, body: bytes | bytearray = b"", **arguments: Any
    ) -> Frame:
        """Asks the home of a model."""
        name = arguments["name"]
        host = self._homes.choose(name)
        frame = await host.ask(operation, body, arguments)
        self._homes.record(name, host)
        return frame

    async def _ask_homes(self, operation: str, **arguments: Any) -> Sequence[Frame]:
        """Asks every home of a model."""
        homes = self._homes.all(arguments["name"])
        return await asyncio.gather(
            *(host.ask(operation, arguments=arguments) for host in homes)
        )

    async def _ask_every(self, operation: str) -> list[tuple[ModelHost, Frame]]:
        """Asks every process; passes over those that do not run, unless none does."""
        hosts = self._homes.hosts
        running = [host for host in hosts if host.is_ready] or hosts
        outcomes = await asyncio.gather(
            *(host.ask(operation) for host in running), return_exceptions=True
        )
        answers = [
            (host, outcome)
            for host, outcome in zip(running, outcomes, strict=True)
            if isinstance(outcome, Frame)
        ]
        if answers:
            return answers
        raise next(o for o in outcomes if isinstance(o, BaseException))
