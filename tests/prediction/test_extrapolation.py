"""Predictions of rows beyond the training rows are widened, and no others."""

import copy

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

import tfbbb

RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, size=(300, 2)).astype(np.float32)
Y = (4.0 + 2.0 * np.sin(3.0 * X[:, :1])).astype(np.float32)
AMONG, BEYOND = X[:50] + np.float32(1e-3), np.float32([[2.0, 0.0], [0.5, 4.0]])


def network(likelihood="student_t", units=1, members=1):
    inputs = keras.Input((2,))
    hidden = tfbbb.layers.DenseVariational(8, activation="tanh")(inputs)
    outputs = tfbbb.layers.DenseVariational(units)(hidden)
    return tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood, members=members)


def widened(likelihood="student_t", units=1, members=1, y=Y, amplitude=1.5):
    """A model with a given amplitude, and one without, of the same weights."""
    keras.utils.set_random_seed(1)
    plain = network(likelihood, units, members)
    plain.likelihood.adapt(y)
    model = network(likelihood, units, members)
    model.set_weights(plain.get_weights())
    model.likelihood.set_weights(plain.likelihood.get_weights())
    model.familiarity = tfbbb.Familiarity.fit(X)
    locations = model.likelihood.locations(y)
    amplitudes = np.full(locations.shape[1], amplitude)
    model.extrapolation = tfbbb.Extrapolation(model.familiarity, locations, amplitudes)
    return model, plain


@pytest.fixture(scope="module")
def both():
    """A model with an extrapolation, and the same one without."""
    return widened()


@pytest.fixture
def model(both):
    return both[0]


@pytest.mark.parametrize(
    ("likelihood", "members", "method"),
    [
        ("student_t", 1, "local"),
        pytest.param("normal", 3, "linearised", marks=pytest.mark.slow),
    ],
)
def test_the_epistemic_variance_grows_by_the_square_of_the_deviation(
    likelihood, members, method
):
    model, plain = widened(likelihood, members=members)
    draws = 3000
    with_, without = (
        m.predictive(BEYOND, draws, method=method) for m in (model, plain)
    )
    deviation = model.extrapolation.stddev(BEYOND).numpy() * np.std(Y)
    assert (deviation > 0.5).all()
    added = with_.epistemic - without.epistemic
    # Of `draws` normals, independent of the network: of their mean square, and of
    # their product with the network's own deviations.
    own = np.sqrt(without.epistemic)
    error = deviation * np.sqrt(2.0 * deviation**2 + 4.0 * own**2) / np.sqrt(draws / 2)
    np.testing.assert_array_less(np.abs(added - deviation**2), 4.0 * error)
    np.testing.assert_allclose(with_.mean, without.mean, atol=1e-4)
    np.testing.assert_allclose(with_.aleatoric, without.aleatoric, rtol=1e-5)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("likelihood", "method"),
    [
        (tfbbb.likelihoods.LogNormal(scale=1e-3), "weight"),
        (tfbbb.likelihoods.Poisson(), "local"),
    ],
)
def test_a_location_on_a_logarithmic_scale_is_widened_beyond_its_bounds(
    likelihood, method
):
    y = np.round(1e6 * Y)
    model, _ = widened(type(likelihood).from_config(likelihood.get_config()), y=y)
    for layer in model.variational_layers:
        for weight in layer.variational_weights:
            weight.variables["log_scale"].assign(np.full(weight.shape, -12.0))
    # The network goes far beyond the greatest target, where its location is bounded.
    rows = np.float32([[40.0, 0.0]])
    model.variational_weights[-1].variables["mean"].assign([30.0])
    model.extrapolation.slopes[0] = 0.05
    deviation = model.extrapolation.stddev(rows).numpy().item()
    is_count = isinstance(likelihood, tfbbb.likelihoods.Poisson)
    units = 1.0 if is_count else model.likelihood.target_scale.numpy().item()
    further = units * deviation * stats.norm.ppf([0.75, 0.95])
    draws = 6000
    found = model.predictive(rows, draws, method=method)
    middle = found.quantile(0.5).item()
    assert y.max() < middle < 1.66 * np.e * y.mean()
    # Of an order statistic of `draws` numbers.
    error = 5.0 * 2.1 / np.sqrt(draws)
    for level, each in zip([0.75, 0.95], further, strict=True):
        above = found.quantile(level).item() / middle
        below = found.quantile(1.0 - level).item() / middle
        expected = [1.0 + each / (1.0 + each), 1.0 + each]
        np.testing.assert_allclose([above, 1.0 / below], expected, rtol=error)
    # The factors of two antithetic draws add up to 2.
    assert found.mean.item() == pytest.approx(middle, rel=error)


def test_rows_among_the_training_rows_keep_their_predictions(both):
    model, plain = both
    np.testing.assert_array_equal(model.extrapolation.stddev(AMONG), 0.0)
    low, high = model.predictive(AMONG).interval(0.9)
    expected = plain.predictive(AMONG).interval(0.9)
    np.testing.assert_allclose([low, high], expected, rtol=1e-5)


def test_the_deviation_is_as_defined(model):
    familiarity = model.familiarity
    known, row = familiarity.rows.numpy(), familiarity.encode(BEYOND).numpy()
    distances = np.sqrt(np.square(known - row[:, np.newaxis]).sum(axis=2))
    gaps = np.abs(known - row[:, np.newaxis]).min(axis=1).max(axis=1)
    order = np.argsort(distances, axis=1)

    def own_distance(place):
        others = np.sqrt(np.square(known - known[place]).sum(axis=1))
        return np.sort(np.delete(others, place))[:5].mean()

    own = np.array([own_distance(place) for place in range(len(known))])
    relative = np.sort(distances, axis=1)[:, :5].mean(axis=1)
    relative /= np.maximum(own[order[:, :5]].mean(axis=1), 0.05)
    # Of gaps and distances that 99 % of the training rows do not exceed.
    gap_unit, _, distance_unit = familiarity._units
    exceedance = np.maximum(gaps / gap_unit, relative / distance_unit)
    locations = model.likelihood.locations(Y)
    spread = locations[order[:, :20], 0].std(axis=1)
    expected = 0.5 * spread * np.sqrt(np.log(np.maximum(exceedance, 1.0)))
    found = tfbbb.Extrapolation(familiarity, locations, [0.5]).stddev(BEYOND)
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-4)
    # It is at most the deviation of all targets.
    found = tfbbb.Extrapolation(familiarity, locations, [100.0]).stddev(BEYOND)
    np.testing.assert_allclose(found, np.full((2, 1), np.std(locations)), rtol=1e-5)


def test_numbers_outside_their_range_add_the_variance_of_their_slopes(model):
    familiarity = model.familiarity
    locations = model.likelihood.locations(Y)
    slopes = np.float32([[0.7], [0.2]])
    extrapolation = tfbbb.Extrapolation(familiarity, locations, [0.0], slopes)
    least, most = X.min(axis=0), X.max(axis=0)
    inside = most - 0.25 * (most - least)
    # Outside by 3 ranges, by half a range, and by both.
    shares = np.float32([[3.0, 0.0], [0.0, -0.5], [3.0, -0.5]])
    ends = np.where(shares < 0.0, least, most)
    rows = np.where(shares == 0.0, inside, ends + shares * (most - least))
    found = extrapolation.stddev(rows.astype(np.float32)).numpy()[:, 0]
    by_column = np.square(slopes[:, 0]) * [3.0 + 9.0, 0.5 + 0.25]
    expected = np.sqrt([*by_column, by_column.sum()])
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_slopes_are_of_what_the_important_columns_explain():
    rows = RNG.uniform(size=(400, 3)).astype(np.float32)
    targets = 10.0 * rows[:, :1] + RNG.normal(size=(400, 1))
    familiarity = tfbbb.Familiarity.fit(rows)
    likelihood = tfbbb.likelihoods.Normal()
    likelihood.build((None, 1))
    found = tfbbb.Extrapolation.fit(familiarity, likelihood, targets)
    # The forests' error is larger than the noise, of variance 1.
    explained = found.slopes[0, 0] ** 2
    assert 0.75 * 100.0 / 12.0 < explained < 1.1 * 100.0 / 12.0
    assert (found.slopes[1:, 0] < 0.4 * found.slopes[0, 0]).all()


def test_a_new_category_is_beyond_the_training_rows():
    columns = {
        "x": RNG.normal(size=400).astype(np.float32),
        "fuel": RNG.choice(["petrol", "diesel"], 400).astype(object),
    }
    familiarity = tfbbb.Familiarity.fit(columns)
    locations = RNG.normal(size=(400, 1))
    extrapolation = tfbbb.Extrapolation(familiarity, locations, [1.0])
    rows = {
        "x": np.float32([0.0, 0.0]),
        "fuel": np.array(["petrol", "hydrogen"], dtype=object),
    }
    known, new = extrapolation.stddev(rows).numpy()[:, 0]
    assert known == 0.0
    assert new > 0.5 * np.sqrt(np.log(2.0))


def test_fitted_intervals_cover_what_blocks_leave_out(model):
    fitted = tfbbb.Extrapolation.fit(model.familiarity, model.likelihood, Y)
    assert fitted.trial["coverage_90_without"] < 0.5
    assert 0.75 < fitted.trial["coverage_90"] <= 1.0


@pytest.mark.parametrize(
    ("likelihood", "targets"),
    [
        (tfbbb.likelihoods.Normal(), [-1.0, 2.0, 7.0]),
        (tfbbb.likelihoods.Gamma(), [0.5, 2.0, 7.0]),
        (tfbbb.likelihoods.LogNormal(), [0.5, 2.0, 7.0]),
        (tfbbb.likelihoods.Poisson(), [1.0, 2.0, 7.0]),
    ],
)
def test_outputs_at_the_locations_of_targets_have_their_middle(likelihood, targets):
    likelihood.build((None, 1))
    likelihood.adapt(targets)
    outputs = tf.constant(likelihood.locations(targets), tf.float32)
    log_normal = isinstance(likelihood, tfbbb.likelihoods.LogNormal)
    middle = (
        likelihood.quantile(0.5, outputs) if log_normal else likelihood.mean(outputs)
    )
    np.testing.assert_allclose(middle[:, 0], targets, rtol=1e-5)


def test_files_and_their_signatures_widen_as_the_model_does(tmp_path):
    model, _ = widened("log_normal", members=2)
    model.recalibrate(X[:100], Y[:100], "conformal_intervals")
    model.save(tmp_path / "model.keras")
    model.export_predictive(tmp_path / "model", method="local", num_samples=50)
    rows = np.concatenate([AMONG[:3], BEYOND])
    read = keras.models.load_model(tmp_path / "model.keras")
    exported = tfbbb.load(tmp_path / "model")
    expected = model.predictive(rows, 50, method="local")
    for other in (read, exported):
        found = other.predictive(rows, 50, method="local")
        np.testing.assert_allclose(found.variance, expected.variance, rtol=1e-4)
        np.testing.assert_allclose(
            found.interval(0.9), expected.interval(0.9), rtol=1e-4
        )
        np.testing.assert_allclose(found.familiarity, expected.familiarity)
    signatures = tf.saved_model.load(str(tmp_path / "model")).signatures
    found = signatures["serving_default"](inputs=tf.constant(rows))
    np.testing.assert_allclose(found["variance"], expected.variance, rtol=1e-4)
    np.testing.assert_allclose(found["familiarity"], expected.familiarity)
    np.testing.assert_allclose(exported.familiarity(rows), expected.familiarity)
    assert exported.manifest.familiarity.num_rows == len(X)
    far = np.full((1, 2), 50.0, np.float32)
    ((sentence, *_),) = exported.describe_unlike(far, exported.familiarity(far))
    assert sentence.startswith("Column 'x0' is 50; training rows reach ")


def test_another_familiarity_removes_the_extrapolation():
    model, _ = widened()
    fitted = model.extrapolation
    with pytest.warns(UserWarning, match="Another familiarity removes") as found:
        model.familiarity = tfbbb.Familiarity.fit(X[:200])
    assert found[0].filename == __file__
    assert model.extrapolation is None
    for value, message in ((fitted, "must be fitted to it"), (2.0, "must be a `tfbbb")):
        with pytest.raises(ValueError, match=message):
            model.extrapolation = value


def test_inference_and_members_keep_familiarity_and_extrapolation():
    model, _ = widened("normal")
    new = tfbbb.inference.Laplace("kron", "last_layer").fit(model, X, Y, verbose=0)
    expected = model.extrapolation.stddev(BEYOND)
    for each in (new, *new.members):
        np.testing.assert_array_equal(each.familiarity(X), model.familiarity(X))
        np.testing.assert_array_equal(each.extrapolation.stddev(BEYOND), expected)


def test_a_familiarity_without_its_rows_is_refused(model):
    copied = copy.deepcopy(model)
    with pytest.raises(ValueError, match=r"Fit it again to them, `Familiarity\.fit"):
        tfbbb.Extrapolation.fit(copied.familiarity, model.likelihood, Y)


COLUMNS = {
    "a": RNG.normal(size=300).astype(np.float32),
    "b": RNG.normal(size=300).astype(np.float32),
    "fuel": RNG.choice(["petrol", "diesel"], 300).astype(object),
}


@pytest.mark.parametrize("log_units", [0.0, 0.5])
def test_missing_cells_add_the_variance_of_their_changes_together(log_units):
    familiarity = tfbbb.Familiarity.fit(COLUMNS)
    changes = RNG.normal(size=(4, 3, 1))
    made = tfbbb.Extrapolation(
        familiarity,
        RNG.normal(size=(300, 1)),
        [1.0],
        changes=changes,
        log_units=[log_units],
    )
    read = tfbbb.Extrapolation.from_config(made.get_config(), familiarity)
    rows = {
        "a": np.float32([0.1, np.nan, 0.1, np.nan]),
        "b": np.float32([0.1, 0.1, 0.1, 0.1]),
        "fuel": np.array(["petrol", "petrol", "", ""], dtype=object),
    }
    missing = np.float32([[0, 0, 0], [1, 0, 0], [0, 0, 1], [1, 0, 1]])
    expected = np.linalg.norm(missing @ changes[..., 0].T, axis=1)
    if log_units:
        # As likely as a normal number on the scale of log y, y is divided by 1 + d.
        expected = np.expm1(1.645 * log_units * expected) / (1.645 * log_units)
    for extrapolation in (made, read):
        found = extrapolation.stddev(rows).numpy()[:, 0]
        np.testing.assert_allclose(found, expected, rtol=1e-5)
