"""What `tfbbb-predict` and its image do, which lack TensorFlow."""

import os
import pkgutil
import shutil
import subprocess
import sys
import time
import tomllib
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import scipy

from tests.ports import accepts, free_port
from tests.service.serving import ADMIN_KEY, AS_ADMIN, wait_until_ready
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


@pytest.fixture
def run(environment, tmp_path):
    """Runs `tfbbb` in an empty directory."""

    def run(*command, **variables):
        return subprocess.run(
            [sys.executable, "-m", "tfbbb", *map(str, command)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment | variables,
        )

    return run


@pytest.mark.parametrize(
    ("model", "command"),
    [
        ("regression", ["predict", "--log-prob"]),
        ("classification", ["evaluate"]),
        ("regression", ["explain"]),
        ("classification", ["report"]),
    ],
)
def test_commands_answer_without_tensorflow(run, command, model, request, data):
    version, _ = request.getfixturevalue(model)
    done = run(*command, version / "1", data)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("command", ["train", "tune"])
def test_a_command_that_needs_more_says_how_to_get_it(run, command, data):
    done = run(command, data, "--target=effect", "--output=model")
    assert done.returncode == 1
    # A progress bar leaves an empty line.
    *_, last = filter(None, done.stderr.splitlines())
    assert last.startswith("Error: This ")
    assert NEEDS in last


@pytest.fixture
def needing(regression, tmp_path):
    """A model that NumPy cannot compute."""
    path = Path(shutil.copytree(regression[0] / "1", tmp_path / "needing"))
    numpy = NumpyInfo(missing="NumPy lacks an operation.")
    manifest = replace(Manifest.read(path), numpy=numpy)
    (path / MANIFEST_PATH).write_text(manifest.to_json())
    return path


def test_a_model_that_numpy_cannot_compute_is_refused_with_the_reason(
    run, needing, data
):
    done = run("predict", needing, data)
    assert done.returncode == 1
    assert f"NumPy lacks an operation. The model {NEEDS}" in done.stderr


def test_a_name_that_needs_keras_says_how_to_get_it(environment):
    for name in ("layers", "BayesianModel", "training.train_table"):
        program = f"import tfbbb; tfbbb.{name}"
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        *_, last = done.stderr.splitlines()
        assert f"MissingTensorFlowError: tfbbb.{name} {NEEDS}" in last


def test_a_service_that_would_train_does_not_start(run):
    done = run("serve", TFBBB_JOB_SLOTS="1")
    assert done.returncode == 1
    assert f"Error: Training {NEEDS}" in done.stderr
    assert "TFBBB_JOB_SLOTS=0" in done.stderr


def test_a_service_predicts_and_keeps_jobs_in_the_queue(
    environment, regression, needing, data, tmp_path
):
    models, port = tmp_path / "models", free_port()
    shutil.copytree(regression[0], models / "effect")
    shutil.copytree(needing, models / "needing" / "1")
    variables = {
        "TFBBB_JOB_SLOTS": "0",
        "TFBBB_ADMIN_KEY": ADMIN_KEY,
        "TFBBB_WORKERS": "1",
    }
    command = [sys.executable, "-m", "tfbbb", "serve", "--port", str(port)]
    log = tmp_path / "log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, "--models", models],
            cwd=tmp_path,
            env=environment | variables,
            stdout=output,
            stderr=output,
        )
    url = f"http://127.0.0.1:{port}"
    client = httpx.Client(base_url=url, timeout=60, headers=AS_ADMIN)
    try:
        with client:
            while not accepts(port):
                assert process.poll() is None, log.read_text()
                time.sleep(0.05)
            wait_until_ready(client)
            row = {"dose (mg)": 1.0, "ward": "a", "code": "001"}
            answer = client.post(
                "/v1/models/effect:predict", json={"instances": [row]}
            ).json()
            assert answer["predictions"][0]["variance"][0] > 0
            described = client.get("/v1/models/effect").json()["description"]
            assert described["engine"] == "NumPy"
            refused = client.post(
                "/v1/models/needing:predict", json={"instances": [{}]}
            )
            assert refused.status_code == 503
            assert NEEDS in refused.json()["error"]
            dataset = client.post("/v1/datasets", content=data.read_bytes()).json()
            job = {"dataset_id": dataset["id"], "name": "new", "target": "effect"}
            queued = client.post("/v1/jobs", json=job).json()
            assert queued["state"] == "queued"
    finally:
        process.terminate()
        process.wait()
    assert "loaded version 1 of the model 'effect', which is computed by NumPy" in (
        log.read_text()
    )


def test_a_version_names_its_engine_and_the_reason(regression, needing):
    assert Manifest.read(regression[0] / "1").engine == "NumPy"
    found = Manifest.read(needing).engine
    assert found == "TensorFlow, because: NumPy lacks an operation."
