import json
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.exported_manifests import MATRIX_FEATURES, manifest
from tfbbb.export import Manifest
from tfbbb.export.manifest import MANIFEST_PATH, ManifestError, file_digests
from tfbbb.prediction.recalibration import (
    ConformalIntervals,
    IsotonicPIT,
    VarianceScaling,
    serialize,
)


@pytest.fixture
def fields():
    return {
        "schema_version": 6,
        "created": "2030-01-01T00:00:00+00:00",
        "task": "classification",
        "inputs": "columns",
        "features": [
            {"name": "age", "kind": "numeric", "missing": False, "tensor": "age"},
            {"name": "sex?", "kind": "categorical", "missing": True, "tensor": "sex_"},
        ],
        "target": None,
        "units": "as in the training table",
        "classes": ["no", "yes"],
        "likelihood": {"class_name": "Categorical", "config": {}},
        "layers": [
            {
                "name": "dense",
                "class_name": "DenseVariational",
                "posterior": "mean_field_normal",
                "prior": "normal",
                "estimator": "local",
                "num_parameters": 20,
            }
        ],
        "num_rows": None,
        "kl_weight": None,
        "method": "local",
        "default_num_samples": 100,
        "default_seed": 0,
        "metrics": {"nll": 1},
        "libraries": {"tensorflow": "2.21.0"},
        "files": {},
        "targets": {"shape": [], "support": None, "ordered": False, "discrete": False},
        "passes": {"local": {"members": 1, "widest": 20, "outputs": 2, "drawn": 22}},
        "numpy": {"difference": 1e-6, "missing": None},
        "recalibration": {"class_name": "Temperature", "config": {"temperature": 2.0}},
        "lineage": {"job_id": "5f1d7e2a9c3b4d6e8f012345", "seed": 7},
        "recalibration_choice": {"chosen": "none"},
    }


def test_json_round_trip_keeps_every_field(fields):
    manifest = Manifest.from_json(json.dumps(fields))
    assert json.loads(manifest.to_json()) == fields
    assert Manifest.from_json(manifest.to_json()) == manifest


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"schema_version": 5},
            r"Another version of tfbbb wrote the model: export it again\. "
            r"Received: schema_version=5 in place of 6",
        ),
        (
            {"task": "ranking"},
            r"`task` must be 'regression' or 'classification'. Received: 'ranking'",
        ),
        ({"num_rows": "9"}, r"`num_rows` must be a number. Received: '9'"),
        ({"default_num_samples": 1}, r"`default_num_samples` must be at least 2"),
        ({"features": [{"name": 1}]}, r"`features\.0\.name` must be a text"),
        ({"metrics": {"rmse": "low"}}, r"`metrics\.rmse` must be a number"),
    ],
)
def test_malformed_field_is_named(fields, change, message):
    with pytest.raises(ManifestError, match=message):
        Manifest.from_json(json.dumps(fields | change))


@pytest.mark.parametrize("name", ["likelihood", "passes", "numpy"])
def test_lacking_field_is_named(fields, name):
    del fields[name]
    with pytest.raises(ManifestError, match=f"lacks `{name}`"):
        Manifest.from_json(json.dumps(fields))


@pytest.mark.parametrize("text", ["{", "", b"\xff", '{"kl_weight": NaN}'])
def test_what_is_not_json_is_refused(text):
    with pytest.raises(ManifestError, match="not JSON"):
        Manifest.from_json(text)


@pytest.fixture
def model_directory(tmp_path, fields):
    (tmp_path / "variables").mkdir()
    (tmp_path / "saved_model.pb").write_bytes(b"graph")
    (tmp_path / "variables" / "variables.index").write_bytes(b"weights")
    path = tmp_path / MANIFEST_PATH
    path.parent.mkdir()
    path.write_text(json.dumps(fields | {"files": file_digests(tmp_path)}))
    return tmp_path


def test_untouched_directory_verifies(model_directory):
    manifest = Manifest.read(model_directory)
    assert set(manifest.files) == {"saved_model.pb", "variables/variables.index"}
    manifest.verify(model_directory)


def test_changed_file_is_named(model_directory):
    (model_directory / "variables" / "variables.index").write_bytes(b"Weights")
    with pytest.raises(ManifestError, match=r"variables/variables\.index .* sha256"):
        Manifest.read(model_directory).verify(model_directory)


def test_file_that_was_not_exported_is_named(model_directory):
    (model_directory / "assets.extra" / "payload").write_bytes(b"!")
    with pytest.raises(ManifestError, match=r"assets\.extra/payload .* not exported"):
        Manifest.read(model_directory).verify(model_directory)


def test_manifest_is_read_without_tensorflow(model_directory):
    program = (
        "import sys; from tfbbb.export import Manifest; Manifest.read(sys.argv[1]);"
        "sys.exit('tensorflow' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program, model_directory], check=True)


@pytest.mark.parametrize(
    "given",
    [
        None,
        VarianceScaling([2.0]),
        ConformalIntervals([[0.0, 1.5]], density=IsotonicPIT([0.2, 0.6], [0.1, 0.7])),
    ],
)
def test_a_recalibration_is_read_as_it_was_written(given):
    written = None if given is None else serialize(given)
    found = replace(manifest(MATRIX_FEATURES), recalibration=written)
    assert Manifest.from_json(found.to_json()).read_recalibration() == given
