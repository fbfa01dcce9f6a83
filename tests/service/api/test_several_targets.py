"""A version of several targets, asked over HTTP."""

import keras
import numpy as np
import pytest

import tfbbb
from service.shared.settings import Settings
from tests.service.serving import ADMIN_KEY, ask, serving
from tfbbb.client import Client

ROWS = [[1.0, 2.0], [0.5, -0.5]]
TARGETS = ["width", "height"]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """The export of a network with a random covariance."""
    inputs = keras.Input((2,))
    outputs = tfbbb.layers.DenseVariational(5)(inputs)
    likelihood = tfbbb.likelihoods.MultivariateNormal(heteroscedastic=True)
    model = tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)
    path = tmp_path_factory.mktemp("models") / "sizes" / "1"
    model.export_predictive(path, target=TARGETS, feature_names=["x", "z"])
    return path


@pytest.fixture(scope="module")
def client(path):
    with serving(Settings(models=path.parents[1])) as client:
        yield client


def test_answers_name_the_targets_and_have_boxes_that_hold_all(client, path):
    parameters = {"joint_intervals": [0.8], "intervals": [0.8]}
    body = {
        "instances": ROWS,
        "parameters": parameters,
        "targets": [[1.0, 2.0], [0.5, None]],
    }
    answer = ask(client, "sizes", body).json()
    assert answer["targets"] == TARGETS
    assert answer["calibration"]["joint_intervals"].startswith("none")
    first, second = answer["predictions"]
    live = tfbbb.load(path).predictive(ROWS)
    lower, upper = live.interval([0.8], joint=True)
    np.testing.assert_allclose(first["joint_lower"], lower[0], rtol=1e-5)
    np.testing.assert_allclose(second["joint_upper"], upper[1], rtol=1e-5)
    assert np.all(np.less(first["joint_lower"], first["lower"]))
    np.testing.assert_allclose(
        first["log_prob"], live.log_prob(np.ones((2, 2)) * [1, 2])[0], rtol=1e-4
    )
    assert second["log_prob"] is None
    described = client.get("/v1/models/sizes").json()
    assert described["description"]["target"] == TARGETS


def test_the_client_has_a_column_for_each_target(client):
    with Client(str(client.base_url), ADMIN_KEY) as asking:
        found = asking.model("sizes").predict(ROWS, joint_intervals=[0.8])
        assert found.targets == tuple(TARGETS)
        lower, upper = found.interval(0.8, joint=True)
        assert lower.shape == upper.shape == (2, 2)
        names = found.to_table().column_names
    assert {"mean_width", "mean_height", "joint_lower_80_width"} <= {*names}
    with pytest.raises(ValueError, match="joint_intervals"):
        found.interval(0.5, joint=True)
