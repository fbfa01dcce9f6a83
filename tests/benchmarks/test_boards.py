"""The entries for public boards call what the boards have, as they declare it."""

import importlib.util
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

BOARDS = Path(__file__).parents[2] / "benchmarks" / "boards"
QUICK = {"effort": "quick", "steps": 30, "members": 2, "hidden_units": [8]}


class ProbabilisticWrapper:
    """What ScoringBench's base class gives to an entry."""

    def _set_train_range(self, y):
        self._y_train_range = float(np.min(y)), float(np.max(y))


@dataclass
class DistributionPrediction:
    quantiles: np.ndarray
    levels: np.ndarray
    mean: np.ndarray
    train_range: tuple

    @classmethod
    def from_multi_quantile(cls, q, alphas, mean=None, *, train_range):
        return cls(q, alphas, mean, train_range)


class MultivariateWrapper:
    pass


@dataclass
class MultivariateSamplePrediction:
    samples: np.ndarray


@dataclass
class AbstractModel:
    """What AutoGluon's base class gives to an entry."""

    problem_type: str
    parameters: dict = field(default_factory=dict)

    def preprocess(self, X, is_train=False):
        return X

    def _get_model_params(self):
        return dict(self.parameters)

    def _get_default_auxiliary_params(self):
        return {"ignored_type_group_raw": None}

    def predict_proba(self, X):
        if self.problem_type == "regression":
            return self.model.predict(X)
        return self.model.predict_proba(X)


MODULES = {
    "scoringbench.univariate.wrappers.base": (
        DistributionPrediction,
        ProbabilisticWrapper,
    ),
    "scoringbench.multivariate.wrappers.base": (MultivariateWrapper,),
    "scoringbench.multivariate.prediction": (MultivariateSamplePrediction,),
    "autogluon.core.models": (AbstractModel,),
}


@pytest.fixture
def entry(monkeypatch):
    """Imports the file of a board, whose own modules have the declared classes."""

    for name, classes in MODULES.items():
        module = ModuleType(name)
        for one in classes:
            setattr(module, one.__name__, one)
        parts = name.split(".")
        for length in range(1, len(parts)):
            parent = ".".join(parts[:length])
            monkeypatch.setitem(sys.modules, parent, ModuleType(parent))
        monkeypatch.setitem(sys.modules, name, module)

    def imported(name):
        spec = importlib.util.spec_from_file_location(name, BOARDS / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return imported


def rows(number=120, seed=0):
    generator = np.random.default_rng(seed)
    X = pd.DataFrame(generator.normal(size=(number, 3)), columns=["a", "b", "c"])
    noise = generator.normal(size=(number, 2))
    return X, X["a"].to_numpy()[:, np.newaxis] * [2.0, -1.0] + noise


def test_scoringbench_gets_quantiles_of_numbers(entry):
    X, targets = rows()
    y = pd.Series(targets[:, 0])
    y[3] = np.nan
    model = entry("scoringbench").TfbbbWrapper(**QUICK).fit(X, y)
    found = model.predict_distribution(X)
    assert found.quantiles.shape == (120, 99)
    assert found.levels.shape == (99,)
    assert (np.diff(found.quantiles) >= 0).all()
    assert found.train_range == (y.min(), y.max())
    np.testing.assert_allclose(found.mean, model.predict(X), rtol=1e-5)
    inside = (found.quantiles[:, 4] < y) & (y < found.quantiles[:, 94])
    assert inside.mean() > 0.7


def test_scoringbench_gets_draws_of_several_numbers(entry):
    X, targets = rows()
    wrapper = entry("scoringbench").TfbbbMultivariateWrapper
    model = wrapper(n_draws=500, **QUICK).fit(X, pd.DataFrame(targets))
    samples = model.predict_ensemble(X).samples
    assert samples.shape == (120, 500, 2)
    assert np.isfinite(samples).all()
    # The targets rise and fall with the column.
    for place, sign in enumerate((1, -1)):
        means = samples[..., place].mean(axis=1)
        assert np.corrcoef(means, sign * X["a"])[0, 1] > 0.5


@pytest.mark.parametrize(
    ("problem_type", "shape"),
    [
        pytest.param("regression", (120,), marks=pytest.mark.slow),
        ("multiclass", (120, 3)),
    ],
)
def test_tabarena_gets_predictions_of_each_task(entry, problem_type, shape):
    X, targets = rows()
    X["d"] = pd.Categorical(["u", "v"] * 60)
    y = pd.Series(targets[:, 0])
    if problem_type == "multiclass":
        y = pd.Series(np.digitize(y, [-1, 1]))
    board = entry("tabarena")
    assert problem_type in board.TfbbbModel.supported_problem_types()
    model = board.TfbbbModel(problem_type, parameters=QUICK)
    model._fit(X, y, time_limit=600.0, num_cpus=1)
    assert model.model.max_seconds == 600.0
    assert model.predict_proba(X).shape == shape
    assert "category" in model._get_default_auxiliary_params()["valid_raw_types"]
