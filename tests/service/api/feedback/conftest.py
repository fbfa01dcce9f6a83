import shutil

import numpy as np
import pytest
from sqlalchemy import delete

from service.shared.database import Database
from service.shared.database.tables import Feedback, Label
from service.shared.settings import Settings
from tests.service.predicting.exporting import CLASSES, network
from tests.service.serving import serving
from tfbbb.judging.drift_reference import REFERENCE_FILE, DriftReference, drift_scores


def export(path, likelihood, units, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    model = network(likelihood, units, hidden=0)
    model.export_predictive(path, target="y", num_samples=20, **options)


@pytest.fixture(scope="module")
def feedback_models(tmp_path_factory):
    """Models of numbers and of classes; one has a drift reference."""
    root = tmp_path_factory.mktemp("feedback_models")
    errors = np.random.default_rng(0).normal(size=30)
    reference = DriftReference(
        drift_scores(-(errors**2), np.abs(errors)[:, np.newaxis])
    )
    metrics = {"coverage_90": 0.88, "rmse": 1.5}
    files = {REFERENCE_FILE: reference.to_json()}
    export(root / "numbers" / "2", "normal", 1, metrics=metrics, extra_files=files)
    shutil.copytree(root / "numbers" / "2", root / "numbers" / "1")
    export(root / "classes" / "1", "categorical", 3, classes=CLASSES)
    return root


@pytest.fixture(scope="module")
def feedback_settings(feedback_models, tmp_path_factory):
    data_dir = tmp_path_factory.mktemp("feedback_data")
    return Settings(models=feedback_models, data_dir=data_dir)


@pytest.fixture(scope="module")
def feedback_service(feedback_settings):
    with serving(feedback_settings) as client:
        yield client


@pytest.fixture
def client(feedback_service, feedback_settings):
    """A client of a service that has no feedback yet."""
    yield feedback_service
    database = Database(feedback_settings.effective_database_url)
    with database.writing() as session:
        for table in (Feedback, Label):
            session.execute(delete(table))
    database.close()
