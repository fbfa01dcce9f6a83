"""Both sides of the socket, with an echo in the place of the models."""

import asyncio
import threading
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from service.api.models.client import ModelsClient
from service.api.models.homes import Homes
from service.api.models.host import ModelHost
from service.model_process.predictions import Prediction
from service.model_process.worker import listen, serve
from service.shared import errors
from service.shared.errors import Overloaded, ServiceError
from service.shared.frames import Frame
from service.shared.settings import Settings

ERRORS = {
    error.__name__: error
    for error in vars(errors).values()
    if isinstance(error, type) and issubclass(error, ServiceError)
}


class Echo:
    """Operations that answer with the body of the question, once they may."""

    def __init__(self) -> None:
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.asked: list[str] = []
        self.started: list[Prediction] = []
        self.predictions = self

    def start(self, prediction: Prediction) -> None:
        self.asked.append(prediction.frame.header["name"])
        self.started.append(prediction)
        threading.Thread(target=self._reply, args=(prediction,)).start()

    def answer(self, question: Frame) -> Frame:
        raise AssertionError("only predictions are asked")

    def _reply(self, prediction: Prediction) -> None:
        self.may_answer.wait()
        prediction.reply(lambda: self._answer(prediction.frame))

    def _answer(self, question: Frame) -> Frame:
        name = question.header["name"]
        if name in ERRORS:
            raise ERRORS[name](f"This is {name}.")
        if name == "defective":
            raise ZeroDivisionError
        return Frame({"log": {}}, question.body)


def client_of(socket: Path, **settings: Any) -> ModelsClient:
    """A client of one process."""
    chosen = Settings(**settings)
    return ModelsClient(Homes([ModelHost(socket)], chosen), chosen)


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def client(echo: Echo, tmp_path: Path) -> ModelsClient:
    listener = listen(tmp_path / "socket")
    serving = threading.Thread(target=serve, args=(listener, echo), daemon=True)
    serving.start()
    return client_of(tmp_path / "socket")


async def predict(
    client: ModelsClient, name: str, version: int | None, body: bytes
) -> Any:
    codecs: Any = {"reads": "json", "writes": "json", "options": {}}
    frame = await client.predict(name, version, body, time.monotonic(), **codecs)
    return frame.body


def run(client: ModelsClient, questions: Coroutine[Any, Any, None]) -> None:
    async def closing() -> None:
        try:
            await asyncio.wait_for(questions, 30)
        finally:
            await client.close()

    asyncio.run(closing())


async def until_asked(echo: Echo, count: int) -> None:
    while len(echo.asked) < count:
        await asyncio.sleep(0.001)


def test_every_error_crosses_the_socket(client: ModelsClient) -> None:
    async def questions() -> None:
        for name in ERRORS.keys() - {"ServiceError"}:
            with pytest.raises(ServiceError, match=f"This is {name}") as caught:
                await predict(client, name, None, b"")
            assert type(caught.value) is ERRORS[name]

    run(client, questions())


def test_a_defect_of_the_model_process_is_not_the_clients(client: ModelsClient) -> None:
    async def questions() -> None:
        with pytest.raises(RuntimeError, match="failed at predict; see its log"):
            await predict(client, "defective", None, b"")
        assert await predict(client, "a", None, b"still there") == b"still there"

    run(client, questions())


def test_cancelled_request_frees_its_work(client: ModelsClient, echo: Echo) -> None:
    async def questions() -> None:
        echo.may_answer.clear()
        waiting = asyncio.create_task(predict(client, "given up", 1, b""))
        await until_asked(echo, 1)
        waiting.cancel()
        while not echo.started[0].is_cancelled:
            await asyncio.sleep(0.001)
        echo.may_answer.set()

    run(client, questions())


def test_more_waiting_predictions_than_the_limit_are_refused(tmp_path: Path) -> None:
    client = client_of(tmp_path / "nothing", max_waiting_requests=2)
    with (
        client.admit(10),
        client.admit(10),
        pytest.raises(Overloaded, match="2 predictions are waiting"),
        client.admit(10),
    ):
        pass
    with client.admit(10):
        pass
