"""Predictions under load: batches, deadlines, large bodies and clients that hang up."""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from service.shared.settings import Settings
from tests.service.serving import ADMIN_KEY, ask, serving
from tests.waiting import wait_until
from tfbbb.export.exported_model import ExportedModel

BODY = {"instances": [[1, 2, 3]]}


class Held:
    """Models that take a fifth of a second, and predict only while they may."""

    def __init__(self, root, monkeypatch):
        self.root = root
        self.may_predict, self.predicting = threading.Event(), threading.Event()
        self.may_predict.set()
        predict = ExportedModel.predict

        def predict_if_allowed(*arguments, **options):
            # What takes less would hold up the event loop.
            time.sleep(0.2)
            self.predicting.set()
            self.may_predict.wait()
            return predict(*arguments, **options)

        monkeypatch.setattr(ExportedModel, "predict", predict_if_allowed)

    def hold(self):
        self.predicting.clear()
        self.may_predict.clear()


@pytest.fixture
def held(registry_root, monkeypatch):
    held = Held(registry_root, monkeypatch)
    yield held
    held.may_predict.set()


def test_deadline_is_kept_whatever_is_being_computed(held):
    settings = Settings(models=held.root, threads=1)
    hurried = BODY | {"parameters": {"deadline_ms": 100, "num_samples": 2}}
    with serving(settings) as client, ThreadPoolExecutor(1) as executor:
        held.hold()
        try:
            # It is computed itself; then others are before it.
            for _ in range(2):
                response = ask(client, "diabetes", hurried)
                assert response.status_code == 503, response.text
                assert response.json()["code"] == "deadline_exceeded"
            patient = executor.submit(ask, client, "diabetes", BODY)
        finally:
            held.may_predict.set()
        assert patient.result().status_code == 200


HEAD = (
    "POST /v1/models/diabetes:predict HTTP/1.1\r\nHost: localhost\r\n"
    f"Authorization: Bearer {ADMIN_KEY}\r\nContent-Length: 9\r\n"
    "Expect: 100-continue\r\n\r\n"
)


def test_what_waits_over_the_limit_is_refused_and_nothing_else(held):
    settings = Settings(models=held.root, max_waiting_requests=1)
    with serving(settings) as client, ThreadPoolExecutor(1) as executor:
        held.hold()
        try:
            first = executor.submit(ask, client, "diabetes", BODY)
            assert held.predicting.wait(60)
            refused = ask(client, "diabetes", "no JSON, which is not read")
            assert refused.status_code == 503
            assert refused.headers["Retry-After"] == "1"
            assert refused.headers["X-Request-Id"]
            assert "1 predictions are waiting" in refused.json()["error"]
            assert client.get("/v1/models/diabetes").status_code == 200
        finally:
            held.may_predict.set()
        assert first.result().status_code == 200
        # One without a key, and one whose client hangs up, make room for others.
        denied = client.post(
            "/v1/models/diabetes:predict", headers={"Authorization": "x"}
        )
        assert denied.status_code == 401

        def status():
            return ask(client, "diabetes", BODY).status_code

        address = client.base_url.host, client.base_url.port
        with socket.create_connection(address) as connection:
            connection.sendall(HEAD.encode())
            assert connection.recv(1000).startswith(b"HTTP/1.1 100 Continue")
            assert status() == 503
        wait_until(lambda: status() == 200)
