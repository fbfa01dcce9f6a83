"""Both sides of the socket, with an echo in the place of the models."""

import asyncio
import socket
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from service.api.models.client import ModelsClient
from service.model_process.worker import Worker
from service.shared import errors
from service.shared.errors import ServiceError, Unavailable
from service.shared.frames import Frame

THREADS = 2
ERRORS = {
    error.__name__: error
    for error in vars(errors).values()
    if isinstance(error, type) and issubclass(error, ServiceError)
}


class Echo:
    """Answers with the body of the question, once it is let."""

    def __init__(self) -> None:
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.asked: list[str] = []
        self._lock = threading.Lock()
        self._busy = self.most_busy = 0

    def __call__(self, question: Frame) -> Frame:
        name = question.header["name"]
        with self._lock:
            self.asked.append(name)
            self._busy += 1
            self.most_busy = max(self.most_busy, self._busy)
        self.may_answer.wait()
        with self._lock:
            self._busy -= 1
        if name in ERRORS:
            raise ERRORS[name](f"This is {name}.")
        if name == "defective":
            raise ZeroDivisionError
        return Frame({}, question.body)


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def client(echo: Echo, tmp_path: Path) -> ModelsClient:
    listener = Worker.listen(tmp_path / "socket")
    worker = Worker(echo, THREADS)
    threading.Thread(target=worker.serve, args=(listener,), daemon=True).start()
    return ModelsClient(tmp_path / "socket", THREADS)


def run(client: ModelsClient, questions: Coroutine[Any, Any, None]) -> None:
    async def closing() -> None:
        try:
            await asyncio.wait_for(questions, 30)
        finally:
            client.close()

    asyncio.run(closing())


async def until_asked(echo: Echo, count: int) -> None:
    while len(echo.asked) < count:
        await asyncio.sleep(0.001)


def test_every_question_gets_its_own_answer(client: ModelsClient, echo: Echo) -> None:
    async def questions() -> None:
        bodies = [bytes([i]) * (i * 10_000) for i in range(50)]
        answers = await asyncio.gather(
            *(client.predict("a", 1, body) for body in bodies)
        )
        assert [answer.body for answer in answers] == bodies

    run(client, questions())
    assert echo.most_busy <= THREADS


@pytest.mark.parametrize("name", sorted(ERRORS.keys() - {"ServiceError"}))
def test_every_error_crosses_the_socket(client: ModelsClient, name: str) -> None:
    async def questions() -> None:
        with pytest.raises(ServiceError, match=f"This is {name}") as caught:
            await client.predict(name, None, b"")
        assert type(caught.value) is ERRORS[name]

    run(client, questions())


def test_a_defect_of_the_model_process_is_not_the_clients(client: ModelsClient) -> None:
    async def questions() -> None:
        with pytest.raises(RuntimeError, match="failed at predict; see its log"):
            await client.predict("defective", None, b"")
        assert (await client.predict("a", None, b"still there")).body == b"still there"

    run(client, questions())


def test_a_question_that_is_given_up_leaves_nobody_its_answer(
    client: ModelsClient, echo: Echo
) -> None:
    async def questions() -> None:
        echo.may_answer.clear()
        given_up = asyncio.create_task(client.predict("a", 1, b"old"))
        await until_asked(echo, 1)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        echo.may_answer.set()
        assert (await client.predict("b", 1, b"new")).body == b"new"

    run(client, questions())


def test_request_cancelled_while_it_waits_is_not_computed(
    client: ModelsClient, echo: Echo
) -> None:
    async def questions() -> None:
        echo.may_answer.clear()
        computed = [
            asyncio.create_task(client.predict("computed", 1, b""))
            for _ in range(THREADS)
        ]
        await until_asked(echo, THREADS)
        waiting = asyncio.create_task(client.predict("given up", 1, b""))
        # Its question is on its way to the worker, or there.
        for _ in range(10):
            await asyncio.sleep(0.001)
        waiting.cancel()
        await asyncio.wait([waiting])
        # The loop hangs up on its next round.
        await asyncio.sleep(0.01)
        echo.may_answer.set()
        await asyncio.gather(*computed)
        await client.predict("last", 1, b"")

    run(client, questions())
    assert echo.asked == ["computed"] * THREADS + ["last"]


def test_without_a_process_the_answer_is_unavailable_at_once(tmp_path: Path) -> None:
    client = ModelsClient(tmp_path / "nothing", THREADS)

    async def questions() -> None:
        with pytest.raises(Unavailable, match="not running yet"):
            await client.predict("a", 1, b"")

    run(client, questions())


def test_process_that_ends_fails_only_the_request_it_answers(
    tmp_path: Path, echo: Echo
) -> None:
    path = tmp_path / "socket"
    client = ModelsClient(path, THREADS)

    def die_when_asked(listener: socket.socket) -> None:
        with listener, listener.accept()[0] as connection:
            connection.recv(1)

    async def questions() -> None:
        listener = Worker.listen(path)
        threading.Thread(target=die_when_asked, args=(listener,)).start()
        with pytest.raises(Unavailable, match="ended during the request"):
            await client.predict("a", 1, b"x")
        worker = threading.Thread(
            target=Worker(echo, THREADS).serve,
            args=(Worker.listen(path),),
            daemon=True,
        )
        worker.start()
        assert (await client.predict("a", 1, b"x")).body == b"x"

    run(client, questions())
