import json

import pytest

from tests.client.answering import Answer, answering
from tfbbb.client import Client, JobFailedError, UnreachableError
from tfbbb.client.event_stream import read_events

LOST = Answer(status=None)


def job(state, **fields):
    known = {"name": "houses", "progress": {}, "error": None, "version": None}
    return Answer(body={"id": "1" * 24, "state": state, **known, **fields})


def stream(*events, broken=False):
    text = "".join(
        f"event: {type_}\ndata: {json.dumps(data)}\nid: {number}\n\n"
        for number, type_, data in events
    )
    return Answer(body=f": ping\n\n{text}", broken=broken)


QUEUED = (1, "state", {"state": "queued", "attempt": 0})
EPOCH = (2, "epoch", {"epoch": 1, "epochs": 1, "nll": 0.5})
DONE = (3, "state", {"state": "succeeded", "attempt": 1, "version": 4})


def test_comments_and_events_without_data_are_skipped():
    text = ": ping\n\nid: 1\nevent: state\ndata: {}\n\nretry: 5\n\nid: 2\ndata:[]\n\n"
    lines = text.split("\n")
    assert [(e.id, e.type, e.data) for e in read_events(lines)] == [
        (1, "state", {}),
        (2, "message", []),
    ]


def test_a_broken_stream_continues_after_the_last_event():
    with (
        answering(
            job("queued"),
            stream(QUEUED, broken=True),
            LOST,
            stream(EPOCH),
            job("running"),
            LOST,
            stream(DONE),
            job("succeeded", version=4),
        ) as service,
        Client(service.url) as client,
    ):
        events = list(client.job("1" * 24).events())
    assert [event.id for event in events] == [1, 2, 3]
    asked = [r.headers.get("last-event-id") for r in service.requests]
    assert [after for after in asked if after] == ["0", "1", "1", "2", "2"]


def test_events_raise_if_the_service_stays_unreachable():
    with (
        answering(job("queued"), stream(QUEUED, broken=True), LOST) as service,
        Client(service.url) as client,
    ):
        listening = client.job("1" * 24).events()
        assert next(listening).id == 1
        with pytest.raises(UnreachableError):
            next(listening)


def test_wait_reports_every_event_and_returns_the_job():
    told = []
    with (
        answering(
            job("queued"), stream(QUEUED, EPOCH, DONE), job("succeeded", version=4)
        ) as service,
        Client(service.url) as client,
    ):
        ended = client.job("1" * 24).wait(progress=told.append)
        # Another version may answer for the model still, or again.
        ended.model.describe_version()
    assert [event.type for event in told] == ["state", "epoch", "state"]
    assert service.requests[-1].path == "/v1/models/houses/versions/4"
    assert (ended.state, ended.version, ended.model.name) == ("succeeded", 4, "houses")
    assert list(map(str, told)) == ["queued", "epoch 1, nll 0.5", "succeeded"]


def test_wait_raises_the_reason_of_a_failed_job():
    failed = (2, "state", {"state": "failed", "attempt": 1})
    with (
        answering(
            job("queued"),
            stream(QUEUED, failed),
            job("failed", error="The loss is not finite"),
        ) as service,
        Client(service.url) as client,
        pytest.raises(JobFailedError, match=r"failed: The loss is not finite$"),
    ):
        client.job("1" * 24).wait()
