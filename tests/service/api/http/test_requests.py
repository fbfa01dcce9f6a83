"""Ids of requests, and the lines of the access log."""

import asyncio
import logging

import httpx
import pytest
from fastapi import FastAPI, HTTPException
from prometheus_client import CollectorRegistry

from service.api.http.errors import answer_errors_in_one_shape
from service.api.http.requests import HEADER, Requests, add_to_log, logger
from tests.waiting import wait_until


def app():
    made = FastAPI()

    @made.get("/rows")
    async def rows():
        add_to_log(model="houses", version=2, rows=3)

    @made.get("/health/{part}")
    async def health(part):
        if part == "lost":
            raise HTTPException(503)

    made.add_middleware(Requests, registry=CollectorRegistry())
    answer_errors_in_one_shape(made)
    return made


def get(path, **headers):
    async def request():
        transport = httpx.ASGITransport(app(), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as made:
            return await made.get(path, headers=headers)

    return asyncio.run(request())


@pytest.fixture
def lines(caplog, monkeypatch):
    monkeypatch.setattr(logger, "propagate", True)
    caplog.set_level(logging.INFO, logger.name)
    return lambda: [r.fields for r in caplog.records if r.name == logger.name]


def test_sane_id_is_kept():
    response = get("/rows", **{HEADER: "abc-1.2_3"})
    assert response.headers[HEADER] == "abc-1.2_3"


@pytest.mark.parametrize("given", ["", "a b", "x" * 129])
def test_other_ids_are_replaced(given):
    ids = {get("/rows", **{HEADER: given}).headers[HEADER] for _ in range(2)}
    assert len(ids) == 2
    assert all(len(made) == 24 for made in ids)


def test_line_has_the_request_but_no_query(lines):
    get("/rows?key=secret", **{HEADER: "abc"})
    (line,) = lines()
    assert line.pop("duration_ms") > 0
    assert line.pop("time").endswith("Z")
    assert line == {
        "method": "GET",
        "path": "/rows",
        "status": 200,
        "key": None,
        "request_id": "abc",
        "model": "houses",
        "version": 2,
        "rows": 3,
    }


def test_probes_are_logged_only_if_they_fail(lines):
    for part in ("live", "lost", "ready"):
        get(f"/health/{part}")
    assert [line["path"] for line in lines()] == ["/health/lost"]


def test_prediction_is_logged_with_version_rows_and_key(client, lines):
    body = {"instances": [[1.0, 2.0, 3.0]] * 2}
    response = client.post("/v1/models/diabetes:predict", json=body)
    client.get("/no/such")
    # A request is logged when its response is sent.
    wait_until(lambda: len(lines()) == 2)
    first, second = lines()
    assert response.headers[HEADER] == first["request_id"]
    assert (first["model"], first["version"], first["rows"]) == ("diabetes", 2, 2)
    assert first["key"] == second["key"]
    assert first["key"]
    assert second["status"] == 404
