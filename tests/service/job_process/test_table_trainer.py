import pytest

from service.job_process.table_trainer import OtherVersionError, TableTrainer
from service.shared.database.tables import Job
from service.shared.settings import Settings
from tfbbb.training.job_clock import JobClock


def test_spec_with_fields_of_another_version_is_not_read(tmp_path):
    settings = Settings(data_dir=tmp_path, models=tmp_path / "models")
    later = Job(id="a" * 24, spec={"target": "y", "colour": "red"})
    with pytest.raises(OtherVersionError, match=r"whose field 'colour' the worker"):
        TableTrainer(settings).train(
            later, None, lambda _: None, lambda: False, JobClock()
        )
