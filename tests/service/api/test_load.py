"""Predictions under load: batches, deadlines, large bodies and clients that hang up."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from service.shared.settings import Settings
from tests.service.serving import ADMIN_KEY, ask, serving, wait_until_ready
from tfbbb.export.exported_model import ExportedModel


@pytest.fixture
def slow(registry_root, monkeypatch):
    """A registry whose models take a second for each prediction."""
    predict = ExportedModel.predict

    def predict_slowly(*arguments, **options):
        time.sleep(1.0)
        return predict(*arguments, **options)

    monkeypatch.setattr(ExportedModel, "predict", predict_slowly)
    return registry_root


def test_deadline_is_kept_whatever_is_being_computed(slow):
    settings = Settings(models=slow, threads=1)
    body = {"instances": [[1, 2, 3]]}
    hurried = body | {"parameters": {"deadline_ms": 100, "num_samples": 2}}

    def seconds(client):
        begin = time.monotonic()
        response = ask(client, "diabetes", hurried)
        assert response.status_code == 503, response.text
        assert response.json()["code"] == "deadline_exceeded"
        return time.monotonic() - begin

    with serving(settings) as client, ThreadPoolExecutor(1) as executor:
        wait_until_ready(client)
        assert seconds(client) < 0.6  # It is computed itself.
        patient = executor.submit(ask, client, "diabetes", body)
        time.sleep(0.2)
        assert seconds(client) < 0.6  # Others are before it.
        assert patient.result().status_code == 200


def connected(client):
    port = client.base_url.port
    return socket.create_connection((client.base_url.host, port))


def request_head(length):
    return (
        "POST /v1/models/diabetes:predict HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {ADMIN_KEY}\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def test_what_waits_over_the_limit_is_refused_and_nothing_else(slow):
    settings = Settings(models=slow, max_waiting_requests=1)
    body = {"instances": [[1, 2, 3]]}
    with serving(settings) as client, ThreadPoolExecutor(1) as executor:
        wait_until_ready(client)
        first = executor.submit(ask, client, "diabetes", body)
        time.sleep(0.3)
        refused = ask(client, "diabetes", "no JSON, which is not read")
        assert refused.status_code == 503
        assert refused.headers["Retry-After"] == "1"
        assert refused.headers["X-Request-Id"]
        assert "1 predictions are waiting" in refused.json()["error"]
        assert client.get("/v1/models/diabetes").status_code == 200
        assert first.result().status_code == 200
        # One without a key, and one whose client hangs up, make room for others.
        denied = client.post(
            "/v1/models/diabetes:predict", headers={"Authorization": "x"}
        )
        assert denied.status_code == 401
        with connected(client) as connection:
            connection.sendall(request_head(9))
            time.sleep(0.3)
            assert ask(client, "diabetes", body).status_code == 503
        time.sleep(0.3)
        assert ask(client, "diabetes", body).status_code == 200
