"""Jobs on a real Ray cluster of three nodes, with their models in S3."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="needs the extra `ray`")

from ray.job_submission import JobSubmissionClient
from sqlalchemy import select

from service.job_process.ray_launcher import submission_id
from service.shared.database import Database, upgrade
from service.shared.database.tables import ModelVersion
from service.shared.files import JobFiles
from service.shared.queue import Queue
from service.shared.settings import Settings
from tests.service.job_process.ray_nodes import (
    Cluster,
    cluster_of,
    dispatcher_of,
    on_ray,
    step_until_ended,
    step_until_saved,
)
from tests.service.job_process.stand_in_trainer import result_of
from tests.service.queued import job, states, submitted
from tests.service.stores import S3


@pytest.fixture(scope="module")
def cluster(s3: S3) -> Iterator[Cluster]:
    with cluster_of(2, slots=1) as cluster:
        yield cluster


@pytest.fixture
def queue(cluster: Cluster, s3: S3, tmp_path: Path) -> Iterator[Queue]:
    settings = Settings(
        data_dir=tmp_path / "data",
        models=tmp_path / "models",
        store=s3.new_store(),
        lease_seconds=10.0,
        job_slots=2,
    )
    settings = on_ray(settings, cluster)
    settings.data_dir.mkdir()
    database = Database(settings.effective_database_url)
    upgrade(database)
    yield Queue(database, settings)
    database.close()


def versions(queue: Queue) -> list[ModelVersion]:
    with queue.database.reading() as session:
        return list(session.scalars(select(ModelVersion)))


def check_versions(queue: Queue, jobs: list[str]) -> None:
    """Checks that each job that succeeded has one version, with its result."""
    done = [found for job_id in jobs if (found := job(queue, job_id)).version]
    assert sorted(row.job_id or "" for row in versions(queue)) == sorted(
        found.id for found in done
    )
    assert queue.store.numbers("model") == sorted(found.version or 0 for found in done)
    for found in done:
        directory = queue.store.version("model", found.version or 0)
        assert (directory / "saved_model.pb").read_text() == result_of(found)


def test_jobs_survive_their_node_and_their_dispatcher(
    queue: Queue, cluster: Cluster
) -> None:
    first = dispatcher_of(queue)
    jobs = submitted(queue, 2, spec={"steps": 500})
    lease = step_until_saved(queue, first, jobs[0])
    first._shut_down()
    assert job(queue, jobs[0]).state == "running"
    client = JobSubmissionClient(cluster.address)
    ran_on = client.get_job_info(submission_id(lease)).driver_node_id
    cluster.kill(next(node for node in cluster.nodes if node.node_id == ran_on))
    second = dispatcher_of(queue)
    step_until_ended(queue, second, jobs)
    assert [job(queue, job_id).state for job_id in jobs] == ["succeeded"] * 2
    assert states(queue, jobs[0]).count("running") == 2
    check_versions(queue, jobs)
    log = JobFiles(queue.settings, jobs[0]).log.read_text()
    assert f"Ray job {submission_id(lease)}:" in log
    assert "published model, version" in log
