import inspect
from itertools import product
from typing import get_args

import keras
import pytest

from tfbbb import estimators, kl_schedules, likelihoods, posteriors, priors
from tfbbb.layers import DenseVariational
from tfbbb.snake_case import snake_case
from tfbbb.training.spec import compatibility
from tfbbb.training.spec.estimators import Estimator, EstimatorName
from tfbbb.training.spec.kl_schedules import KLSchedule, KLScheduleName
from tfbbb.training.spec.layers import Activation
from tfbbb.training.spec.likelihoods import Likelihood, LikelihoodName
from tfbbb.training.spec.posteriors import (
    MatrixNormalPosterior,
    Posterior,
    PosteriorName,
)
from tfbbb.training.spec.priors import EmpiricalNormalPrior, Prior, PriorName

REGISTRIES = {
    "posterior": (posteriors, Posterior, PosteriorName),
    "prior": (priors, Prior, PriorName),
    "estimator": (estimators, Estimator, EstimatorName),
    "likelihood": (likelihoods, Likelihood, LikelihoodName),
    "kl_schedule": (kl_schedules, KLSchedule, KLScheduleName),
}
# What the model or the data say, or Keras.
NOT_ASKED = {"kwargs", "members", "num_classes"}


def parts(union):
    """The classes of a spec's families by name."""
    annotated = get_args(union)[0]
    return {part.model_fields["name"].default: part for part in get_args(annotated)}


def registered(module):
    classes = (getattr(module, name) for name in module.__all__)
    concrete = (c for c in classes if inspect.isclass(c))
    return {snake_case(c.__name__): c for c in concrete}


@pytest.mark.parametrize("kind", REGISTRIES)
def test_the_names_of_a_spec_are_those_of_the_registry(kind):
    module, union, literal = REGISTRIES[kind]
    without = {"none"} if kind == "prior" else set()
    assert set(get_args(literal)) - without == set(module.names())
    assert set(parts(union)) == set(get_args(literal))


@pytest.mark.parametrize("kind", REGISTRIES)
def test_options_are_the_arguments_of_the_family_with_its_defaults(kind):
    module, union, _ = REGISTRIES[kind]
    for name, part in parts(union).items():
        if name == "none":
            continue
        arguments = inspect.signature(registered(module)[name]).parameters
        expected = {
            key: value.default
            for key, value in arguments.items()
            if key not in NOT_ASKED
        }
        fields = part.model_fields.items()
        options = {
            key: inspect.Parameter.empty if field.is_required() else field.default
            for key, field in fields
            if key != "name"
        }
        assert options == expected, name


def test_every_activation_is_one_of_keras():
    for name in get_args(Activation):
        assert callable(keras.activations.get(name))


def cases(union, *others):
    return [
        *(part() for name, part in parts(union).items() if name != "none"),
        *others,
    ]


def made(module, part):
    return registered(module)[part.name](**part.options())


def test_posteriors_and_estimators_go_together_as_in_the_layers():
    full = MatrixNormalPosterior(covariance="full")
    for posterior, estimator in product(cases(Posterior, full), cases(Estimator)):
        assert compatibility.can_serve(estimator, posterior) == accepts(
            posterior=made(posteriors, posterior), estimator=made(estimators, estimator)
        ), (posterior, estimator)


def test_posteriors_and_priors_go_together_as_in_the_layers():
    bounded = EmpiricalNormalPrior(hyperprior=(2.0, 1.0))
    for posterior, prior in product(cases(Posterior), cases(Prior, bounded)):
        assert compatibility.has_optimum(posterior, prior) == accepts(
            posterior=made(posteriors, posterior), prior=made(priors, prior)
        ), (posterior, prior)
    without = parts(Prior)["none"]()
    for posterior in cases(Posterior):
        assert compatibility.has_optimum(posterior, without) == accepts(
            posterior=made(posteriors, posterior), prior=None
        ), posterior


def test_likelihoods_have_the_task_of_their_class():
    for part in cases(Likelihood):
        assert part.task == registered(likelihoods)[part.name].task


def accepts(**strategies):
    try:
        DenseVariational(3, use_bias=False, **strategies)
    except ValueError:
        return False
    return True
