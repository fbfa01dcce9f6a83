"""What `/metrics` tells of requests, models, disks and jobs."""

from functools import partial

import pytest
from prometheus_client.parser import text_string_to_metric_families

from service.api.metrics import Registries, job_metrics
from service.shared.database.tables import Job
from tests.service.serving import ask
from tests.waiting import wait_until
from tfbbb.version import __version__, commit


def figures(client):
    response = client.get("/metrics")
    assert response.status_code == 200
    return {
        (sample.name, frozenset(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


def test_requests_are_counted_by_route_and_status(client):
    before = figures(client)
    client.get("/v1/models/no%2Fsuch")
    client.get("/v1/models/diabetes/versions/1")
    client.get("/v1/models/diabetes/versions/999")
    client.get("/v1/models/nosuch/versions/1")
    client.get("/no/such")
    client.get("/v1/models", headers={"Authorization": "Bearer x"})
    client.request("PROPFIND", "/no/such")

    def counted(*labels):
        key = "tfbbb_http_requests_total", frozenset(labels)
        return figures(client).get(key, 0) - before.get(key, 0)

    # A request is counted when its response is sent.
    wait_until(lambda: counted("other", "none", "", "404") == 1)
    version = "/v1/models/{name}/versions/{version}"
    assert counted("GET", version, "diabetes", "200") == 1
    assert counted("GET", version, "diabetes", "404") == 1
    assert counted("GET", version, "other", "404") == 1
    assert counted("GET", "none", "", "404") == 2
    assert counted("GET", "none", "", "401") == 1
    key = frozenset(("GET", version, "diabetes"))
    assert figures(client)["tfbbb_http_request_duration_seconds_count", key] >= 2


def test_models_say_how_sure_they_were(client):
    labels = frozenset(["diabetes", "2"])
    key = "tfbbb_predictive_standard_deviation_count", labels
    before = figures(client).get(key, 0)
    rows = '{"instances": [[1, 2, 3], [4, 5, 6]]}'
    assert ask(client, "diabetes", rows).status_code == 200
    after = figures(client)
    assert after[key] == before + 2
    assert after["tfbbb_model_versions", frozenset(["diabetes", "AVAILABLE"])] >= 1


def test_version_and_commit_of_the_service_are_labels(client):
    labels = frozenset([__version__, commit()])
    assert figures(client)["tfbbb_build_info", labels] == 1


def test_disk_of_what_is_stored_is_counted(client, saved_models):
    found = figures(client)
    files = [path for path in saved_models.rglob("*") if path.is_file()]
    versions = found["tfbbb_disk_bytes", frozenset(["versions"])]
    assert versions == sum(path.stat().st_size for path in files) > 0
    assert found["tfbbb_disk_bytes", frozenset(["database"])] > 0
    for kind in ("datasets", "jobs"):
        assert found["tfbbb_disk_bytes", frozenset([kind])] >= 0
    for directory in ("data", "models"):
        assert found["tfbbb_disk_free_bytes", frozenset([directory])] > 0


def add(database, state, created, seconds=None):
    with database.writing() as session:
        job = Job(name="m", dataset_sha256="", dataset_format="csv", spec={})
        job.state, job.created_at = state, created
        if seconds is not None:
            job.started_at, job.finished_at = created, created + seconds
        session.add(job)


def test_jobs_are_counted_by_state_and_timed(database):
    with database.reading() as session:
        now = database.now(session)
    add(database, "queued", now - 100)
    add(database, "queued", now - 10)
    for seconds in (0.5, 5, 50):
        add(database, "succeeded", now - 1000, seconds)
    add(database, "cancelled", now - 1000)
    registries = Registries()
    registries.observe(partial(job_metrics, database))

    def value(name, **labels):
        return registries.observed.get_sample_value(name, labels)

    assert value("tfbbb_jobs", state="queued") == 2
    assert value("tfbbb_jobs", state="succeeded") == 3
    assert value("tfbbb_jobs", state="running") == 0
    age = value("tfbbb_job_oldest_queued_seconds")
    assert age >= 100
    name = "tfbbb_job_duration_seconds"
    assert value(f"{name}_count", state="succeeded") == 3
    assert value(f"{name}_sum", state="succeeded") == pytest.approx(55.5)
    assert value(f"{name}_count", state="cancelled") is None
