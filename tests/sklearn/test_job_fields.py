"""Parameters are the fields of a job; these tests import no TensorFlow."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from tfbbb.sklearn import BayesianClassifier, BayesianRegressor
from tfbbb.sklearn.job_fields import job_spec
from tfbbb.training.spec import JobSpec, ModelSpec, TrainingSpec


def spec(**parameters):
    return job_spec(BayesianRegressor(**parameters), target="y", task="regression")


def test_every_field_of_network_and_training_is_a_parameter():
    parameters = BayesianClassifier().get_params()
    fields = {*ModelSpec.model_fields, *TrainingSpec.model_fields} - {"seed"}
    assert fields <= set(parameters)
    assert all(value is None for value in parameters.values())
    assert all(f"\n    {name}: " in BayesianClassifier.__doc__ for name in parameters)
    with pytest.raises(TypeError, match="unexpected keyword argument 'membrs'"):
        BayesianClassifier(membrs=2)


def test_the_page_lists_every_parameter():
    page = Path("docs/sklearn.md").read_text(encoding="utf-8")
    _, _, section = page.partition("\n## Parameters\n")
    listed, _, _ = section.partition("None, the")
    parameters = BayesianRegressor().get_params().keys()
    of_jobs = parameters - {"num_samples", "random_state"}
    assert set(re.findall(r"`(\w+)`", listed)) == of_jobs


def test_none_leaves_every_field_to_the_recipe():
    assert spec() == JobSpec(target="y", task="regression")


def test_parameters_reach_their_fields():
    found = spec(
        members=3,
        hidden_units=[5],
        learning_rate=0.1,
        recalibration="none",
        random_state=7,
    )
    assert (found.model.members, found.model.hidden_units) == (3, (5,))
    assert found.training.learning_rate == 0.1
    assert found.training.seed == 7
    assert found.recalibration.name == "none"


def test_a_random_state_draws_the_seed():
    first, second = (
        spec(random_state=np.random.RandomState(3)).training.seed for _ in range(2)
    )
    assert first == second != 0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"members": 0}, "`members` must be at least 1. Received: 0"),
        ({"hidden_units": (0,)}, "`hidden_units.0`"),
        ({"epochs": 2, "steps": 3}, "give `epochs` or `steps`, not both"),
        ({"likelihood": "poison"}, "`likelihood` must be one of .*'poisson'"),
        ({"likelihood": "categorical"}, "classification"),
        ({"random_state": -1}, "`random_state` must be at least 0. Received: -1"),
        ({"recalibration": "temperature"}, "regression"),
        ({"num_samples": 1}, "`num_samples` must be at least 2"),
    ],
)
def test_wrong_values_are_refused_at_fit_by_name(parameters, message):
    model = clone(BayesianRegressor(**parameters))
    with pytest.raises(ValueError, match=message):
        model.fit(np.arange(40.0).reshape(20, 2), np.arange(20.0))
