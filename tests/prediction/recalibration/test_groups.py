import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

import tfbbb
from tests.prediction.recalibration.known_models import (
    DrawnModel,
    Known,
    X,
    network,
)
from tfbbb.prediction.recalibration import ConformalIntervals, VarianceScaling
from tfbbb.prediction.recalibration.fitting import labels_of


def test_coverage_of_a_group_is_exact_over_held_out_rows():
    generator = np.random.default_rng(0)
    coverage = []
    for _ in range(250):
        groups = np.repeat(["a", "b"], [25, 30])
        y = np.where(groups == "a", 1.0, 5.0) * generator.standard_t(3, size=55)
        known = Known(stats.norm(), 55)
        fitted = ConformalIntervals().fitted(
            tfbbb.likelihoods.Normal(), known, y[:, None], None, "g", groups
        )
        numbers = fitted.groups({"g": tf.constant(["a", "b", "c"])})
        reach = fitted.reach(0.9, numbers)[:, 0]
        truth = stats.t(3)
        coverage.append(1 - 2 * truth.sf(reach[:2] / [1.0, 5.0]))
    exact = np.ceil(np.array([26, 31]) * 0.9 - 1e-6) / [26, 31]
    error = stats.sem(coverage)
    assert np.all(np.abs(np.mean(coverage, axis=0) - exact) < 4 * error)


def test_small_and_unknown_groups_share_the_intervals_of_all_rows():
    labels = np.repeat(["many", "few"], [30, 19])
    y = np.arange(49.0)[:, None]
    known = Known(stats.norm(0.0, 100.0), 49)
    fitted = ConformalIntervals().fitted(
        tfbbb.likelihoods.Normal(), known, y, None, "g", labels
    )
    assert fitted.group_values == ("many",)
    numbers = fitted.groups({"g": tf.constant(["few", "other", "", "many"])})
    np.testing.assert_array_equal(numbers, [0, 0, 0, 1])
    reach = fitted.reach(0.8, numbers)[:, 0]
    np.testing.assert_allclose(reach, [0.39, 0.39, 0.39, 0.24])
    # 30 rows say nothing about 98 %, all 49 do.
    np.testing.assert_allclose(fitted.reach(0.98, numbers)[:, 0], [0.48] * 4)


def test_missing_numbers_are_a_group():
    labels = np.repeat([np.nan, 1.5], 20).astype("float32")
    known = Known(stats.norm(0.0, 100.0), 40)
    fitted = ConformalIntervals().fitted(
        tfbbb.likelihoods.Normal(),
        known,
        np.arange(40.0)[:, None],
        by="g",
        labels=labels,
    )
    assert set(fitted.group_values) == {1.5, None}
    column = tf.constant([np.nan, 1.5, 2.0], tf.float32)
    numbers = fitted.groups({"g": column})
    of = dict(enumerate(fitted.group_values, start=1))
    assert [of.get(n, "none") for n in numbers] == [None, 1.5, "none"]


def columns_model():
    keras.utils.set_random_seed(0)
    inputs = {
        "area": keras.Input((), name="area"),
        "street": keras.Input((), name="street", dtype="string"),
    }
    encoded = keras.layers.StringLookup(vocabulary=["mill", "park"], output_mode="int")
    street = keras.ops.cast(encoded(inputs["street"]), "float32")
    stacked = keras.ops.stack([inputs["area"], street], axis=-1)
    outputs = tfbbb.layers.DenseVariational(1)(stacked)
    return tfbbb.BayesianModel(inputs, outputs)


def test_saved_and_loaded_models_know_the_groups(tmp_path):
    model = columns_model()
    generator = np.random.default_rng(0)
    street = generator.choice(["mill", "park"], size=100)
    x = {"area": generator.normal(size=100).astype("float32"), "street": street}
    y = np.where(street == "mill", 1.0, 9.0)[:, None] * generator.normal(size=(100, 1))
    method = ConformalIntervals(density=VarianceScaling())
    fitted = model.recalibrate(x, y, method, by="street")
    assert fitted.group_values == ("mill", "park")
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.recalibration == fitted
    model.export_predictive(tmp_path / "1")
    loaded = tfbbb.load(tmp_path / "1")
    more = {"area": np.zeros(3, "float32"), "street": ["mill", "park", "other"]}
    arrays = {name: np.asarray(values) for name, values in more.items()}
    expected = np.stack(model.predictive(arrays).interval(0.9))
    widths = (expected[1] - expected[0])[:, 0]
    assert widths[0] < widths[2] < widths[1]
    for found in (
        again.predictive(arrays).interval(0.9),
        loaded.predictive(more).interval(0.9),
    ):
        np.testing.assert_allclose(np.stack(found), expected, rtol=0.1, atol=0.1)
    bounds = loaded.ask("intervals", more, [0.5, 0.9])
    np.testing.assert_allclose(bounds[:, :, 1], expected.swapaxes(0, 1), rtol=1e-4)
    with pytest.raises(ValueError, match="takes 199 held-out rows"):
        loaded.ask("intervals", more, [0.5, 0.995])


@pytest.mark.parametrize(
    ("dtype", "values", "shape"),
    [
        ("int64", [2**40, 2**40 + 1], ()),
        ("bool", [False, True], (1,)),
        ("float64", [1.7e9, 1.7e9 + 1.0], ()),
    ],
)
def test_groups_may_be_integers_booleans_and_dates(dtype, values, shape):
    keras.utils.set_random_seed(0)
    inputs = {
        "area": keras.Input((1,), name="area"),
        "group": keras.Input(shape, name="group", dtype=dtype),
    }
    outputs = tfbbb.layers.DenseVariational(1)(inputs["area"])
    model = tfbbb.BayesianModel(inputs, outputs)
    generator = np.random.default_rng(0)
    codes = np.arange(100) % 2
    x = {
        "area": generator.normal(size=(100, 1)).astype("float32"),
        "group": np.array(values, dtype)[codes].reshape(-1, *shape),
    }
    y = (1.0 + 9.0 * codes[:, None]) * generator.normal(size=(100, 1))
    fitted = model.recalibrate(x, y, "conformal_intervals", by="group")
    assert sorted(fitted.group_values) == sorted(values)
    lower, upper = model.predictive(x).interval(0.9)
    widths = (upper - lower)[:, 0]
    assert widths[codes == 1].min() > widths[codes == 0].max()
    config = json.loads(json.dumps(tfbbb.recalibration.serialize(fitted)))
    assert tfbbb.recalibration.get(config) == fitted


def test_only_conformal_methods_have_groups():
    with pytest.raises(ValueError, match=r"Groups have intervals or sets of their own"):
        DrawnModel().recalibrate(X[:50], X[:50, :1], "variance_scaling", by=0)


@pytest.mark.parametrize("by", [7, "street"])
def test_by_must_be_an_input(by):
    with pytest.raises(ValueError, match="`by` must be the name of an input column"):
        labels_of(network(), X, by)
