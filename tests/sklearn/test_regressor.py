import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse, stats
from sklearn.exceptions import NotFittedError

import tfbbb
from tests.sklearn.estimators import (
    SHORTEST,
    houses,
    line,
    regressor,
    regressor_of_houses,
    regressor_of_line,
)
from tfbbb.sklearn import BayesianRegressor
from tfbbb.tables import TableError


@pytest.fixture(scope="module")
def fitted():
    return regressor_of_line()


@pytest.fixture(scope="module")
def of_houses():
    return regressor_of_houses()


def test_learns_a_line_with_its_noise(fitted):
    x, y = line(200, seed=1)
    mean, std = fitted.predict(x, return_std=True)
    np.testing.assert_array_equal(mean, fitted.predict(x))
    assert fitted.score(x, y) > 0.95
    assert mean.shape == std.shape == (200,)
    assert np.all((std > 0.05) & (std < 1.5))


def test_answers_are_those_of_the_predictive_distribution(fitted):
    x, y = line(30, seed=2)
    prediction = fitted.predict_dist(x)
    np.testing.assert_allclose(fitted.predict(x), prediction.mean[:, 0])
    quantiles = fitted.predict_quantiles(x, [0.05, 0.95])
    assert quantiles.shape == (30, 2)
    np.testing.assert_allclose(fitted.predict_interval(x, 0.9), quantiles)
    np.testing.assert_allclose(
        fitted.predict_quantiles(x, 0.05), quantiles[:, 0], rtol=1e-6
    )
    np.testing.assert_allclose(fitted.log_prob(x, y), prediction.log_prob(y))
    assert fitted.log_prob(x, y).shape == (30,)


def test_draws_follow_the_predictive_distribution(fitted):
    x, _ = line(3, seed=3)
    drawn = fitted.sample(x, n=2000, seed=1)
    assert drawn.shape == (2000, 3)
    pit = fitted.predict_dist(x).cdf(drawn[:, :1].repeat(3, 1)[0])
    assert pit.shape == (3, 1)
    below = np.mean(drawn < fitted.predict_quantiles(x, 0.25), axis=0)
    # Five standard errors of 2000 draws.
    np.testing.assert_allclose(below, 0.25, atol=5 * np.sqrt(0.25 * 0.75 / 2000))
    np.testing.assert_array_equal(drawn, fitted.sample(x, n=2000, seed=1))


def test_texts_and_missing_values_are_read_as_they_are(of_houses):
    x, y = houses(300, seed=1)
    assert list(of_houses.feature_names_in_) == ["area", "street"]
    assert of_houses.score(x, y) > 0.8
    known = x.dropna()
    moved = known.assign(street="park road")
    other = known.assign(street="mill lane")
    difference = np.mean(of_houses.predict(moved) - of_houses.predict(other))
    assert 35 < difference < 65


@pytest.mark.parametrize("kind", ["arrow", "polars", "objects", "lists"])
def test_other_tables_have_the_answers_of_pandas(of_houses, kind):
    x, _ = houses(10, seed=2)
    if kind == "polars":
        pytest.importorskip("polars")
    # `x.to_numpy()` warns about names of features: those of arrays are their places.
    rows = {
        "arrow": lambda: pa.Table.from_pandas(x, preserve_index=False),
        "polars": lambda: __import__("polars").from_pandas(x),
        "objects": x.to_numpy,
        "lists": lambda: x.to_numpy().tolist(),
    }[kind]()
    with np.errstate(all="ignore"):
        if kind in ("objects", "lists"):
            with pytest.warns(UserWarning, match="valid feature names"):
                found = of_houses.predict(rows)
        else:
            found = of_houses.predict(rows)
    np.testing.assert_array_equal(found, of_houses.predict(x))


def test_features_are_those_of_the_fit(of_houses):
    x, _ = houses(10)
    with pytest.raises(ValueError, match="same order as they were in fit"):
        of_houses.predict(x[["street", "area"]])
    with pytest.raises(ValueError, match="Feature names seen at fit time"):
        of_houses.predict(x[["area"]])
    with pytest.raises(TableError, match="'area'"):
        of_houses.predict(x.assign(area="large"))


def test_export_has_the_same_answers(of_houses, tmp_path):
    path = of_houses.export(tmp_path / "houses")
    x, _ = houses(7, seed=4)
    loaded = tfbbb.load(path)
    assert loaded.manifest.target == "price"
    found = loaded.predictive(x, num_samples=20).mean[:, 0]
    np.testing.assert_allclose(found, of_houses.predict(x), rtol=1e-5)


def test_a_second_fit_is_equal():
    x, y = line(40)
    model = regressor(**SHORTEST).fit(x, y)
    before = model.predict(x)
    np.testing.assert_array_equal(model.fit(x, y).predict(x), before)


def test_partial_fit_goes_on_from_the_posterior(compiled_functions):
    """Rows of the second call teach what the first ones could not."""
    x, y = line(200)
    parameters = {"hidden_units": (), "kl_schedule": "constant"}
    model = regressor(**parameters).partial_fit(x[:20], y[:20])
    before = np.sqrt(model.predict_dist(x).epistemic)
    assert model.partial_fit(x[20:], y[20:]) is model
    after = np.sqrt(model.predict_dist(x).epistemic)
    assert np.mean(after) < 0.8 * np.mean(before)
    assert model.score(x, y) > 0.95


def test_weighted_rows_count():
    x, y = line(40)
    model = regressor(**SHORTEST).fit(x, y, sample_weight=np.full(40, 2.0))
    # A tenth of the rows is held out.
    assert model.to_keras().num_rows == 72.0


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.ones((20, 2)), np.ones((20, 2)), "'y0' has the same value"),
        (np.ones((20, 2)), np.ones(19), "20 rows and 19 targets"),
        (np.ones((20, 2)), None, "requires y"),
        (np.ones((20, 2)), np.r_[np.ones(19), np.nan], "contains NaN"),
        (sparse.csr_array(np.eye(20)), np.ones(20), "[Ss]parse"),
        (np.ones((9, 2)), np.ones(9), "minimum of 10 is required"),
        (pd.DataFrame(np.ones((9, 2))), np.ones(9), "9 rows, but at least 10"),
        (np.full((20, 1), np.inf), np.arange(20.0), "infinite"),
    ],
)
def test_rows_that_cannot_be_used_are_refused(x, y, message):
    model = regressor()
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(x, y)
    with pytest.raises(NotFittedError):
        model.predict(x)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.zeros(120), "zero"),
        (np.r_[-1.0, np.ones(119)], "-1.0 in row 0"),
        (np.ones(5), "shape \\(5,\\) for 120 rows"),
    ],
)
def test_wrong_weights_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        regressor().fit(*line(), sample_weight=weights)


@pytest.mark.slow
def test_the_recipe_covers_what_it_promises():
    x, y = line(300, noise=1.0)
    model = BayesianRegressor(max_seconds=20).fit(x, y)
    assert model.recipe_["chosen"]["members"] == 8
    x, y = line(1000, noise=1.0, seed=1)
    lower, upper = model.predict_interval(x, level=0.9).T
    inside = np.mean((lower <= y) & (y <= upper))
    assert stats.binomtest(round(inside * 1000), 1000, 0.9).pvalue > 1e-4


def test_several_targets_are_predicted_together():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(200, 2))
    noise = generator.multivariate_normal([0, 0], [[1.0, 0.9], [0.9, 1.0]], 200)
    y = pd.DataFrame(
        {"a": x[:, 0] + 0.3 * noise[:, 0], "b": 5.0 * x[:, 1] + noise[:, 1]}
    )
    model = regressor(**SHORTEST, likelihood="multivariate_normal").fit(x, y)
    mean, std = model.predict(x, return_std=True)
    assert mean.shape == std.shape == (200, 2)
    r_squared = 1.0 - np.mean((mean - y) ** 2, axis=0) / np.var(y, axis=0)
    assert model.score(x, y) == pytest.approx(np.mean(r_squared))
    assert model.predict_quantiles(x[:3], [0.1, 0.9]).shape == (3, 2, 2)
    assert model.sample(x[:3], 4).shape == (4, 3, 2)
    assert model.log_prob(x, y).shape == (200,)
    apart = model.predict_interval(x, 0.8)
    together = model.predict_interval(x, 0.8, joint=True)
    assert apart.shape == together.shape == (200, 2, 2)
    assert np.all(np.diff(together, axis=1) >= np.diff(apart, axis=1))
    assert [judged["name"] for judged in model.judgement_["targets"]] == ["a", "b"]
