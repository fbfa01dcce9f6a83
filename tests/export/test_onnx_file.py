"""An ONNX file answers as the live model."""

import keras
import numpy as np
import onnxruntime
import pytest

import tfbbb
from tests.bayes.likelihoods.test_contract import EVERY, made, size_of, targets_of
from tests.export.test_predictive import X, network
from tfbbb.layers import Conv2DVariational, DenseVariational
from tfbbb.tables.text_features import HashedText

# In short; other tests have normals.
SHORT = {"categorical"}
MOMENTS = {"mean", "variance", "epistemic", "aleatoric"}


def run(path, tensors):
    session = onnxruntime.InferenceSession(path)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, tensors), strict=True))


def assert_as_live(found, live):
    for name, values in found.items():
        expected = np.asarray(getattr(live, name))
        scale = np.abs(expected).max()
        np.testing.assert_allclose(values, expected, 1e-5, 1e-6 * scale, err_msg=name)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        pytest.param(
            *kind.values,
            id=kind.id,
            marks=[] if kind.id in SHORT else [pytest.mark.slow],
        )
        for kind in EVERY
    ],
)
def test_every_likelihood_answers_as_live(name, arguments, tmp_path):
    likelihood = made(name, arguments)
    num_targets = 2 if likelihood.task == "regression" else 1
    live = network(likelihood, likelihood.num_outputs(size_of(likelihood, num_targets)))
    targets = targets_of(likelihood, rows=50, num_targets=num_targets)
    live.likelihood.adapt(targets)
    path = tmp_path / "a.onnx"
    live.export_predictive(path, format="onnx", num_samples=20, seed=5)
    found = run(path, {"inputs": X})
    assert len(found) == (3 if live.likelihood.task == "classification" else 4)
    assert_as_live(found, live.predictive(X, 20, "weight", seed=5))


def test_members_and_a_recalibration_answer_as_live(tmp_path):
    live = network(tfbbb.likelihoods.Normal(), 1, members=3)
    targets = 50.0 + 10.0 * X[:, :1]
    live.likelihood.adapt(targets)
    rows = np.random.default_rng(1).normal(size=(40, 3)).astype("float32")
    live.recalibrate(rows, 50.0 + 10.0 * rows[:, :1], method="variance_scaling")
    live.export_predictive(tmp_path / "a.onnx", format="onnx", num_samples=30)
    found = run(tmp_path / "a.onnx", {"inputs": X})
    assert set(found) == MOMENTS | {"between_members"}
    assert_as_live(found, live.predictive(X, 30, "weight"))


def test_convolutions_answer_as_live(tmp_path):
    inputs = keras.Input((16,))
    image = keras.layers.Reshape((4, 4, 1))(inputs)
    hidden = Conv2DVariational(2, 3, activation="relu", padding="same")(image)
    hidden = Conv2DVariational(3, 2)(keras.layers.MaxPooling2D()(hidden))
    outputs = DenseVariational(1)(keras.layers.Flatten()(hidden))
    live = tfbbb.BayesianModel(inputs, outputs)
    x = np.random.default_rng(0).normal(size=(5, 16)).astype("float32")
    live.export_predictive(tmp_path / "a.onnx", format="onnx", num_samples=20)
    assert_as_live(
        run(tmp_path / "a.onnx", {"inputs": x}), live.predictive(x, 20, "weight")
    )


def test_what_onnx_has_not_is_refused_by_name(tmp_path):
    inputs = {"street": keras.Input((), dtype="string", name="street")}
    hashed = HashedText([4])([inputs["street"]])
    live = tfbbb.BayesianModel(inputs, DenseVariational(1)(hashed))
    with pytest.raises(ValueError, match=r"no counterpart in ONNX.*StringToHash"):
        live.export_predictive(tmp_path / "a.onnx", format="onnx")
    assert list(tmp_path.iterdir()) == []


def test_wrong_arguments_are_refused(tmp_path):
    live = network(tfbbb.likelihoods.Normal(), 1)
    path = tmp_path / "a.onnx"
    with pytest.raises(ValueError, match="Received: format='pickle'"):
        live.export_predictive(path, format="pickle")
    with pytest.raises(ValueError, match="num_samples"):
        live.export_predictive(path, format="onnx", num_samples=1)
    assert not path.exists()
    path.write_text("mine")
    with pytest.raises(FileExistsError):
        live.export_predictive(path, format="onnx")
    assert path.read_text() == "mine"
