"""What the machine knows of its workers."""

from service.shared.living_workers import (
    WorkerFile,
    any_worker_lives,
    take_dead_workers,
)
from service.shared.queue import Lease


def test_attempt_of_a_dead_worker_is_found_once(settings):
    found = []
    worker, idle = WorkerFile(settings), WorkerFile(settings)
    worker.write(Lease("job", 1))
    worker.write(Lease("job", 2))
    take_dead_workers(settings, found.append)
    assert (found, any_worker_lives(settings)) == ([], True)
    for ended in worker, idle:
        ended.close()
    assert not any_worker_lives(settings)
    for _ in range(2):
        take_dead_workers(settings, found.append)
    assert found == [Lease("job", 2)]


def test_service_without_a_worker_says_that_nothing_trains(client, monkeypatch):
    monkeypatch.setattr("service.api.health._SECONDS_FOR_A_WORKER", 0.1)
    answer = client.get("/health/training")
    assert answer.status_code == 503
    assert answer.json()["error"].startswith("No worker lives on this machine: ")
