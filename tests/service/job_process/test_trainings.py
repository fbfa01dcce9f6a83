"""Jobs from upload to prediction, with the real processes."""

import pytest

from service.api.predictions.schemas import TABLE_BODY
from service.shared.files import JobFiles
from service.shared.settings import Settings
from tests.service.sandboxed import reading_here
from tests.service.serving import ADMIN_KEY, serving
from tfbbb.client import Client
from tfbbb.tables import samples

# Jobs of these tests train for no more epochs than their checks need.
TRAINING = {"epochs": 4, "seed": 7}
# Half as many follow with more rows.
EPOCHS = 6
_ROW = samples.diabetes().slice(0, 1).drop_columns("progression").to_pylist()


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    root = tmp_path_factory.mktemp("service")
    return Settings(
        data_dir=root / "data",
        models=root / "models",
        job_slots=1,
        checkpoint_seconds=0.2,
        lease_seconds=20.0,
        # Whoever hears of a success is answered by the new version all the same.
        poll_seconds=3600.0,
    )


@pytest.fixture(scope="module")
def client(settings):
    settings.models.mkdir()
    with (
        reading_here(),
        serving(settings) as http,
        Client(str(http.base_url), ADMIN_KEY) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def dataset(client):
    return client.upload(samples.diabetes(), name="diabetes").id


@pytest.fixture(scope="module")
def trained(client, dataset):
    # Of layers that are given, one network is trained.
    model = {"hidden_units": [8], "likelihood": "normal", "members": 4}
    options = {"model": model, "training": TRAINING}
    return client.train(dataset, "progression", name="first", **options).wait()


def test_a_job_becomes_a_model_that_answers(client, trained, settings):
    assert (trained.state, trained.version) == ("succeeded", 1)
    assert trained.progress["epoch"] == trained.progress["epochs"] == EPOCHS
    judgement = trained.judgement
    assert list(judgement["figures"]) == [
        *("model", "mean", "linear model", "gradient boosting")
    ]
    assert judgement["sentences"][0].startswith("The model")
    prediction = client.model("first").predict(_ROW, quantiles=[0.05, 0.95])
    lower, upper = prediction.interval(0.9)
    assert lower < prediction.mean < upper
    assert client._connection.request("GET", "/health/training") == {
        "status": "training"
    }
    for example in TABLE_BODY["content"]["application/json"]["examples"].values():
        path, body = "/v1/models/first:predict", example["value"]
        assert client._connection.request("POST", path, json=body)["model_version"]
    files = JobFiles(settings, trained.id)
    assert "published first, version 1" in files.log.read_text()
    assert not files.scratch.exists()
    assert list((settings.models / ".staging").glob("*")) == []


def test_the_events_of_a_job_are_complete_and_in_order(trained):
    events = list(trained.events())
    assert [event.id for event in events] == list(range(1, len(events) + 1))
    states = [event.data["state"] for event in events if event.type == "state"]
    assert states == ["queued", "running", "exporting", "succeeded"]
    epochs = [event.data for event in events if event.type == "epoch"]
    assert [epoch["epoch"] for epoch in epochs] == list(range(1, EPOCHS + 1))
    assert {"nll", "kl", "loss"} <= epochs[0].keys()
    assert trained.progress["stage"].startswith("4 members go on training")
    assert list(trained.events(after=len(events) - 1)) == events[-1:]


def test_a_version_tells_where_it_comes_from(client, trained):
    answer = client._connection.request("GET", "/v1/models/first/versions/1")
    assert answer["lineage"]["job_id"] == trained.id
    source = answer["lineage"]["source"]
    assert source["spec"]["target"] == "progression"
    assert len(source["dataset_sha256"]) == 64
    assert source["seed"] == 7
    assert list(source["judgement"]["figures"]) == list(trained.judgement["figures"])
    assert source["recalibration"]
    assert source["recipe"]
    assert source["calibration"]["coverage_90"] == source["metrics"]["coverage_90"]


def test_yesterdays_posterior_is_todays_prior(client, trained, dataset):
    job = client.train(
        dataset,
        "progression",
        name="first",
        start_from={"model": "first", "version": 1},
        training={"epochs": 5},
    )
    assert job.wait().version == 2
    assert client.model("first").predict(_ROW).version == 2
