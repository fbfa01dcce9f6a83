"""Thompson sampling with a Bayesian network as the model of rewards."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tfbbb.base import noise
from tfbbb.base.numbers import int32, is_finite_number
from tfbbb.base.types import ArrayLike, Structure, Tensor
from tfbbb.bayes.kl_schedules.training_temperature import TrainingTemperature
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.model.training_rows import TrainingRows
from tfbbb.prediction.inputs import input_tensors
from tfbbb.prediction.plan import Plan
from tfbbb.prediction.program import Program

# The inputs of the actions in a round, and the reward of an action.
Inputs = Callable[[Tensor], Structure]
Reward = Callable[[Tensor, Tensor], Tensor]
# Streams of the seed: drawn weights, their members, random actions, minibatches.
_WEIGHTS, _MEMBERS, _ACTIONS, _ROWS = range(4)


class ThompsonSampling:
    """Chooses each action with the probability that it is the best one.

    A `tfbbb.BayesianModel` predicts the reward of an action from the inputs of this
    action: as a rule, the context and a one-hot code of the action. To choose, the
    agent draws a function from the posterior, the same for all actions, and takes the
    action of the highest mean reward (Thompson 1933):

        w ~ q(w),    action = argmax_a E[reward | x_a, w]

    With `draws=n` the agent averages n functions, which explores less. The agent stores
    the rows of its actions, the newest `capacity` of them, and trains on minibatches of
    the stored rows (Blundell et al. 2015, section 4). The number N of the loss is that
    of all observed rows, for which the stored ones stand: the posterior goes on
    narrowing when the store is full.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> inputs = keras.Input((2,))  # a one-hot code of two actions
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> model.compile(tfbbb.optimizers.Adam(0.01))
    >>> agent = tfbbb.lab.bandits.ThompsonSampling(model, batch_size=16)
    >>> actions, random = np.eye(2), np.random.default_rng(0)
    >>> for _ in range(10):
    ...     action = agent.choose(actions)
    ...     reward = random.normal([0.0, 1.0][action])
    ...     agent.observe(actions[action], reward)
    ...     agent.train(steps=4)
    >>> agent.num_rows
    10

    Args:
        model: A compiled model of one target, the reward. Its likelihood takes shift
            and scale of the rewards from the rows of the first training; call
            `model.likelihood.adapt` with possible rewards to set them before.
        draws: Number n of functions that a choice averages.
        capacity: Number of rows that the agent stores.
        batch_size: Rows of a minibatch, drawn with replacement.
        epsilon: Probability of a random action instead. With `posterior="point"` in
            all layers, the agent is greedy but for these actions.
        seed: Seed of choices and minibatches; the noise of training follows
            `keras.utils.set_random_seed` and the seeds of the layers.

    Raises:
        ValueError: The model is not compiled, has classes, several targets or inputs of
            unknown size, or a number is out of range.
    """

    def __init__(
        self,
        model: BayesianModel,
        *,
        draws: int = 1,
        capacity: int = 4096,
        batch_size: int = 64,
        epsilon: float = 0.0,
        seed: int = 0,
    ):
        _check_model(model)
        if not (is_finite_number(epsilon) and 0.0 <= epsilon <= 1.0):
            raise ValueError(
                f"`epsilon` must be a probability. Received: epsilon={epsilon!r}"
            )
        self.model = model
        self.draws = int32("draws", draws, least=1)
        self.capacity = int32("capacity", capacity, least=1)
        self.batch_size = int32("batch_size", batch_size, least=1)
        self.epsilon = float(epsilon)
        self._seed = tf.constant([int32("seed", seed), 0], tf.int32)
        self._inputs = [
            tf.Variable(tf.zeros([capacity, *x.shape[1:]], x.dtype))
            for x in model.inputs
        ]
        self._rewards = tf.Variable(tf.zeros([capacity, 1]))
        # Of observed rows, choices and training steps.
        self._observed, self._choices, self._steps = (
            tf.Variable(0, dtype=tf.int32) for _ in range(3)
        )
        # Compiled loops by environment.
        self._loops: dict[tuple[Inputs, Reward], Callable[..., Any]] = {}

    @property
    def num_rows(self) -> int:
        """Number of stored rows."""
        return min(int(self._observed.numpy()), self.capacity)

    def choose(self, inputs: ArrayLike) -> int:
        """Returns the index of an action, drawn by Thompson sampling.

        Args:
            inputs: The inputs of each possible action, in the structure of the model's
                inputs, [actions, ...].

        Raises:
            ValueError: The inputs are not the model's, or the model has no finite
                reward for an action.
        """
        tensors = tf.nest.flatten(input_tensors(self.model, inputs))
        action, values = self._traced_choice(tensors)
        _check_finite(values.numpy())
        return int(action)

    def observe(self, inputs: ArrayLike, rewards: ArrayLike) -> None:
        """Stores rows, in place of the oldest ones where there is no room.

        Args:
            inputs: The inputs of one chosen action, or of several, [n, ...].
            rewards: Their rewards, a number or [n].

        Raises:
            ValueError: The inputs are not the model's, the numbers of rows differ, or
                the likelihood does not support a reward.
        """
        if np.ndim(rewards) == 0:
            rewards = np.reshape(rewards, [1])
            inputs = self._one_row(inputs)
        tensors = tf.nest.flatten(input_tensors(self.model, inputs))
        targets = self.model.likelihood.check_targets(rewards).reshape(-1, 1)
        if len(tensors[0]) != len(targets):
            raise ValueError(
                "Every row has one reward. "
                f"Received: {len(tensors[0])} rows and {len(targets)} rewards"
            )
        for first in range(0, len(targets), self.capacity):
            # No two rows of a part have the same place.
            part = slice(first, first + self.capacity)
            self._traced_storing([x[part] for x in tensors], targets[part])

    def train(self, steps: int = 64) -> None:
        """Takes training steps on minibatches of the stored rows.

        The temperature is the target of the model's `kl_schedule`. As long as all
        rewards are equal and the likelihood has no scale yet, there is nothing to
        learn, and no step is taken.

        Args:
            steps: Number of steps.

        Raises:
            ValueError: No row is stored.
        """
        int32("steps", steps, least=1)
        if not self.num_rows:
            raise ValueError(
                "There is no row to train on: call `observe` first. Received: 0 rows"
            )
        targets = None
        if not self.model.likelihood.adapted:
            targets = self._rewards.numpy()[: self.num_rows]
            if np.ptp(targets) == 0.0:
                return
        observed = int(self._observed.numpy())
        with self.model.training_on(TrainingRows(targets, observed)):
            self._build_optimizer()
            self._traced_training(tf.constant(steps))

    def play(
        self,
        inputs: Inputs,
        reward: Reward,
        rounds: int,
        steps: int = 64,
        first: int = 0,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Plays rounds of `choose`, `observe` and `train` in one compiled loop.

        The result is that of the three methods called in turn, without the time that
        calls from Python take: most of a round if the network is small.

        Args:
            inputs: Takes the number of a round, an int32 tensor, and returns tensors of
                the inputs of each possible action, [actions, ...].
            reward: Takes the numbers of the round and of the action, and returns the
                reward, a scalar tensor. Both functions are traced, so random numbers
                must be TensorFlow's.
            rounds: Number of rounds.
            steps: Number of training steps after each round.
            first: Number of the first round.

        Returns:
            The actions, int32 [rounds], and their rewards, float32 [rounds].

        Raises:
            ValueError: The likelihood has no shift and scale of the rewards yet, or a
                reward or a prediction is not finite.
        """
        int32("rounds", rounds, least=1)
        int32("steps", steps, least=1)
        if not self.model.likelihood.adapted:
            raise ValueError(
                "A compiled loop cannot read shift and scale off the rewards. Call "
                "`model.likelihood.adapt` with possible rewards before. "
                f"Received: likelihood={self.model.likelihood!r}"
            )
        observed = int(self._observed.numpy()) + rounds
        with self.model.training_on(TrainingRows(None, observed)):
            self._build_optimizer()
            loop = self._loop(inputs, reward)
            played = loop(*map(tf.constant, (first, rounds, steps)))
        actions, rewards, values = (x.numpy() for x in played)
        _check_finite(values)
        _check_finite(rewards)
        return actions, rewards

    def _loop(self, inputs: Inputs, reward: Reward) -> Callable[..., Any]:
        """Returns the compiled loop of an environment, traced at its first call."""
        key = inputs, reward
        if key not in self._loops:
            self._loops[key] = tf.function(
                functools.partial(self._play, *key), autograph=False
            )
        return self._loops[key]

    def _play(
        self,
        inputs: Inputs,
        reward: Reward,
        first: Tensor,
        rounds: Tensor,
        steps: Tensor,
    ) -> tuple[Tensor, ...]:
        def play_round(index: Tensor, *arrays: tf.TensorArray) -> tuple[Tensor, ...]:
            of_actions = tf.nest.flatten(inputs(first + index))
            action, values = self._choose(of_actions)
            received = tf.cast(reward(first + index, action), tf.float32)
            chosen = [x[action][tf.newaxis] for x in of_actions]
            self._store(chosen, tf.reshape(received, [1, 1]))
            self._train(steps)
            found = action, received, tf.reduce_sum(values)
            return index + 1, *(
                array.write(index, value)
                for array, value in zip(arrays, found, strict=True)
            )

        arrays = [
            tf.TensorArray(dtype, rounds, element_shape=[])
            for dtype in (tf.int32, tf.float32, tf.float32)
        ]
        _, *arrays = tf.while_loop(
            lambda index, *arrays: index < rounds,
            play_round,
            [tf.constant(0), *arrays],
            parallel_iterations=1,
        )
        return tuple(array.stack() for array in arrays)

    def _build_optimizer(self) -> None:
        if not self.model.optimizer.built:
            self.model.optimizer.build(self.model.trainable_variables)

    @functools.cached_property
    def _program(self) -> Program:
        specs = [tf.TensorSpec([None, *x.shape[1:]], x.dtype) for x in self._inputs]
        # The empty plan draws all weights, so that all rows see one function.
        return Program(self.model, [self.model.likelihood], Plan(), self._packed(specs))

    def _choose(self, inputs: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Returns an action, and the rewards that the drawn functions predict."""
        choice = self._choices.assign_add(1, read_value=True)
        members = self._program.sizes.members
        drawn = self._program.draws(
            noise.fold(self._seed, _WEIGHTS, choice),
            tf.constant(0),
            tf.constant(self.draws),
        )
        moments = self._program.moments()
        (outputs,) = self._program.outputs(
            self._packed(self._cast(inputs)), moments, drawn
        )
        # By round and member; the second draw of each pair mirrors the first.
        pairs = tf.reshape(outputs, [-1, self.draws, 2, members, outputs.shape[-1]])
        functions = tf.transpose(pairs[:, :, 0], [1, 2, 0, 3])
        member = tf.random.stateless_uniform(
            [self.draws],
            noise.fold(self._seed, _MEMBERS, choice),
            maxval=members,
            dtype=tf.int32,
        )
        functions = tf.gather(functions, member, batch_dims=1)
        means = self.model.likelihood.mean(functions)
        values = tf.reduce_mean(means, axis=[0, 2])
        action = tf.argmax(values, output_type=tf.int32)
        if self.epsilon:
            seed = noise.fold(self._seed, _ACTIONS, choice)
            explore, which = tf.unstack(tf.random.stateless_uniform([2], seed))
            other = tf.cast(which * tf.cast(tf.size(values), tf.float32), tf.int32)
            action = tf.where(explore < self.epsilon, other, action)
        return action, values

    def _store(self, inputs: list[Tensor], rewards: Tensor) -> None:
        count = tf.shape(rewards)[0]
        end = self._observed.assign_add(count, read_value=True)
        places = (end - count + tf.range(count)) % self.capacity
        values = [*self._cast(inputs), tf.cast(rewards, tf.float32)]
        for stored, value in zip([*self._inputs, self._rewards], values, strict=True):
            stored.scatter_nd_update(places[:, tf.newaxis], value)

    def _train(self, steps: Tensor) -> None:
        observed = self._observed.read_value()
        num_rows = tf.minimum(observed, self.capacity)
        share = tf.cast(num_rows, tf.float32) / tf.cast(observed, tf.float32)
        weight = share * tf.gather(self._kl_weights, num_rows - 1)
        self._temperature.assign_kl_weight(weight)
        first = self._steps.read_value()

        def step(index: Tensor) -> Tensor:
            rows = tf.random.stateless_uniform(
                [self.batch_size],
                noise.fold(self._seed, _ROWS, index),
                maxval=num_rows,
                dtype=tf.int32,
            )
            inputs = self._packed([tf.gather(x, rows) for x in self._inputs])
            self.model.train_step((inputs, tf.gather(self._rewards, rows)))
            return index + 1

        tf.while_loop(
            lambda index: index < first + steps, step, [first], parallel_iterations=1
        )
        self._steps.assign_add(steps)

    @functools.cached_property
    def _temperature(self) -> TrainingTemperature:
        return self.model.training_temperature(self.capacity)

    @functools.cached_property
    def _kl_weights(self) -> np.ndarray:
        """T/N for each number N of stored rows, from 1 on."""
        schedule = self.model.kl_schedule
        weights = [
            schedule.target_temperature(n) / n for n in range(1, self.capacity + 1)
        ]
        return np.array(weights, np.float32)

    @functools.cached_property
    def _traced_choice(self) -> Callable[..., Any]:
        return tf.function(self._choose, autograph=False, reduce_retracing=True)

    @functools.cached_property
    def _traced_storing(self) -> Callable[..., Any]:
        return tf.function(self._store, autograph=False, reduce_retracing=True)

    @functools.cached_property
    def _traced_training(self) -> Callable[..., Any]:
        return tf.function(self._train, autograph=False)

    def _one_row(self, inputs: ArrayLike) -> Structure:
        """Returns the inputs of an action, arrays or lists, with an axis of rows."""
        if isinstance(inputs, dict):
            return {name: np.asarray(x)[np.newaxis] for name, x in inputs.items()}
        if len(self._inputs) > 1:
            return [np.asarray(x)[np.newaxis] for x in inputs]
        return np.asarray(inputs)[np.newaxis]

    def _packed(self, flat: list[Tensor]) -> Structure:
        return tf.nest.pack_sequence_as(self.model.input, flat)

    def _cast(self, inputs: list[Tensor]) -> list[Tensor]:
        return [
            tf.cast(x, variable.dtype)
            for x, variable in zip(inputs, self._inputs, strict=True)
        ]


def _check_finite(values: np.ndarray) -> None:
    if not np.isfinite(values).all():
        raise ValueError(
            "Not every predicted or received reward is finite: look for inputs that "
            "are not numbers or far too large, or for training that diverged. "
            f"Received: {values[~np.isfinite(values)][0]}"
        )


def _check_model(model: BayesianModel) -> None:
    """Raises ValueError for a model that cannot predict the reward of an action."""
    if not model.compiled:
        raise ValueError(
            "The agent trains the model: call `model.compile` first. "
            f"Received: model={model.name!r}, which is not compiled"
        )
    targets = getattr(model.likelihood, "num_targets", None)
    if targets != 1:
        raise ValueError(
            "A reward is one number: end the network with the outputs of one target "
            "and choose a likelihood of numbers. "
            f"Received: likelihood={model.likelihood!r}, num_targets={targets}"
        )
    for tensor in model.inputs:
        if None in tensor.shape[1:]:
            raise ValueError(
                "The agent stores rows, so it needs the shape of each input. Give "
                f"`keras.Input` the whole shape. Received: shape={tensor.shape}"
            )
