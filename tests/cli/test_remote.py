import json
import threading

import pytest
from sqlalchemy import delete
from typer.testing import CliRunner

from service.shared.database import Database
from service.shared.database.tables import Dataset, Job
from service.shared.queue import Queue
from service.shared.settings import Settings
from tests.cli.commands import refusal, succeeded
from tests.service.queued import leased
from tests.service.sandboxed import reading_here
from tests.service.serving import ADMIN_KEY, serving
from tfbbb.cli import app

TABLE = "area,street,price\n" + "".join(
    f"{row},{'ab'[row % 2]},{row * 1.5}\n" for row in range(30)
)
UNKNOWN = "0" * 24
REASON = "Of no [red]use[/red], as " + "the rows say no more than this; " * 9 + "stop."


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    root = tmp_path_factory.mktemp("remote")
    (root / "models").mkdir()
    return Settings(data_dir=root / "data", models=root / "models", job_slots=0)


@pytest.fixture(scope="module")
def service(settings):
    with reading_here(), serving(settings) as client:
        yield str(client.base_url)


@pytest.fixture(autouse=True)
def queue(settings, service):
    """A queue without jobs and datasets."""
    database = Database(settings.effective_database_url)
    yield Queue(database, settings)
    with database.writing() as session:
        for table in (Job, Dataset):
            session.execute(delete(table))
    database.close()


@pytest.fixture
def remote(service, tmp_path, monkeypatch):
    """Runs a command against the service of the test, beside the table."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tfbbb.client.connection._PAUSES", (0.0,) * 5)
    (tmp_path / "houses.csv").write_text(TABLE)
    variables = {"TFBBB_URL": service, "TFBBB_KEY": ADMIN_KEY}
    runner = CliRunner(env=variables)
    return lambda *arguments: runner.invoke(app, ["remote", *map(str, arguments)])


def submit(remote, *options):
    known = ("--target", "price", "--name", "houses", "--detach")
    return succeeded(remote("train", "houses.csv", *known, *options)).stdout.strip()


def spec_of(queue, job_id):
    with queue.database.reading() as session:
        return session.get_one(Job, job_id).spec


def run_through(queue, end):
    lease = leased(queue)
    for epoch in (1, 2):
        far = {"epoch": epoch, "epochs": 2, "step": epoch, "steps": 2}
        told = {**far, "stage": "training 24 members", "nll": 0.5 / epoch}
        queue.heartbeat(lease, far, [told])
    end(lease)


def test_a_table_is_uploaded_once_under_any_name(remote):
    first = succeeded(remote("upload", "houses.csv"))
    assert "houses.csv: 30 rows, 3 columns" in first.stderr
    again = remote("upload", "houses.csv")
    assert again.stdout == first.stdout


def test_options_set_the_fields_of_a_job(remote, queue, tmp_path):
    spec = {"model": {"hidden_units": [7]}, "training": {"epochs": 3}}
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    options = ("--ignore", "street", "--spec", "spec.json", "--task", "regression")
    options += ("--epochs", "4", "--seed", "5", "--learning-rate", "0.02")
    told = spec_of(queue, submit(remote, *options))
    assert (told["features"], told["columns"]) == (None, {"street": "ignore"})
    assert told["task"] == "regression"
    assert told["model"]["hidden_units"] == [7]
    training = told["training"]
    assert (training["epochs"], training["seed"]) == (4, 5)
    assert training["learning_rate"] == 0.02


def test_watching_a_failed_job_prints_the_reason(remote, queue):
    job = submit(remote)
    trainer = threading.Thread(
        target=run_through, args=(queue, lambda lease: queue.fail(lease, REASON))
    )
    trainer.start()
    result = remote("watch", job)
    trainer.join()
    assert result.exit_code == 1
    for line in (f"job {job} trains houses", "queued", "running", "failed"):
        assert f"{line}\n" in result.stderr
    assert result.stderr.count("training 24 members\n") == 1
    assert "epoch 2" in result.stderr
    assert "nll 0.25" in result.stderr
    assert result.stderr.endswith(f"Error: Job {job} failed: {REASON}\n")
    # The reason appears once, and a pipe gets it on one line.
    assert result.stderr.count(REASON) == 1
    assert remote("jobs").stdout.splitlines()[1].endswith(f"  {REASON}")


def test_jobs_are_listed_and_cancelled(remote):
    first, second = submit(remote), submit(remote)
    cancelled = remote("cancel", first)
    assert cancelled.stdout == f"job {first} is cancelled\n"
    lines = remote("jobs").stdout.splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [
        [second, "houses", "queued"],
        [first, "houses", "cancelled"],
    ]
    assert len(remote("jobs", "--state", "queued").stdout.splitlines()) == 2
    watched = remote("watch", first)
    assert watched.stderr.endswith(f"Error: Job {first} cancelled\n")
    listed = json.loads(remote("jobs", "--json", "--limit", "1").stdout)
    assert [(job["id"], job["progress"]) for job in listed] == [(second, {})]
    assert remote("retry", first).stdout == f"job {first} is queued\n"


def test_jobs_and_unused_datasets_are_deleted(remote, settings):
    job = submit(remote)
    (listed,) = json.loads(remote("datasets", "--json").stdout)
    assert remote("datasets").stdout.splitlines()[1].split()[:3] == [
        *(listed["id"], "houses.csv", "30")
    ]
    needed = remote("delete", "dataset", listed["id"])
    assert job in refusal(needed)
    remote("cancel", job)
    log = settings.data_dir / "jobs" / job / "log.txt"
    log.parent.mkdir(parents=True)
    log.write_text("what the trainer wrote\n")
    assert remote("log", job).stdout == "what the trainer wrote\n"
    for what, id in (("job", job), ("dataset", listed["id"])):
        done = remote("delete", what, id)
        assert done.stdout == f"deleted {what} {id}\n", done.output
    for what in ("jobs", "datasets"):
        assert remote(what, "--json").stdout == "[]\n"
        assert remote(what).stderr.startswith("There is no ")


def test_ctrl_c_stops_watching_and_not_the_job(remote, monkeypatch):
    def interrupted(job, progress):
        raise KeyboardInterrupt

    monkeypatch.setattr("tfbbb.client.Job.wait", interrupted)
    job = submit(remote)
    result = remote("watch", job)
    assert result.exit_code == 130
    assert f"`tfbbb remote cancel {job}` cancels it" in result.stderr


def test_an_error_is_one_sentence(remote):
    for arguments, sentence in [
        (["upload", "no.csv"], "no.csv: No such file or directory."),
        (["watch", UNKNOWN], "There is no job"),
        (["watch"], "There is no job; create one with `tfbbb remote train`."),
        (["cancel", UNKNOWN], "There is no job"),
        (
            ["train", "houses.csv", "--target", "x", "--name", "n"],
            "no target column 'x'",
        ),
        (
            ["train", "houses.csv", "--target=price", "--name=n", "--ignore=x"],
            "no ignored column 'x'; its columns are 'area', 'street', 'price'.",
        ),
        (
            ["train", "houses.csv", "--target=price", "--name=n", "--spec=houses.csv"],
            "houses.csv is not JSON",
        ),
        (["train", "no.csv", "--target=y", "--name=n"], "neither a file nor the id"),
        (["models", "--key", "a.b"], "key"),
        (["models", "--url", "http://127.0.0.1:1"], "There is no service at"),
    ]:
        result = remote(*arguments)
        assert result.exit_code == 1, arguments
        last = result.stderr.splitlines()[-1]
        assert last.startswith("Error: ")
        assert sentence in last


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["watch", "xyz"], "'xyz' is not the id of a job; `tfbbb remote jobs` lists"),
        (["delete", "dataset", "x"], "'x' is not the id of a dataset"),
        (["delete", "version", "houses"], "write `delete version MODEL VERSION`"),
        (["jobs", "--state", "done"], "'done' is not one of 'queued', 'running'"),
        (["train", "houses.csv", "--target=y", "--name=a b"], "Received: 'a b'"),
    ],
)
def test_invalid_arguments_are_refused_before_any_request(tfbbb, arguments, sentence):
    result = tfbbb("remote", *arguments)
    assert result.exit_code == 2
    assert sentence in " ".join(result.stderr.replace("│", " ").split())


def test_url_and_key_may_stand_before_or_after_the_command(service, monkeypatch):
    # The command line overrides the environment.
    monkeypatch.setenv("TFBBB_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("TFBBB_KEY", "no.key")
    options = ("--url", service, "--key", ADMIN_KEY)
    wrong = ("--url", "http://127.0.0.1:1", "--key", "x.y")
    label = ("label", "houses", "champion")
    for arguments, said in [
        ((*options, "datasets"), "There is no dataset"),
        (("datasets", *options), "There is no dataset"),
        ((*wrong, "datasets", *options), "There is no dataset"),
        ((*options, "delete", *label), "no such label"),
        (("delete", *options, *label), "no such label"),
        (("delete", "label", *options, *label[1:]), "no such label"),
    ]:
        assert said in CliRunner().invoke(app, ["remote", *arguments]).output, arguments
