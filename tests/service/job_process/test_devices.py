"""Jobs that train on all devices."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.csv
import pytest
from sqlalchemy import select

from service.shared.database import Database, upgrade
from service.shared.database.tables import Event
from service.shared.files import dataset_name
from service.shared.queue import Queue
from service.shared.settings import Settings
from tests.service import queued
from tests.service.job_process import two_device_trainer
from tfbbb.export import load
from tfbbb.tables import samples

RECIPES: dict[str, dict[str, Any]] = {
    # One network beside held-out rows.
    "brief": {
        "model": {"members": 2, "hidden_units": [8], "likelihood": "normal"},
        "training": {"kl_schedule": "constant", "steps": 20},
    },
    "default": {"training": {"steps": 100}},
}
FIGURES_FROM = {"brief": "44 rows that no member trained on", "default": "all 442 rows"}


@pytest.mark.parametrize(
    "recipe", ["brief", pytest.param("default", marks=pytest.mark.slow)]
)
def test_a_job_trains_on_two_devices(tmp_path: Path, recipe: str) -> None:
    settings = Settings(data_dir=tmp_path, models=tmp_path / "models")
    settings.models.mkdir()
    database = Database(settings.effective_database_url)
    upgrade(database, settings.data_dir)
    queue = Queue(database, settings)
    dataset = tmp_path / "datasets" / dataset_name("0" * 64, "csv")
    dataset.parent.mkdir()
    pyarrow.csv.write_csv(samples.diabetes(), dataset)
    spec = {"target": "progression", **RECIPES[recipe]}
    spec["training"] = {"devices": "all", **spec["training"]}
    (job_id,) = queued.submitted(queue, name="diabetes", spec=spec)
    subprocess.run(
        [sys.executable, "-m", two_device_trainer.__name__, job_id],
        env=os.environ | settings.environment(),
        check=True,
    )
    job = queued.job(queue, job_id)
    assert (job.state, job.version) == ("succeeded", 1)
    with queue.database.reading() as session:
        events = session.scalars(select(Event).where(Event.job_id == job_id))
        stages = {event.data.get("stage") for event in events if event.type == "epoch"}
    assert stages
    for stage in stages:
        assert stage.endswith("; on 2 CPUs, which share the rows of each batch")
    model = load(settings.models / "diabetes" / "1")
    # In the default recipe, rows that members leave out are predicted by the others.
    found = model.manifest.lineage["recipe"]["metrics_from"]
    assert found.startswith(FIGURES_FROM[recipe])
    row = {name: [0.0] for name in samples.diabetes().column_names[:-1]}
    assert model.predict(row)["variance"] > 0.0
