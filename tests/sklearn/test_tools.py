"""The tools of scikit-learn and Keras work around the estimators."""

import keras
import numpy as np
import pytest
import sklearn
from keras.wrappers import SKLearnRegressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.inspection import PartialDependenceDisplay, permutation_importance
from sklearn.model_selection import (
    GridSearchCV,
    ShuffleSplit,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tfbbb
from tests.sklearn.estimators import (
    SHORTEST,
    houses,
    line,
    regressor,
    regressor_of_houses,
)


def test_permutation_importance_finds_the_feature_that_counts():
    found = permutation_importance(
        regressor_of_houses(), *houses(60, seed=1), n_repeats=2, random_state=0
    )
    area, street = found.importances_mean
    assert area > 1.0 > street


def test_partial_dependence_takes_frames_with_texts():
    x, _ = houses(40, seed=1)
    known = x.dropna()
    shown = PartialDependenceDisplay.from_estimator(
        regressor_of_houses(), known, ["street"], categorical_features=["street"]
    )
    assert shown.pd_results[0]["average"].shape == (1, 2)


def test_pipeline_and_grid_search_choose_a_parameter():
    x, y = line(60)
    linear = regressor(hidden_units=(), learning_rate=0.2)
    pipeline = make_pipeline(StandardScaler(), linear)
    name = "bayesianregressor__steps"
    split = ShuffleSplit(1, random_state=0)
    steps = {name: np.array([1, 40])}
    search = GridSearchCV(pipeline, steps, cv=split, refit=False).fit(x, y)
    assert search.best_params_ == {name: 40}
    assert search.best_score_ > 0.5


def test_metadata_routing_passes_weights_on():
    x, y = line(40)
    weights = np.ones(40)
    with sklearn.config_context(enable_metadata_routing=True):
        model = regressor(**SHORTEST).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        split, params = ShuffleSplit(1, random_state=0), {"sample_weight": weights}
        found = cross_validate(model, x, y, cv=split, params=params)
        assert np.all(np.isfinite(found["test_score"]))
        with pytest.raises(ValueError, match="zero"):
            TransformedTargetRegressor(model).fit(x, y, sample_weight=0.0 * weights)


@pytest.mark.slow
def test_two_processes_of_joblib_score_as_one_does():
    x, y = line(40)
    scores = [cross_val_score(regressor(), x, y, cv=2, n_jobs=n) for n in (1, 2)]
    np.testing.assert_array_equal(*scores)
    model = regressor().fit(x, y)
    found = [
        permutation_importance(model, x, y, n_repeats=2, random_state=0, n_jobs=n)
        for n in (1, 2)
    ]
    np.testing.assert_array_equal(*(each.importances for each in found))


def network(X, y):
    inputs = keras.Input((X.shape[1],))
    outputs = tfbbb.layers.DenseVariational(1)(inputs)
    model = tfbbb.BayesianModel(inputs, outputs, likelihood="normal")
    model.compile(tfbbb.optimizers.Adam(0.1))
    return model


def test_wrapper_of_keras_takes_bayesian_models():
    x, y = line()
    wrapped = SKLearnRegressor(network, fit_kwargs={"verbose": 0})
    wrapped.fit(x, y[:, np.newaxis])
    assert isinstance(wrapped.model_, tfbbb.BayesianModel)
    assert wrapped.model_.num_rows == 120
    assert wrapped.predict(x).shape == y.shape
