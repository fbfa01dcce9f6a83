import inspect
import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from tfbbb import likelihoods

NUM_CLASSES = 4
METHODS = ("parameters", "mean", "variance")


def kinds():
    """Every registered likelihood, with its parameters learned and as outputs."""
    for name in likelihoods.names():
        yield pytest.param(name, {}, id=name)
        arguments = inspect.signature(type(likelihoods.get(name)).__init__).parameters
        if "heteroscedastic" in arguments:
            yield pytest.param(
                name, {"heteroscedastic": True}, id=f"{name}, heteroscedastic"
            )
    for base in ("log_normal", "negative_binomial"):
        arguments = {"base": base, "heteroscedastic": True}
        yield pytest.param("zero_inflated", arguments, id=f"zero_inflated, {base}")


def made(name, arguments):
    return type(likelihoods.get(name))(**arguments)


EVERY = list(kinds())
REGRESSIONS = [kind for kind in EVERY if made(*kind.values).task == "regression"]
CONTINUOUS = [
    kind
    for kind in REGRESSIONS
    if not (made(*kind.values).discrete or made(*kind.values).masses)
]
INTEGERS = [
    kind for kind in EVERY if made(*kind.values).ordered and made(*kind.values).discrete
]


def size_of(likelihood, num_targets=1):
    """Returns the number of targets or classes."""
    if likelihood.task == "regression":
        return num_targets
    return getattr(likelihood, "num_classes", NUM_CLASSES)


def targets_of(likelihood, rows=402, num_targets=1):
    """Targets that it can have: shares of a skewed density, counts, or classes."""
    generator = np.random.default_rng(1)
    if likelihood.task == "classification":
        return generator.integers(size_of(likelihood), size=rows)
    if likelihood.discrete:
        counts = generator.poisson(4.0, size=(rows, num_targets)).astype(float)
        return np.clip(counts, *likelihood.limits)
    targets = generator.beta(2.0, 5.0, size=(rows, num_targets))
    for place, value in enumerate(likelihood.masses):
        targets[place::4] = value
    return targets


def built(name, arguments, *, num_targets=1, members=1, places=()):
    likelihood = made(name, arguments)
    likelihood.members = members
    size = size_of(likelihood, num_targets)
    likelihood.build((None, *places, likelihood.num_outputs(size)))
    targets = targets_of(likelihood, num_targets=num_targets)
    likelihood.adapt(targets.reshape(-1, *places, *targets.shape[1:]))
    return likelihood


def outputs_for(likelihood, *leading, num_targets=1, spread=0.7):
    shape = (*leading, likelihood.num_outputs(size_of(likelihood, num_targets)))
    return spread * np.random.default_rng(2).normal(size=shape)


def quadrature(likelihood, outputs, integrand):
    """Returns `int integrand(y, p(y)) dy` by Gauss-Legendre between quantiles.

    The panels end at quantiles that are even in the logits of their levels.
    """
    levels = 1.0 / (1.0 + np.exp(-np.linspace(-32.0, 32.0, 257)))
    levels = levels.reshape(-1, 1, 1)
    edges = likelihood.quantile(levels, outputs[np.newaxis]).numpy()
    nodes, weights = np.polynomial.legendre.leggauss(12)
    left, half = edges[:-1], 0.5 * np.diff(edges, axis=0)
    values = (left + half)[..., np.newaxis] + half[..., np.newaxis] * nodes
    values = np.moveaxis(values, -1, 0)
    density = likelihood.prob(values, outputs[np.newaxis, np.newaxis]).numpy()
    heights = integrand(values, density) * half
    return np.einsum("n,n...->...", weights, heights).sum(axis=0)


@pytest.mark.parametrize(("name", "arguments"), REGRESSIONS)
def test_number_of_outputs_tells_the_number_of_targets(name, arguments):
    for num_targets in range(1, 6):
        likelihood = built(name, arguments, num_targets=num_targets)
        assert likelihood.num_targets == num_targets
        integrated = likelihood.num_integrated(likelihood.num_outputs(num_targets))
        assert integrated == num_targets * likelihood.integrates_location


@pytest.mark.parametrize(("name", "arguments"), EVERY)
def test_every_argument_is_restored_from_json(name, arguments):
    likelihood = made(name, arguments)
    config = json.loads(json.dumps(likelihoods.serialize(likelihood)))
    again = likelihoods.deserialize(config)
    assert type(again) is type(likelihood)
    assert again.get_config() == likelihood.get_config()
    accepted = inspect.signature(type(likelihood).__init__).parameters
    # The config has these where they are not the default.
    optional = {"members", "ignore_class", "exposure", "censored", "known_scale"}
    assert set(accepted) - optional - {"self", "kwargs"} <= set(again.get_config())


@pytest.mark.few(4)
@pytest.mark.parametrize(("name", "arguments"), CONTINUOUS)
def test_quantile_inverts_the_distribution_function(name, arguments):
    likelihood = built(name, arguments, num_targets=2)
    outputs = outputs_for(likelihood, 6, num_targets=2)
    levels = np.array([1e-9, 1e-3, 0.2, 0.5, 0.9, 0.999]).reshape(-1, 1, 1)
    values = likelihood.quantile(levels, outputs[np.newaxis])
    assert values.shape == (6, 6, 2)
    found = likelihood.cdf(values, outputs[np.newaxis])
    # Near 1, the spacing of doubles widens what an inverse can tell apart.
    np.testing.assert_allclose(found, np.broadcast_to(levels, found.shape), rtol=1e-8)


@pytest.mark.few(2)
@pytest.mark.parametrize(("name", "arguments"), INTEGERS)
def test_quantile_is_the_least_integer_that_reaches_the_level(name, arguments):
    likelihood = built(name, arguments)
    outputs = outputs_for(likelihood, 6)
    for level in (1e-6, 0.2, 0.5, 0.9, 0.999):
        found = likelihood.quantile(np.full((6, 1), level), outputs)
        reached = likelihood.cdf(found, outputs).numpy()
        assert np.all(reached >= level)
        assert np.all(likelihood.cdf(found - 1.0, outputs).numpy() < level)
        np.testing.assert_array_equal(likelihood.cdf(found + 0.5, outputs), reached)
        np.testing.assert_allclose(
            likelihood.prob(found, outputs),
            reached - likelihood.cdf(found - 1.0, outputs),
            rtol=1e-8,
            atol=1e-12,
        )


@pytest.mark.few(3)
@pytest.mark.parametrize(("name", "arguments"), CONTINUOUS)
def test_mean_and_variance_are_integrals_of_the_density(name, arguments):
    likelihood = built(name, arguments)
    outputs = outputs_for(likelihood, 4, spread=0.3)
    whole = quadrature(likelihood, outputs, lambda y, p: p)
    np.testing.assert_allclose(whole, np.ones((4, 1)), rtol=1e-6)
    mean = quadrature(likelihood, outputs, lambda y, p: y * p)
    square = quadrature(likelihood, outputs, lambda y, p: (y - mean) ** 2 * p)
    np.testing.assert_allclose(likelihood.mean(outputs), mean, rtol=1e-6)
    # The least of tails are beyond the last panel, at levels of 1e-14.
    np.testing.assert_allclose(likelihood.variance(outputs), square, rtol=1e-4)


@pytest.mark.parametrize(("name", "arguments"), CONTINUOUS)
def test_samples_follow_the_distribution_function(name, arguments):
    likelihood = built(name, arguments, num_targets=2)
    outputs = np.repeat(outputs_for(likelihood, 1, num_targets=2), 4_000, axis=0)
    noise = np.random.default_rng(3).normal(size=(4_000, likelihood.noise_size))
    drawn = likelihood.sample(outputs, noise)
    assert drawn.shape == (4_000, 2)
    for ranks in np.transpose(likelihood.cdf(drawn, outputs)):
        assert stats.kstest(ranks, "uniform").pvalue > 1e-3


@pytest.mark.parametrize(("name", "arguments"), CONTINUOUS)
def test_outputs_of_zero_have_the_moments_of_the_targets(name, arguments):
    if (name, arguments) == ("normal", {"heteroscedastic": True}):
        pytest.skip("Its noise starts at log 2: see its own tests.")
    likelihood = built(name, arguments)
    targets, outputs = targets_of(likelihood), np.zeros((1, likelihood.num_outputs(1)))
    if name == "log_normal":
        targets = np.log(targets)
        mean = np.log(likelihood.quantile(0.5, outputs))
        variance = np.log1p(
            likelihood.variance(outputs) / likelihood.mean(outputs) ** 2
        )
    elif name == "weibull":
        found = likelihood.parameters(outputs)
        targets, mean = np.log(targets), found["loc"]
        variance = (np.pi * found["scale"]) ** 2 / 6.0
    else:
        mean, variance = likelihood.mean(outputs), likelihood.variance(outputs)
    # The floor of the noise is 1e-4 of it.
    np.testing.assert_allclose(mean, targets.mean(keepdims=True), rtol=1e-4)
    np.testing.assert_allclose(variance, targets.var(keepdims=True), rtol=1e-3)


@pytest.mark.parametrize(("name", "arguments"), EVERY)
def test_log_prob_and_gradient_are_finite_everywhere(name, arguments):
    likelihood = built(name, arguments)
    targets = np.concatenate([targets_of(likelihood, 20)] * 4)
    signs = np.sign(outputs_for(likelihood, 20))
    sizes = [-1e4, -30.0, 30.0, 1e4]
    outputs = tf.constant(np.concatenate([size * signs for size in sizes]), tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(outputs)
        log_prob = likelihood.log_prob(targets, outputs)
    gradients = tape.gradient(log_prob, [outputs, *likelihood.trainable_variables])
    assert np.isfinite(log_prob).all()
    for gradient in gradients:
        assert np.isfinite(gradient).all()


@pytest.mark.few(4)
@pytest.mark.parametrize(("name", "arguments"), EVERY)
def test_precision_of_the_outputs_is_that_of_every_answer(name, arguments):
    likelihood = built(name, arguments)
    outputs = outputs_for(likelihood, 20)
    targets = targets_of(likelihood, 20)
    answers = {}
    for dtype in ("float16", "float32", "float64"):
        given = tf.cast(outputs, dtype)
        answer = {name: getattr(likelihood, name)(given) for name in METHODS}
        answer |= answer.pop("parameters")
        answer["log_prob"] = likelihood.log_prob(targets, given)
        if likelihood.task == "regression":
            noise = np.random.default_rng(4).normal(size=(20, likelihood.noise_size))
            answer["sample"] = likelihood.sample(given, noise)
            half = np.full(targets.shape, 0.3)
            answer["quantile"] = likelihood.quantile(half, given)
            answer["cdf"] = likelihood.cdf(targets, given)
            answer["prob"] = likelihood.prob(targets, given)
        answers[dtype] = answer
        expected = "float64" if dtype == "float64" else "float32"
        assert {value.dtype.name for value in answer.values()} == {expected}
    for key, value in answers["float32"].items():
        np.testing.assert_allclose(
            value, answers["float64"][key], rtol=2e-4, atol=1e-5, err_msg=key
        )


@pytest.mark.few(4)
@pytest.mark.parametrize(("name", "arguments"), EVERY)
def test_leading_dimensions_pass_through(name, arguments):
    likelihood = built(name, arguments, places=(3,))
    outputs = outputs_for(likelihood, 4, 2, 3)
    flat = outputs.reshape(-1, outputs.shape[-1])
    for method in ("mean", "variance"):
        answer = getattr(likelihood, method)(outputs).numpy()
        assert answer.shape[:3] == (4, 2, 3)
        np.testing.assert_allclose(
            answer.reshape(24, *answer.shape[3:]),
            getattr(likelihood, method)(flat),
            rtol=1e-12,
        )
    noise = np.random.default_rng(5).normal(size=(4, 2, 3, likelihood.noise_size))
    drawn = likelihood.sample(outputs, noise)
    np.testing.assert_allclose(
        np.reshape(drawn, (24, *drawn.shape[3:])),
        likelihood.sample(flat, noise.reshape(24, -1)),
        rtol=1e-12,
    )
    assert likelihood.log_prob(drawn, outputs).shape == (4, 2, 3)


@pytest.mark.few(4)
@pytest.mark.parametrize(("name", "arguments"), EVERY)
def test_each_member_learns_as_it_would_alone(name, arguments):
    together = built(name, arguments, members=3)
    outputs, targets = outputs_for(together, 3, 8), targets_of(together, 8)
    variables = together.trainable_variables
    for variable in variables:
        assert variable.shape[0] == 3
        shift = np.array([-0.5, 0.0, 0.7]).reshape(3, *[1] * (len(variable.shape) - 1))
        variable.assign(variable + shift)
    member = np.arange(3)[:, np.newaxis]
    with tf.GradientTape() as tape:
        complete = together.of_members(outputs, member)
        # The loss is the mean over the members.
        loss = tf.reduce_sum(together.log_prob(targets, complete)) / 3.0
    gradients = tape.gradient(loss, variables)
    for index in range(3):
        alone = built(name, arguments)
        for own, variable in zip(alone.trainable_variables, variables, strict=True):
            own.assign(variable[index])
        with tf.GradientTape() as tape:
            log_prob = alone.log_prob(targets, outputs[index])
            total = tf.reduce_sum(log_prob)
        np.testing.assert_allclose(
            together.log_prob(targets, complete)[index], log_prob, rtol=1e-6
        )
        own_gradients = tape.gradient(total, alone.trainable_variables)
        for gradient, own in zip(gradients, own_gradients, strict=True):
            np.testing.assert_allclose(gradient[index], own, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("name", "arguments"), REGRESSIONS)
def test_target_that_is_no_number_is_named_with_its_row(name, arguments):
    likelihood = built(name, arguments, num_targets=2)
    targets = targets_of(likelihood, 10, num_targets=2)
    likelihood.check_targets(targets)
    for wrong in (np.nan, np.inf, -np.inf):
        targets[7, 1] = wrong
        with pytest.raises(ValueError, match=rf"must be .*, {wrong}\] in row 7"):
            likelihood.check_targets(targets)


@pytest.mark.parametrize(("name", "arguments"), REGRESSIONS)
def test_only_the_first_adapt_sets_shift_and_scale(name, arguments):
    likelihood = built(name, arguments)
    assert likelihood.adapted
    before = {v.name: v.numpy() for v in likelihood.variables}
    likelihood.adapt(targets_of(likelihood, rows=10))
    for variable in likelihood.variables:
        if variable.name not in ("target_low", "target_high"):
            np.testing.assert_array_equal(variable, before[variable.name])


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("beta", "concentration"),
        ("negative_binomial", "concentration"),
        ("normal", "scale"),
    ],
)
def test_given_constants_are_not_learned(name, argument):
    likelihood = built(name, {argument: 2.0})
    assert not likelihood.learns
    assert not likelihood.trainable_variables
    for wrong in (0.0, -1.0, np.nan, np.inf, True, "1"):
        with pytest.raises(ValueError, match=f"`{argument}` must be .*Received: "):
            made(name, {argument: wrong})
    with pytest.raises(ValueError, match=r"either given .* or an output"):
        made(name, {argument: 1.0, "heteroscedastic": True})


@pytest.mark.parametrize("unknown", ["gaussian", None, 3, likelihoods.Normal])
def test_an_unknown_name_error_lists_the_names(unknown):
    with pytest.raises(ValueError, match=r"Pass one of .*'normal', .*Rec"):
        likelihoods.get(unknown)


def test_config_of_something_else_is_refused():
    with pytest.raises(ValueError, match="describes no likelihood"):
        likelihoods.deserialize(likelihoods.serialize(keras.layers.Dense(1)))
