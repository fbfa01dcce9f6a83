"""Choices of known posteriors, stored rows, and training in and out of the loop."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy import integrate, stats

import tfbbb
from tfbbb.lab.bandits import ThompsonSampling

NOISE = 2.0
MEANS = np.array([0.0, 0.5, 1.0])
SCALES = np.array([1.0, 0.2, 0.6])
CHOICES = 1500


def linear_agent(size, *, members=1, posterior="mean_field_normal", **options):
    """Returns an agent whose reward is linear, without a bias, and its kernel."""
    inputs = keras.Input((size,))
    layer = tfbbb.layers.DenseVariational(
        1,
        use_bias=False,
        posterior=posterior,
        prior=None if posterior == "point" else tfbbb.priors.Normal(1.0),
        seed=0,
    )
    likelihood = tfbbb.likelihoods.Normal(scale=NOISE, standardize=False)
    model = tfbbb.BayesianModel(
        inputs, layer(inputs), likelihood=likelihood, members=members
    )
    model.compile(tfbbb.optimizers.Adam(0.01))
    return ThompsonSampling(model, **options), layer.kernel


def shares(agent, actions):
    """Returns how often the agent chooses each action."""
    chosen = [agent.choose(actions) for _ in range(CHOICES)]
    return np.bincount(chosen, minlength=len(actions)) / CHOICES


def assert_near(found, probabilities):
    error = np.sqrt(probabilities * (1.0 - probabilities) / CHOICES)
    assert (np.abs(found - probabilities) <= 4.5 * error).all(), found


def probability_of_best(arm, draws=1):
    """Returns the probability that an arm of independent normals is the largest."""
    arms = [stats.norm(m, s / draws**0.5) for m, s in zip(MEANS, SCALES, strict=True)]
    others = [other for number, other in enumerate(arms) if number != arm]

    def density(value):
        return arms[arm].pdf(value) * np.prod([other.cdf(value) for other in others])

    return integrate.quad(density, -8.0, 8.0, points=[0.0, 1.0])[0]


@pytest.mark.parametrize("draws", [1, 3])
def test_an_arm_is_chosen_as_often_as_it_is_best(draws):
    agent, kernel = linear_agent(3, draws=draws)
    kernel.variables["mean"].assign(MEANS[:, np.newaxis])
    kernel.variables["log_scale"].assign(np.log(SCALES)[:, np.newaxis])
    expected = np.array([probability_of_best(arm, draws) for arm in range(3)])
    assert expected.sum() == pytest.approx(1.0)
    assert_near(shares(agent, np.eye(3)), expected)


def test_all_actions_of_a_choice_see_one_function():
    agent, kernel = linear_agent(1)
    kernel.variables["mean"].assign([[0.0]])
    kernel.variables["log_scale"].assign([[0.0]])
    # Of three points on a line through the origin, the middle one is never the best.
    found = shares(agent, [[1.0], [2.0], [3.0]])
    assert found[1] == 0.0
    assert_near(found[[0, 2]], np.array([0.5, 0.5]))


def test_each_draw_comes_from_a_member_at_random():
    agent, kernel = linear_agent(2, members=4, posterior="point")
    # The second action is the best one under one of the four members.
    best = np.array([[[1.0], [0.0]]] * 3 + [[[0.0], [1.0]]])
    kernel.variables["mean"].assign(best)
    assert_near(shares(agent, np.eye(2)), np.array([0.75, 0.25]))


def test_epsilon_is_the_probability_of_a_random_action():
    agent, kernel = linear_agent(3, posterior="point", epsilon=0.3)
    kernel.variables["mean"].assign(MEANS[:, np.newaxis])
    assert_near(shares(agent, np.eye(3)), np.array([0.1, 0.1, 0.8]))


@pytest.mark.parametrize("times", [1, 4])
def test_training_finds_the_posterior_of_conjugate_arms(times):
    agent, kernel = linear_agent(2, batch_size=32, capacity=60)
    random = np.random.default_rng(0)
    arms = random.integers(2, size=60)
    rewards = random.normal([1.0, -1.0], NOISE, size=(60, 2))[np.arange(60), arms]
    # The store holds the rows once, and they stand for all.
    for _ in range(times):
        agent.observe(np.eye(2)[arms], rewards)
    for rate, steps in ((0.03, 500), (0.003, 2000)):
        agent.model.optimizer.learning_rate = rate
        agent.train(steps)
    assert agent.model.num_rows == 60 * times
    rewards = np.tile(rewards, times)
    arms = np.tile(arms, times)
    counts = np.bincount(arms)
    precision = counts / NOISE**2 + 1.0
    mean = np.bincount(arms, weights=rewards) / NOISE**2 / precision
    # Adam spreads about the optimum by the square root of its rate.
    np.testing.assert_allclose(np.ravel(kernel.mean), mean, atol=0.1)
    np.testing.assert_allclose(np.ravel(kernel.stddev), precision**-0.5, rtol=0.15)


def test_new_rows_take_the_place_of_the_oldest():
    agent, _ = linear_agent(1, capacity=4)
    agent.observe(np.arange(3.0)[:, np.newaxis], np.arange(3.0))
    assert agent.num_rows == 3
    agent.observe([3.0], 3.0)
    agent.observe(np.arange(4.0, 10.0)[:, np.newaxis], np.arange(4.0, 10.0))
    assert agent.num_rows == 4
    for stored in (*agent._inputs, agent._rewards):
        assert sorted(np.ravel(stored.numpy())) == [6.0, 7.0, 8.0, 9.0]


def test_a_compiled_loop_plays_as_the_methods_do():
    contexts = np.random.default_rng(0).normal(size=(12, 3, 2)).astype("float32")
    weights = np.array([1.0, -1.0], np.float32)

    def inputs(index):
        return tf.constant(contexts)[index]

    def reward(index, action):
        return tf.linalg.tensordot(tf.constant(contexts)[index, action], weights, 1)

    keras.utils.set_random_seed(0)
    played, kernel = linear_agent(2, capacity=8, batch_size=4)
    played.model.likelihood.adapt([0.0, 1.0])
    parts = [played.play(inputs, reward, 6, 3, first) for first in (0, 6)]
    actions, rewards = (np.concatenate(part) for part in zip(*parts, strict=True))

    keras.utils.set_random_seed(0)
    called, other = linear_agent(2, capacity=8, batch_size=4)
    called.model.likelihood.adapt([0.0, 1.0])
    for index in range(12):
        action = called.choose(contexts[index])
        assert action == actions[index]
        np.testing.assert_allclose(contexts[index, action] @ weights, rewards[index])
        called.observe(contexts[index, action], rewards[index])
        called.train(steps=3)
    assert called.num_rows == played.num_rows == 8
    np.testing.assert_allclose(kernel.mean, other.mean, rtol=1e-5)
    np.testing.assert_allclose(kernel.stddev, other.stddev, rtol=1e-5)


def test_inputs_of_an_action_come_by_name_or_in_order():
    context, action = (
        keras.Input((2,), name="context"),
        keras.Input((1,), name="action"),
    )
    joined = keras.layers.Concatenate()([context, action])
    outputs = tfbbb.layers.DenseVariational(1)(joined)
    model = tfbbb.BayesianModel([context, action], outputs)
    model.compile("adam")
    agent = ThompsonSampling(model, capacity=4)
    agent.observe([[1.0, 2.0], [0.0]], 1.0)
    agent.observe({"action": [1.0], "context": [3.0, 4.0]}, 2.0)
    agent.observe([np.ones((2, 2)), np.zeros((2, 1))], [3.0, 4.0])
    stored = np.concatenate([x.numpy() for x in agent._inputs], axis=1)
    assert stored[:3].tolist() == [[1.0, 2.0, 0.0], [3.0, 4.0, 1.0], [1.0, 1.0, 0.0]]
    agent.train(steps=1)
    assert agent.choose([[[1.0, 2.0]] * 2, [[0.0], [1.0]]]) in (0, 1)


def test_training_waits_until_rewards_differ():
    inputs = keras.Input((1,))
    model = tfbbb.BayesianModel(inputs, tfbbb.layers.DenseVariational(1)(inputs))
    model.compile("adam")
    agent = ThompsonSampling(model)
    with pytest.raises(ValueError, match="no row"):
        agent.train()
    agent.observe([1.0], 5.0)
    agent.train(steps=1)
    assert not model.likelihood.adapted
    agent.observe([2.0], 7.0)
    agent.train(steps=1)
    np.testing.assert_allclose(model.likelihood.target_shift, [6.0])


def test_arguments_that_do_not_fit_are_refused():
    agent, kernel = linear_agent(2)
    with pytest.raises(ValueError, match="one reward"):
        agent.observe(np.eye(2), [1.0])
    with pytest.raises(ValueError, match="shape"):
        agent.choose(np.eye(3))
    inputs = keras.Input((2,))
    model = tfbbb.BayesianModel(inputs, tfbbb.layers.DenseVariational(1)(inputs))
    model.compile("adam")
    with pytest.raises(ValueError, match="adapt"):
        ThompsonSampling(model).play(
            lambda i: tf.eye(2), lambda i, a: tf.constant(0.0), 2
        )
    kernel.variables["mean"].assign([[np.nan], [0.0]])
    with pytest.raises(ValueError, match="finite"):
        agent.choose(np.eye(2))
    with pytest.raises(ValueError, match="epsilon"):
        linear_agent(2, epsilon=1.5)
    inputs = keras.Input((2,))
    outputs = tfbbb.layers.DenseVariational(3)(inputs)
    model = tfbbb.BayesianModel(inputs, outputs, likelihood="categorical")
    with pytest.raises(ValueError, match="compile"):
        ThompsonSampling(model)
    model.compile("adam")
    with pytest.raises(ValueError, match="one number"):
        ThompsonSampling(model)
