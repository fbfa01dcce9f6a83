"""What is fitted is kept with the model, which answers recalibrated from then on."""

import keras
import numpy as np
import pytest

import tfbbb
from tests.prediction.recalibration.known_models import (
    DRAWS,
    FRESH,
    DrawnModel,
    X,
    drawn,
    network,
    spread_out,
)
from tfbbb import recalibration
from tfbbb.prediction.recalibration import (
    ConformalIntervals,
    ConformalSets,
    IsotonicPIT,
    Temperature,
    VarianceScaling,
    VectorScaling,
)

ROWS = X[:100]
FITTED = [
    Temperature(1.3),
    VarianceScaling([2.0]),
    IsotonicPIT([0.05, 0.3, 0.99], [0.1, 0.2, 0.9]),
    ConformalIntervals([[0.5, 2.0, 1.0]]),
]


def network_for(fitted):
    of_classes = isinstance(fitted, Temperature)
    return network(3, "categorical") if of_classes else network()


@pytest.mark.parametrize(
    ("units", "likelihood", "expected"),
    [
        (3, "categorical", Temperature),
        (1, "bernoulli", Temperature),
        (2, "normal", VarianceScaling),
        (1, "laplace", VarianceScaling),
        (1, "gamma", IsotonicPIT),
        (2, "gamma", ConformalIntervals),
        (1, "negative_binomial", ConformalIntervals),
    ],
)
def test_the_automatic_method_suits_the_likelihood(units, likelihood, expected):
    model = DrawnModel(units, likelihood, spread=1.0)
    y = drawn(model, ROWS)
    found = tfbbb.recalibrate(model, ROWS, y, num_samples=DRAWS)
    assert type(found) is expected
    assert model.recalibration is found


def test_a_method_is_a_name_or_an_object():
    model = DrawnModel()
    y = spread_out(model, ROWS, 2.0)
    first = model.recalibrate(ROWS, y, "variance_scaling", num_samples=DRAWS)
    # Fitted on the model itself, not on what it was recalibrated to.
    again = model.recalibrate(ROWS, y, VarianceScaling(7.0), num_samples=DRAWS)
    assert again == first
    assert isinstance(model.recalibrate(ROWS, y, "isotonic_pit"), IsotonicPIT)


def test_none_removes_the_recalibration():
    model = DrawnModel()
    before = model.predictive(ROWS).variance
    model.recalibration = VarianceScaling(2.0)
    kept = model.predictive(ROWS)
    model.recalibration = None
    np.testing.assert_array_equal(model.predictive(ROWS).variance, before)
    # A prediction stays what it was.
    lower, upper = kept.interval(0.9)
    narrow = model.predictive(ROWS).interval(0.9)
    np.testing.assert_allclose(upper - lower, 2.0 * (narrow[1] - narrow[0]))


@pytest.mark.parametrize("fitted", FITTED, ids=repr)
def test_a_recalibration_is_saved_and_loaded_with_the_model(fitted, tmp_path):
    model = network_for(fitted)
    model.recalibration = fitted
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.recalibration == fitted
    config = recalibration.serialize(fitted)
    assert hash(recalibration.get(config)) == hash(fitted)


def test_further_training_removes_the_recalibration_with_a_warning():
    model = network()
    y = drawn(model, ROWS)
    model.compile("adam")
    model.recalibration = VarianceScaling(2.0)
    with pytest.warns(UserWarning, match="not recalibrated any more"):
        model.fit(ROWS, y, epochs=1, verbose=0)
    assert model.recalibration is None


def test_a_fit_that_never_began_keeps_the_recalibration():
    model = network()
    model.compile("adam")
    model.recalibration = VarianceScaling(2.0)
    with (
        pytest.warns(UserWarning, match="not recalibrated any more"),
        pytest.raises(ValueError, match="must have the shape"),
    ):
        model.fit(ROWS, np.zeros((100, 3)), verbose=0)
    assert model.recalibration == VarianceScaling(2.0)


def test_members_and_pruned_copies_have_no_recalibration():
    model = network(members=2)
    model.recalibration = VarianceScaling(2.0)
    assert model.members[1].recalibration is None
    pruned = tfbbb.compression.prune(model, 0.5)
    assert pruned.recalibration is None
    assert model.recalibration == VarianceScaling(2.0)


def test_a_plain_model_is_refused():
    model = keras.Sequential([keras.Input((3,)), tfbbb.layers.DenseVariational(1)])
    with pytest.raises(
        ValueError, match=r"must be a `tfbbb.BayesianModel`.*Sequential"
    ):
        tfbbb.recalibrate(model, ROWS, np.zeros(100))


def test_an_unknown_method_is_refused():
    with pytest.raises(
        ValueError, match=r"'conformal_intervals'.*recalibration='sigmoid'"
    ):
        DrawnModel().recalibrate(ROWS, np.zeros(100), "sigmoid")


@pytest.mark.parametrize(
    ("method", "rows"), [("variance_scaling", 20), ("isotonic_pit", 50)]
)
def test_too_few_rows_are_refused(method, rows):
    model = DrawnModel()
    y = drawn(model, ROWS)
    with pytest.raises(
        ValueError, match=rf"needs {rows} held-out rows.*{rows - 1} rows"
    ):
        model.recalibrate(ROWS[: rows - 1], y[: rows - 1], method)
    model.recalibrate(ROWS[:rows], y[:rows], method)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros(99), "Received: 100 rows and 99 targets"),
        (np.zeros((100, 2)), r"must have the shape \[rows\] or \[rows, 1\]"),
        (np.full(100, np.nan), "must be finite numbers"),
        (np.where(np.arange(100) == 7, np.inf, 0.0), "in row 7"),
    ],
)
def test_a_refused_fit_keeps_the_previous_recalibration(y, message):
    model = DrawnModel()
    model.recalibration = VarianceScaling(2.0)
    with pytest.raises(ValueError, match=message):
        model.recalibrate(ROWS, y)
    assert model.recalibration == VarianceScaling(2.0)


@pytest.mark.parametrize(
    ("units", "likelihood", "method"),
    [
        (3, "categorical", "temperature"),
        (1, "gamma", IsotonicPIT()),
        (1, "normal", ConformalIntervals(density=VarianceScaling())),
        (3, "categorical", "conformal_sets"),
    ],
    ids=str,
)
def test_a_row_of_weight_two_counts_as_two_rows(units, likelihood, method):
    # Of gamma, a knot more or less moves the ends of few draws far.
    make = network if likelihood == "gamma" else DrawnModel
    model = make(units, likelihood, 1.0)
    x, options = X[:400], {"num_samples": DRAWS}
    y = drawn(model, x)
    if likelihood == "normal":
        y = spread_out(model, x, np.linspace(0.5, 3.0, len(x))[:, np.newaxis])
    counts = np.repeat([1, 3], 200)
    rows = np.repeat(np.arange(400), counts)
    weighted = model.recalibrate(x, y, method, sample_weight=counts, **options)
    answers = model.predictive(FRESH[:50], **options)
    repeated = model.recalibrate(x[rows], y[rows], method, **options)
    expected = model.predictive(FRESH[:50], **options)
    if likelihood == "categorical":
        np.testing.assert_allclose(
            answers.probabilities, expected.probabilities, rtol=1e-4
        )
        sets = [each.prediction_set(0.8).mean() for each in (answers, expected)]
        assert sets[0] == pytest.approx(sets[1], abs=0.05)
    else:
        # Weighted rows count for fewer, which moves knots and ranks by one of them.
        lengths = [np.ptp(each.interval(0.8), axis=0) for each in (answers, expected)]
        np.testing.assert_allclose(*lengths, rtol=0.1)
    plain = model.recalibrate(x, y, method, **options)
    assert plain not in (weighted, repeated)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(99), r"one number per row.*Received.*\(99,\)"),
        (-np.ones(100), r"at least 0.*Received: -1"),
        (np.zeros(100), r"all rows are zero"),
        (np.arange(100) < 10, r"needs 20 held-out rows.*100 rows, which count for 10"),
    ],
)
def test_weights_that_are_none_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        DrawnModel().recalibrate(ROWS, X[:100, :1], sample_weight=weights)


BENT, BOUNDED = IsotonicPIT([0.1, 0.6], [0.2, 0.7]), "beyond their bounds.*likelihood="


@pytest.mark.parametrize(
    ("units", "likelihood", "other", "message"),
    [
        (3, "categorical", ConformalIntervals([[1.0]]), "Classes have no intervals"),
        (2, "normal", ConformalIntervals([[1.0]]), "has 2 targets.*targets=1, rows=1"),
        (3, "categorical", ConformalSets([[0.5], [0.5]]), "one class, and thus one"),
        (1, "normal", ConformalSets([[0.5]]), r"sets consist of classes.*Normal"),
        (3, "categorical", BENT, "needs a likelihood with a density.*Categorical"),
        (1, "poisson", BENT, "needs a likelihood with a density.*Poisson"),
        (2, "normal", BENT, "needs one target.*Received: 2 targets"),
        (1, "normal", VarianceScaling([1.0, 2.0]), "has 1 targets.*Received: factors="),
        (3, "categorical", VarianceScaling(2.0), BOUNDED),
        (1, "poisson", VarianceScaling(2.0), BOUNDED),
        (1, "log_normal", VarianceScaling(2.0), BOUNDED),
        (1, "beta", VarianceScaling(2.0), BOUNDED),
    ],
)
def test_a_recalibration_of_another_model_is_refused(units, likelihood, other, message):
    with pytest.raises(ValueError, match=message):
        DrawnModel(units, likelihood).recalibration = other


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        (ConformalIntervals, ([],), "`scores` must be lists of finite numbers"),
        (ConformalIntervals, ([[-1.0]],), "`scores` must be lists of finite numbers"),
        (ConformalIntervals, ([[np.nan]],), "`scores` must be lists of finite numbers"),
        (ConformalIntervals, ([[1.0], [1.0, 2.0]],), "`scores` must be lists"),
        (ConformalIntervals, ([[[1.0]]],), "`scores` must be lists"),
        (IsotonicPIT, ([0.1, 0.2], [0.1]), "increasing numbers strictly.*Received"),
        (IsotonicPIT, ([0.5], [0.5]), "increasing numbers strictly.*Received"),
        (IsotonicPIT, ([0.2, 0.1], [0.1, 0.2]), "increasing numbers strictly"),
        (IsotonicPIT, ([0.1, 0.2], [0.2, 0.2]), "increasing numbers strictly"),
        (IsotonicPIT, ([0.0, 0.2], [0.1, 0.2]), "increasing numbers strictly"),
        (IsotonicPIT, ([0.1, np.nan], [0.1, 0.2]), "increasing numbers strictly"),
        (VectorScaling, (0.0,), "`slopes` must be positive.*Received"),
        (VectorScaling, ([1.0, -2.0],), "`slopes` must be positive.*Received"),
        (VectorScaling, (1.0, np.nan), "`slopes` must be positive.*Received"),
    ],
)
def test_arguments_that_make_no_recalibration_are_refused(method, arguments, message):
    with pytest.raises(ValueError, match=message):
        method(*arguments)
