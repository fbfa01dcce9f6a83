from types import SimpleNamespace

import pytest

import tfbbb.training
from service.job_process.table_trainer import OtherVersionError, TableTrainer
from service.shared.database.tables import Job
from service.shared.files import JobFiles, dataset_name
from service.shared.settings import Settings
from tfbbb.training.job_clock import JobClock


def test_version_has_the_figures_of_its_training_as_lineage(tmp_path, monkeypatch):
    settings = Settings(data_dir=tmp_path, models=tmp_path / "models")
    job = Job(
        id="a" * 24, spec={"target": "y"}, dataset_sha256="b" * 64, dataset_format="csv"
    )
    table = tmp_path / "datasets" / dataset_name(job.dataset_sha256, job.dataset_format)
    table.parent.mkdir(parents=True)
    table.write_text("x,y\n1,2\n3,4\n")

    def train(*_, directory, **__):
        assert directory == JobFiles(settings, job.id).scratch
        return SimpleNamespace(
            export_to=lambda directory, lineage: lineage,
            metrics={"nll": 1.0},
            recalibration_choice={"chosen": "none"},
            recipe={},
            judgement={"rows": 2},
        )

    monkeypatch.setattr(tfbbb.training, "train_table", train)
    export = TableTrainer(settings).train(
        job, None, lambda _: None, lambda: False, JobClock()
    )
    lineage = export(tmp_path)
    assert lineage["metrics"] == {"nll": 1.0}
    assert lineage["judgement"] == {"rows": 2}
    assert lineage["recalibration"] == {"chosen": "none"}


def test_spec_with_fields_of_another_version_is_not_read(tmp_path):
    settings = Settings(data_dir=tmp_path, models=tmp_path / "models")
    later = Job(id="a" * 24, spec={"target": "y", "colour": "red"})
    with pytest.raises(OtherVersionError, match=r"whose field 'colour' the worker"):
        TableTrainer(settings).train(
            later, None, lambda _: None, lambda: False, JobClock()
        )
