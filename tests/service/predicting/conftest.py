import pytest


@pytest.fixture(scope="session")
def plain_numbers(tmp_path_factory):
    """An exported regression; the tests that ask it share it."""
    # Imports TensorFlow, which tests of the scheduler do without.
    from tests.service.predicting.exporting import exported, network

    path = tmp_path_factory.mktemp("numbers") / "1"
    return exported(network(), path, method="local")


@pytest.fixture(scope="session")
def numbers(plain_numbers):
    return plain_numbers


@pytest.fixture(scope="session")
def classes(tmp_path_factory):
    """An exported classification with conformal sets."""
    from tests.service.predicting.exporting import CLASSES, exported, network
    from tfbbb.prediction.recalibration import ConformalSets

    model = network("categorical", 3)
    model.recalibration = ConformalSets([[0.0] * 10 + [0.5] * 10])
    path = tmp_path_factory.mktemp("classes") / "1"
    return exported(model, path, classes=CLASSES, method="local")
