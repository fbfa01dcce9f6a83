from service.api.jobs.schemas import timing
from service.shared import job_events as events
from tests.service.queued import job, leased, let_expire, submitted
from tfbbb.training.job_clock import LOADING, WAITING

TOLD = {"stage": "training", "done": 0.5, "seconds_left": [8.0, 20.0], "elapsed": 9.0}


def stages(queue, lease):
    with queue.database.reading() as session:
        told = events.after(session, lease.job_id, 0)
    return [event.data["stage"] for event in told if event.type == "stage"]


def test_a_job_waits_then_loads_then_does_what_its_worker_tells(queue):
    (id,) = submitted(queue)
    waiting = job(queue, id)
    at = timing(waiting, waiting.created_at + 7.0)
    assert at == {"stage": WAITING, "done": 0.0, "seconds_left": None, "elapsed": 0.0}
    lease = leased(queue)
    running = job(queue, id)
    at = timing(running, running.started_at + 2.0)
    assert at == {"stage": LOADING, "done": 0.0, "seconds_left": None, "elapsed": 2.0}
    queue.heartbeat(lease, timing=TOLD)
    told = job(queue, id)
    at = timing(told, 0.0)
    assert at == TOLD
    queue.fail(lease, "of no use")
    assert timing(job(queue, id), 0.0) is None


def test_each_stage_of_an_attempt_is_one_event(queue):
    submitted(queue)
    lease = leased(queue)
    for stage in ("reading the table", "training", "training", "judging"):
        queue.heartbeat(lease, timing=TOLD | {"stage": stage})
    assert stages(queue, lease) == ["reading the table", "training", "judging"]
    queue.heartbeat(lease, {"step": 4, "saved_step": 4})
    let_expire(queue, lease)
    again = leased(queue)
    queue.heartbeat(again, timing=TOLD | {"stage": "judging", "done": 0.1})
    assert stages(queue, lease)[3:] == ["judging"]
    progress = job(queue, lease.job_id).progress
    # A new attempt begins anew, the bar does not, and checkpoints are known.
    assert progress["timing"]["done"] == 0.5
    assert progress["saved_step"] == 4
