import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tfbbb.bayes.families.support import Support
from tfbbb.bayes.likelihoods import likelihood_support
from tfbbb.export import Manifest
from tfbbb.export.manifest import MANIFEST_PATH, ManifestError, file_digests


@pytest.fixture
def fields() -> dict[str, Any]:
    return {
        "schema_version": 1,
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
    }


def test_json_round_trip_keeps_every_field(fields: dict[str, Any]) -> None:
    manifest = Manifest.from_json(json.dumps(fields))
    assert json.loads(manifest.to_json()) == fields
    assert Manifest.from_json(manifest.to_json()) == manifest


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"schema_version": 4},
            r"schema version 1 to 3; .* Received: schema_version=4",
        ),
        (
            {"task": "ranking"},
            r"`task` must be 'regression' or 'classification'. Received: 'ranking'",
        ),
        ({"num_rows": "9"}, r"`num_rows` must be a number. Received: '9'"),
        ({"default_num_samples": 1}, r"`default_num_samples` must be at least 2"),
        ({"features": [{"name": 1}]}, r"`features\.0\.name` must be a text"),
        ({"features": []}, r"names each column once, and at least one"),
        ({"metrics": {"rmse": "low"}}, r"`metrics\.rmse` must be a number"),
        ({"classes": None}, r"A classification has `classes`"),
        ({"inputs": "matrix"}, r"all lie in the tensor `inputs`"),
    ],
)
def test_malformed_field_is_named(
    fields: dict[str, Any], change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ManifestError, match=message):
        Manifest.from_json(json.dumps(fields | change))


def test_lacking_field_is_named(fields: dict[str, Any]) -> None:
    del fields["likelihood"]
    with pytest.raises(ManifestError, match="lacks `likelihood`"):
        Manifest.from_json(json.dumps(fields))


def test_columns_may_not_share_a_tensor(fields: dict[str, Any]) -> None:
    fields["features"][1]["tensor"] = "age"
    with pytest.raises(ManifestError, match="a tensor of its own"):
        Manifest.from_json(json.dumps(fields))


@pytest.mark.parametrize("text", ["{", "", b"\xff", '{"kl_weight": NaN}'])
def test_what_is_not_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(ManifestError, match="not JSON"):
        Manifest.from_json(text)


def test_directory_without_manifest_is_named(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=str(tmp_path)):
        Manifest.read(tmp_path)


@pytest.fixture
def model_directory(tmp_path: Path, fields: dict[str, Any]) -> Path:
    (tmp_path / "variables").mkdir()
    (tmp_path / "saved_model.pb").write_bytes(b"graph")
    (tmp_path / "variables" / "variables.index").write_bytes(b"weights")
    path = tmp_path / MANIFEST_PATH
    path.parent.mkdir()
    path.write_text(json.dumps(fields | {"files": file_digests(tmp_path)}))
    return tmp_path


def test_untouched_directory_verifies(model_directory: Path) -> None:
    manifest = Manifest.read(model_directory)
    assert set(manifest.files) == {"saved_model.pb", "variables/variables.index"}
    manifest.verify(model_directory)


def test_changed_file_is_named(model_directory: Path) -> None:
    (model_directory / "variables" / "variables.index").write_bytes(b"Weights")
    with pytest.raises(ManifestError, match=r"variables/variables\.index .* sha256"):
        Manifest.read(model_directory).verify(model_directory)


def test_missing_file_is_named(model_directory: Path) -> None:
    (model_directory / "saved_model.pb").unlink()
    with pytest.raises(ManifestError, match=r"saved_model\.pb is missing"):
        Manifest.read(model_directory).verify(model_directory)


def test_file_that_was_not_exported_is_named(model_directory: Path) -> None:
    (model_directory / "assets.extra" / "payload").write_bytes(b"!")
    with pytest.raises(ManifestError, match=r"assets\.extra/payload .* not exported"):
        Manifest.read(model_directory).verify(model_directory)


def test_manifest_is_read_without_tensorflow(model_directory: Path) -> None:
    program = (
        "import sys; from tfbbb.export import Manifest; Manifest.read(sys.argv[1]);"
        "sys.exit('tensorflow' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program, model_directory], check=True)


@pytest.fixture
def fields_of_version_3(fields: dict[str, Any]) -> dict[str, Any]:
    one = {"members": 1, "widest": 20, "outputs": 2, "drawn": 22}
    return fields | {
        "schema_version": 3,
        "signatures": {"serving_default": "local", "quantiles": "local"},
        "targets": {
            "shape": [],
            "support": None,
            "ordered": False,
            "discrete": False,
            "noise_size": 1,
        },
        "passes": {"local": one, "weight": one | {"drawn": 40}},
        "recalibration": {"class_name": "Temperature", "config": {"temperature": 2.0}},
        "lineage": {"job_id": "5f1d7e2a9c3b4d6e8f012345", "seed": 7},
        "recalibration_choice": {"chosen": "none"},
    }


def test_version_3_says_what_answers_by_which_method(
    fields: dict[str, Any], fields_of_version_3: dict[str, Any]
) -> None:
    manifest = Manifest.from_json(json.dumps(fields_of_version_3))
    assert json.loads(manifest.to_json()) == fields_of_version_3
    assert manifest.has_signature("quantiles")
    assert not manifest.has_signature("predict")
    del fields_of_version_3["lineage"], fields_of_version_3["recalibration_choice"]
    assert Manifest.from_json(json.dumps(fields_of_version_3)).lineage is None
    older = Manifest.from_json(json.dumps(fields))
    assert older.has_signature("predict")
    assert not older.has_signature("quantiles")


@pytest.mark.parametrize("name", ["signatures", "targets", "passes"])
def test_each_version_has_its_own_fields(
    name: str, fields: dict[str, Any], fields_of_version_3: dict[str, Any]
) -> None:
    lacking = {k: v for k, v in fields_of_version_3.items() if k != name}
    mixed = fields | {name: fields_of_version_3[name]}
    for changed in (lacking, mixed):
        with pytest.raises(
            ManifestError, match=rf"`{name}` belongs to the schema versions"
        ):
            Manifest.from_json(json.dumps(changed))


@pytest.mark.parametrize(
    ("class_name", "config", "word", "support"),
    [
        ("Normal", {"scale": None}, "real", likelihood_support("normal")),
        ("Gamma", {}, "positive", likelihood_support("gamma")),
        ("Poisson", {}, "counts", likelihood_support("poisson")),
        ("Categorical", {}, "classes", None),
        ("OrderedLogistic", {}, "classes", None),
        # Version 2 had the wrong words for these bounds.
        *(
            ("Beta", {"low": low, "high": high}, word, Support(low, high, closed=False))
            for low, high, word in (
                (0.0, 1.0, "unit interval"),
                (10.0, 20.0, "unit interval"),
                (-1.0, 1.0, "unit interval"),
                (0.0, 100.0, "positive"),
            )
        ),
        # A user's own likelihood.
        ("Tweedie", {}, "positive", likelihood_support("gamma")),
    ],
)
def test_version_2_has_the_support_of_its_likelihood(
    class_name: str,
    config: dict[str, Any],
    word: str,
    support: Support | None,
    fields_of_version_3: dict[str, Any],
) -> None:
    fields = fields_of_version_3 | {
        "schema_version": 2,
        "likelihood": {"class_name": class_name, "config": config},
    }
    fields["targets"] = fields["targets"] | {"support": word}
    manifest = Manifest.from_json(json.dumps(fields))
    assert manifest.targets is not None
    assert manifest.targets.support == support
    assert Manifest.from_json(manifest.to_json()) == manifest


def test_support_without_room_for_a_target_is_refused(
    fields_of_version_3: dict[str, Any],
) -> None:
    support = {"low": 1.0, "high": 1.0, "closed": False, "integer": False}
    fields_of_version_3["targets"]["support"] = support
    with pytest.raises(ManifestError, match=r"`targets\.support.* is wrong"):
        Manifest.from_json(json.dumps(fields_of_version_3))
