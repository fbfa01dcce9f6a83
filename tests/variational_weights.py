"""Weights with a posterior and a prior, without a layer around them."""

import keras
import numpy as np

from tfbbb import posteriors, priors
from tfbbb.bayes.variational_weight import VariationalWeight
from tfbbb.layers.variational import MemberInitializer


def variational_weight(
    posterior="mean_field_normal",
    prior="normal",
    shape=(4, 3),
    fan_in=4,
    members=1,
    dtype="float32",
    path="",
    spread=0.5,
):
    """Returns a weight whose parameters are spread by normal noise, always the same."""

    def add_weight(name, shape, initializer, trainable=True):
        initializer = keras.initializers.get(initializer)
        if members > 1:
            initializer = MemberInitializer(initializer, members)
            shape = (members, *shape)
        return keras.Variable(
            initializer, shape=shape, dtype=dtype, name=name, trainable=trainable
        )

    weight = VariationalWeight(
        "kernel",
        shape,
        fan_in=fan_in,
        posterior=posteriors.get(posterior),
        prior=priors.get(prior),
        mean_initializer=keras.initializers.RandomNormal(seed=1),
        add_weight=add_weight,
        members=members,
        path=path,
    )
    generator = np.random.default_rng(0)
    for variable in weight.variables.values():
        noise = generator.normal(size=variable.shape)
        variable.assign(variable.numpy() + spread * noise)
    return weight


def member_of(weight, index):
    """Returns a member of `weight` as a weight of its own."""
    member = variational_weight(
        weight.posterior, weight.prior, weight.shape, weight.fan_in
    )
    for variable, own in zip(weight.all_variables, member.all_variables, strict=True):
        own.assign(variable.numpy()[index])
    return member


def finite_differences(function, weight, step=1e-5):
    """Returns the central differences of `function` in the weight's variables."""
    slopes = []
    for variable in weight.variables.values():
        values = variable.numpy()
        slope = np.zeros_like(values)
        for index in np.ndindex(values.shape):
            sides = []
            for sign in (1, -1):
                moved = values.copy()
                moved[index] += sign * step
                variable.assign(moved)
                sides.append(float(function(weight)))
            slope[index] = (sides[0] - sides[1]) / (2 * step)
        variable.assign(values)
        slopes.append(slope)
    return slopes
