import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from service.shared.database import Database, create_tables
from service.shared.settings import Settings
from tests.cli.commands import succeeded
from tests.trained import exported_table
from tfbbb.cli import app
from tfbbb.tables.writing import write_table
from tfbbb.training import JobSpec

ROWS = 60


@pytest.fixture
def tfbbb(tmp_path, monkeypatch):
    """Runs a command line in an empty directory."""
    monkeypatch.chdir(tmp_path)
    # In a fork, locks that threads of this process hold would never be free.
    monkeypatch.setattr("tfbbb.cli.serve._in_a_fork", lambda prepare: prepare())
    runner = CliRunner()
    return lambda *arguments, input=None: runner.invoke(
        app, [str(a) for a in arguments], input=input
    )


@pytest.fixture
def run(tfbbb):
    """Runs a command line that succeeds."""
    return lambda *arguments, **options: succeeded(tfbbb(*arguments, **options))


@pytest.fixture
def service_data(tfbbb, tmp_path):
    """The data directory that a service left where `tfbbb` runs."""
    settings = Settings(data_dir=tmp_path / ".tfbbb")
    database = Database(settings.effective_database_url)
    create_tables(database)
    database.close()
    return settings.data_dir


def make_table():
    generator = np.random.default_rng(0)
    dose = generator.uniform(0, 10, size=ROWS)
    ward = generator.choice(["a", "b"], size=ROWS)
    return pa.table(
        {
            "dose (mg)": [None if row == 3 else dose[row] for row in range(ROWS)],
            "ward": ward,
            "code": [f"00{row % 3}" for row in range(ROWS)],
            "day": pa.array(range(ROWS), pa.date32()),
            "effect": dose + (ward == "b") + generator.normal(size=ROWS),
            "cured": np.where(dose > 5, "yes", "no"),
        }
    )


@pytest.fixture(scope="session")
def table():
    return make_table()


@pytest.fixture(scope="session")
def data(tmp_path_factory, table):
    path = tmp_path_factory.mktemp("data") / "patients.csv"
    write_table(table, path)
    return path


def spec(target):
    return JobSpec.model_validate(
        {
            "target": target,
            "features": ["dose (mg)", "ward", "code"],
            "model": {
                "members": 2,
                "hidden_units": [8],
                "likelihood": "normal" if target == "effect" else "categorical",
            },
            "training": {"steps": 100, "kl_schedule": "constant"},
        }
    )


@pytest.fixture(scope="session")
def regression(tmp_path_factory, table):
    """A registry with one version of the model `effect`, and what was trained."""
    root = tmp_path_factory.mktemp("saved_models") / "effect"
    return root, exported_table(table, spec("effect"), root)[1]


@pytest.fixture(scope="session")
def classification(tmp_path_factory, table):
    """The same for the model `cured`."""
    root = tmp_path_factory.mktemp("saved_models") / "cured"
    return root, exported_table(table, spec("cured"), root)[1]
