"""What `tfbbb-predict` and its image do, which lack TensorFlow."""

import os
import pkgutil
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import scipy

from tests.cli.commands import run_commands
from tfbbb.cli.running_service import running_service
from tfbbb.client import Client
from tfbbb.export.manifest import MANIFEST_PATH, Manifest, NumpyInfo

ROOT = Path(__file__).parents[2]
PREDICT = ROOT / "deploy" / "predict" / "pyproject.toml"
NEEDS = "needs TensorFlow: `pip install tfbbb`"


def missing_modules():
    """The modules of the dependencies that are left out, and those of the image.

    The image has the special functions of SciPy alone: see `deploy/shrink.sh`.
    """
    hooks = tomllib.loads(PREDICT.read_text())["tool"]["hatch"]["metadata"]["hooks"]
    modules = {name.replace("-", "_") for name in hooks["custom"]["without"]}
    assert {"tensorflow", "keras", "scikit_learn"} < modules
    parts = {
        f"scipy.{module.name}"
        for module in pkgutil.iter_modules(scipy.__path__)
        if module.ispkg and module.name[0] != "_" and module.name != "special"
    }
    assert "scipy.stats" in parts
    return sorted(modules | {"sklearn"} | parts)


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An environment whose Python, and each that it starts, lacks the modules."""
    folder = tmp_path_factory.mktemp("site")
    Path(folder, "sitecustomize.py").write_text(
        f"import sys\nsys.modules |= dict.fromkeys({missing_modules()})\n"
    )
    path = os.pathsep.join([str(folder), str(ROOT)])
    return os.environ | {"PYTHONPATH": path, "COLUMNS": "200"}


def test_commands_answer_without_tensorflow(
    environment, regression, classification, data, tmp_path
):
    numbers, classes = regression[0] / "1", classification[0] / "1"
    done = run_commands(
        ["predict", "--log-prob", numbers, data, "--output", "answers.csv"],
        ["evaluate", classes, data, "--json"],
        ["explain", numbers, data],
        environment=environment,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "log_prob" in (tmp_path / "answers.csv").read_text()
    assert '"accuracy"' in done.stdout
    assert "dose (mg)" in done.stdout


@pytest.fixture
def needing(regression, tmp_path):
    """A model that NumPy cannot compute."""
    path = Path(shutil.copytree(regression[0] / "1", tmp_path / "needing"))
    numpy = NumpyInfo(missing="NumPy lacks an operation.")
    manifest = replace(Manifest.read(path), numpy=numpy)
    (path / MANIFEST_PATH).write_text(manifest.to_json())
    return path


def test_what_needs_more_says_how_to_get_it(environment, needing, data, tmp_path):
    wanted = (data, "--target=effect", "--output=model")
    names = ("layers", "BayesianModel", "training.train_table")
    asking = f"""
import operator, tfbbb
for name in {names}:
    try:
        operator.attrgetter(name)(tfbbb)
    except ImportError as error:
        print(error)
"""
    done = run_commands(
        ["train", *wanted],
        ["tune", *wanted],
        ["predict", needing, data],
        ["serve"],
        then=asking,
        environment=environment | {"TFBBB_JOB_SLOTS": "1"},
        cwd=tmp_path,
    )
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert len(said) == 4
    assert all(NEEDS in line for line in said)
    assert f"NumPy lacks an operation. The model {NEEDS}" in said[2]
    assert said[3].startswith(f"Error: Training {NEEDS}")
    assert "TFBBB_JOB_SLOTS=0" in said[3]
    for name, line in zip(names, done.stdout.splitlines()[-3:], strict=True):
        assert line.startswith(f"tfbbb.{name} {NEEDS}")


def test_a_service_predicts_and_keeps_jobs_in_the_queue(
    environment, regression, needing, data, tmp_path, monkeypatch
):
    models = tmp_path / "models"
    shutil.copytree(regression[0], models / "effect")
    shutil.copytree(needing, models / "needing" / "1")
    for name, value in {"TFBBB_JOB_SLOTS": "0", "TFBBB_WORKERS": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", environment["PYTHONPATH"])
    with running_service(models) as (url, key), Client(url, key) as client:
        row = {"dose (mg)": 1.0, "ward": "a", "code": "001"}
        assert client.model("effect").predict([row]).variance[0, 0] > 0
        assert client.model("effect").describe()["description"]["engine"] == "NumPy"
        refused = httpx.post(
            f"{url}/v1/models/needing:predict",
            json={"instances": [row]},
            headers={"Authorization": f"Bearer {key}"},
            timeout=60,
        )
        assert refused.status_code == 503
        assert NEEDS in refused.json()["error"]
        job = client.train(client.upload(data), "effect", name="new")
        assert job.state == "queued"


def test_a_version_names_its_engine_and_the_reason(regression, needing):
    assert Manifest.read(regression[0] / "1").engine == "NumPy"
    found = Manifest.read(needing).engine
    assert found == "TensorFlow, because: NumPy lacks an operation."
