"""A job in partitions on a Ray cluster, with the real trainer."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray", reason="needs the extra `ray`")

from service.job_process.dispatcher import Dispatcher
from service.job_process.ray_launcher import RayLauncher
from service.shared.database import Database, upgrade
from service.shared.files import dataset_name
from service.shared.queue import Queue
from service.shared.settings import Settings
from tests.service.job_process.ray_nodes import cluster_of, on_ray, step_until_ended
from tests.service.queued import job, submitted
from tfbbb.export import load
from tfbbb.tables.format import part_path


@pytest.mark.slow
def test_a_job_on_ray_trains_the_files_of_its_dataset_in_actors(tmp_path: Path) -> None:
    means, noise = {"north": 10.0, "south": 30.0}, np.random.default_rng(0)
    with cluster_of(1, slots=3) as cluster:
        settings = Settings(
            data_dir=tmp_path / "data", models=tmp_path / "models", lease_seconds=60.0
        )
        settings = on_ray(settings, cluster)
        settings.data_dir.mkdir()
        settings.models.mkdir()
        database = Database(settings.effective_database_url)
        upgrade(database, settings.data_dir / "backups")
        queue = Queue(database, settings)
        name = dataset_name("0" * 64, "parts")
        directory = settings.data_dir / "datasets" / name
        directory.mkdir(parents=True)
        for number, (region, mean) in enumerate(means.items(), start=1):
            lines = [f"{region},{mean + noise.normal()}\n" for _ in range(60)]
            text = "".join(["region,price\n", *lines])
            part_path(directory, number, "csv").write_text(text)
        spec = {
            "target": "price",
            "model": {
                "hidden_units": [],
                "likelihood": {"name": "normal", "scale": 1.0},
            },
            "training": {"partitions": 2, "epochs": 60},
        }
        jobs = submitted(queue, name="regions", dataset_format="parts", spec=spec)
        step_until_ended(queue, Dispatcher(queue, RayLauncher(settings)), jobs)
        found = job(queue, jobs[0])
        assert (found.state, found.version) == ("succeeded", 1), found.error
        model = load(settings.models / "regions" / "1")
        assert model.manifest.lineage["recipe"]["partitions"]["by"] == "file"
        prediction = model.predict({"region": list(means)})
        # The standard error of a mean of 54 rows is 0.14.
        np.testing.assert_allclose(np.ravel(prediction["mean"]), [10.0, 30.0], atol=0.7)
        database.close()
