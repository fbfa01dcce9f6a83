"""A worker whose training only counts; all around it is as in the real one."""

import argparse
import hashlib
import json
import os
import sys
import time
from dataclasses import dataclass
from functools import partial

from service.job_process.worker import run_worker, stop_on_signals
from service.shared.database import Database, timestamp
from service.shared.files import JobFiles
from service.shared.logs import configure_logging
from service.shared.queue import Queue
from service.shared.settings import Settings
from tests.exported_manifests import HALF_PLUS_THREE_FEATURES, write_manifest
from tfbbb.training.job_clock import Interrupted, Progress

_STEPS = 40
_SECONDS_PER_STEP = float(os.environ.get("STAND_IN_SECONDS_PER_STEP", "0.01"))
_STEPS_PER_EPOCH = 5


def steps_of(job):
    return int(job.spec.get("steps", _STEPS))


def result_of(job):
    """What training comes to, however often it was interrupted."""
    state = job.id
    for step in range(steps_of(job)):
        state = _step(state, step)
    return state


def _step(state, step):
    return hashlib.sha256(f"{state} {step}".encode()).hexdigest()


def export(job_id, result, directory):
    directory.mkdir(parents=True)
    (directory / "saved_model.pb").write_text(result)
    lineage = {"job_id": job_id, "created_at": timestamp(time.time())}
    write_manifest(directory, HALF_PLUS_THREE_FEATURES, lineage=lineage)


@dataclass(frozen=True)
class CountingTrainer:
    settings: Settings

    def prepare(self, should_stop):
        self.settings.data_dir.mkdir(parents=True, exist_ok=True)
        (self.settings.data_dir / "prepared").touch()

    def train(
        self,
        job,
        serving,
        report,
        should_stop,
        clock,
    ):
        clock.begin("steps")
        scratch = JobFiles(self.settings, job.id).scratch
        scratch.mkdir(parents=True, exist_ok=True)
        saved = sorted(scratch.glob("checkpoint-*"))
        state, done = json.loads(saved[-1].read_text()) if saved else (job.id, 0)
        for step in range(done, steps_of(job)):
            time.sleep(_SECONDS_PER_STEP)
            state = _step(state, step)
            if (step + 1) % _STEPS_PER_EPOCH == 0 or should_stop():
                beside = scratch / f"{os.getpid()}.json"
                beside.write_text(json.dumps([state, step + 1]))
                beside.replace(scratch / f"checkpoint-{step + 1:012d}")
                for old in sorted(scratch.glob("checkpoint-*"))[:-2]:
                    old.unlink(missing_ok=True)
                clock.see(_progress(step + 1, steps_of(job)))
                report(_progress(step + 1, steps_of(job)))
            if should_stop():
                raise Interrupted
        return partial(export, job.id, state)


def _progress(step, steps):
    return Progress(
        epoch=step // _STEPS_PER_EPOCH,
        epochs=steps // _STEPS_PER_EPOCH,
        step=step,
        steps=steps,
        saved_step=step,
        seconds=step * _SECONDS_PER_STEP,
        figures={"nll": 1.0 / step},
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--job")
    parser.add_argument("--prepare", action=argparse.BooleanOptionalAction)
    parser.add_argument("--until-input-ends", action="store_true")
    options = parser.parse_args()
    configure_logging("worker")
    settings = Settings.from_environment()
    queue = Queue(Database(settings.effective_database_url), settings)
    stopping = stop_on_signals(until_input_ends=options.until_input_ends)
    return run_worker(queue, CountingTrainer(settings), stopping, job_id=options.job)


if __name__ == "__main__":
    sys.exit(main())
