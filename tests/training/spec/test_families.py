import inspect
from itertools import product
from typing import get_args

import keras
import pytest

from tfbbb import kl_schedules, likelihoods, posteriors, priors
from tfbbb.layers import DenseVariational
from tfbbb.training.spec import families
from tfbbb.training.spec.families import OneOf, PosteriorPart
from tfbbb.training.spec.model import Activation, ModelSpec

KINDS = {
    "posterior": (posteriors, families.posteriors),
    "prior": (priors, families.priors),
    "likelihood": (likelihoods, families.likelihoods),
    "kl_schedule": (kl_schedules, families.kl_schedules),
}
# What the model or the data say, or Keras; a table has no void class.
NOT_ASKED = {"exposure", "censored", "known_scale", "kwargs", "members", "ignore_class"}


@pytest.mark.parametrize("kind", KINDS)
def test_the_names_of_a_spec_are_those_with_a_description(kind):
    module, declared = KINDS[kind]
    without = {"none"} if kind == "prior" else set()
    assert declared.parts.keys() - without == set(module.registry.descriptions)


@pytest.mark.parametrize("kind", KINDS)
def test_options_are_the_arguments_of_the_family_with_its_defaults(kind):
    module, declared = KINDS[kind]
    for name, part in declared.parts.items():
        if name == "none":
            continue
        arguments = inspect.signature(module.registry.classes[name]).parameters
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


def cases(declared, *others):
    return [
        *(part() for name, part in declared.parts.items() if name != "none"),
        *others,
    ]


def test_posteriors_and_priors_go_together_as_in_the_layers():
    for posterior, prior in product(cases(families.posteriors), cases(families.priors)):
        assert posterior.make().has_optimum(prior) == accepts(
            posterior=posterior.make(), prior=prior.make()
        ), (posterior, prior)
    for posterior in cases(families.posteriors):
        assert posterior.make().has_optimum(None) == accepts(
            posterior=posterior.make(), prior=None
        ), posterior


@pytest.mark.parametrize("inputs", [1, 7])
def test_posteriors_count_the_parameters_of_a_layer(inputs):
    eigenbasis = families.posteriors.make("matrix_normal", covariance="eigenbasis")
    for part in cases(families.posteriors, eigenbasis):
        layer = DenseVariational(3, use_bias=False, posterior=part.make())
        layer.build((None, inputs))
        expected = sum(v.numpy().size for v in layer.kernel.variables.values())
        assert layer.kernel.posterior.num_parameters((inputs, 3)) == expected, part


def test_a_posterior_that_counts_nothing_is_no_point():
    class Unknown(posteriors.Posterior):
        """A family that does not count its parameters."""

    declared = OneOf(PosteriorPart, {"unknown": Unknown}, {"unknown": "A family."})
    model = ModelSpec.model_construct(posterior=declared.make("unknown"))
    with pytest.raises(NotImplementedError, match="must implement `declared`"):
        model.check_size(num_features=3, num_outputs=1)


@pytest.mark.parametrize("kind", KINDS)
def test_packages_export_every_declared_class(kind):
    module, _ = KINDS[kind]
    package = module.__name__
    for name in module.names():
        exported = module.registry.classes[name].__name__
        assert exported in set(module.__all__) & vars(module).keys(), (
            f"add `from {package}.{name} import {exported}` to "
            f"{package.replace('.', '/')}/__init__.py, and {exported!r} to its "
            "`__all__`: type checkers and editors read them"
        )


def accepts(**strategies):
    try:
        DenseVariational(3, use_bias=False, **strategies)
    except ValueError:
        return False
    return True
