import pytest

from tests import exported_models


@pytest.fixture(scope="session")
def regression(tmp_path_factory):
    return exported_models.write_regression(tmp_path_factory.mktemp("regression"))


@pytest.fixture(scope="session")
def columns(tmp_path_factory):
    return exported_models.write_columns(tmp_path_factory.mktemp("columns"))


@pytest.fixture(scope="session")
def classification(tmp_path_factory):
    return exported_models.write_classification(tmp_path_factory.mktemp("classes"))
