"""The compiled prediction of one model by one plan."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf
from keras import tree

from tfbbb.likelihoods import Likelihood
from tfbbb.prediction.compiled import Compiled, spec_of
from tfbbb.prediction.draws import Tensors
from tfbbb.prediction.plan import Plan
from tfbbb.prediction.program import Program, structure_of_outputs
from tfbbb.prediction.propagated import PropagatedProgram
from tfbbb.prediction.structure import Structure
from tfbbb.prediction.variables import Snapshot

_INTEGER = tf.TensorSpec([], tf.int32)
_SEED = tf.TensorSpec([2], tf.int32)
# Names of variables that steer training, which no prediction reads.
_OF_TRAINING = ("kl_weight", "num_rows", "seed_generator_state")


class Computation:
    """Computes a model's posterior predictive, traced once for any number of rows.

    All of it is a function of the values of the variables. Those of one prediction are
    held for what its result may be asked later; moments of weights, noise and drawn
    weights are held for the next prediction, as long as the variables stay as they are.

    Args:
        program: What is computed.
    """

    def __init__(self, program: Program):
        self.program = program
        self._posterior, self._others = _variables(program)
        self._memory: Memory | None = None

    @classmethod
    def of(
        cls,
        model: keras.Model,
        likelihoods: Sequence[Likelihood],
        plan: Plan,
        inputs: Any,
    ) -> "Computation":
        """Returns the model's computation, made at the first call of its kind."""
        structure = Structure.of(model)
        kinds = tree.map_structure(lambda x: (*x.shape[1:], x.dtype.name), inputs)
        key = (plan, repr(kinds), *(_key(x, structure) for x in likelihoods))
        known = structure.computations
        if key not in known:
            outputs = tree.flatten(structure_of_outputs(model, inputs))
            own = [
                likelihood
                if id(likelihood) in structure.indices
                else _copy(likelihood, output.shape)
                for likelihood, output in zip(likelihoods, outputs, strict=True)
            ]
            known[key] = cls(_program(model, own, plan, inputs))
        return known[key]

    def memory(self) -> "Memory":
        """Returns the values that the variables have now, and what is known of them."""
        memory = Memory(Snapshot(self._posterior), Snapshot(self._others))
        if self._memory is None or not memory.is_same(self._memory):
            self._memory = memory
        return self._memory

    @property
    def is_compiled(self) -> bool:
        """Whether a prediction has been made already."""
        return "moments" in self.__dict__

    def state(self, memory: "Memory") -> list[tuple[keras.Variable, Any]]:
        """Returns the variables that are no posterior's with their values."""
        return list(zip(self._others, memory.others.values, strict=True))

    @functools.cached_property
    def moments(self) -> Compiled:
        return Compiled(self._with_posterior(self.program.moments), self._specs)

    @functools.cached_property
    def draws(self) -> Compiled:
        of_rounds = self._with_posterior(self.program.draws)
        return Compiled(of_rounds, self._specs, _SEED, _INTEGER, _INTEGER)

    @functools.cached_property
    def summaries(self) -> Compiled:
        def summaries(*arguments: Any) -> Any:
            found, outputs = self.program.sums(*arguments)
            return [self.program.summary(x) for x in found], outputs

        return self._of_rows(summaries)

    @functools.cached_property
    def sums(self) -> Compiled:
        return self._of_rows(self.program.sums)

    @functools.cached_property
    def outputs(self) -> Compiled:
        return self._of_rows(self.program.outputs)

    @property
    def _specs(self) -> Any:
        return [tf.TensorSpec(v.shape, v.dtype) for v in self._posterior]

    def _with_posterior(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def pure(values: Any, *arguments: Any) -> Any:
            state = zip(self._posterior, values, strict=True)
            with keras.StatelessScope(state_mapping=state):
                return function(*arguments)

        return pure

    def _of_rows(self, function: Callable[..., Any]) -> Compiled:
        def pure(values: Any, *arguments: Any) -> Any:
            state = zip(self._others, values, strict=True)
            with keras.StatelessScope(state_mapping=state):
                return function(*arguments)

        return Compiled(
            pure,
            [tf.TensorSpec(v.shape, v.dtype) for v in self._others],
            self.program.input_specs,
            spec_of(self.moments.structure),
            spec_of(self.draws.structure),
        )


class Memory:
    """The values of a model's variables, and what has been computed of them.

    Args:
        posterior: Values of the variables of posteriors and priors.
        others: Values of all others that a prediction reads.
    """

    def __init__(self, posterior: Snapshot, others: Snapshot):
        self.posterior = posterior
        self.others = others
        self._moments: Tensors | None = None
        self._draws: tuple[tuple[tuple[int, int], int, int], Tensors] | None = None

    def is_same(self, other: "Memory") -> bool:
        """Whether the variables have the same values in both."""
        return self.posterior.is_same(other.posterior) and self.others.is_same(
            other.others
        )

    def moments(self, compute: Compiled) -> Tensors:
        """Returns the moments of the weights, computed at the first call."""
        if self._moments is None:
            self._moments = compute(self.posterior.values)
        return self._moments

    def draws(
        self,
        compute: Compiled,
        seed: tuple[int, int],
        first: int,
        count: int,
        keep: bool,
    ) -> Tensors:
        """Returns draws, kept from one call to the next where `keep` says so."""
        key = (seed, first, count)
        if self._draws is not None and self._draws[0] == key:
            return self._draws[1]
        draws = compute(
            self.posterior.values,
            tf.constant(seed, tf.int32),
            tf.constant(first, tf.int32),
            tf.constant(count, tf.int32),
        )
        if keep:
            self._draws = (key, draws)
        return draws


def _variables(
    program: Program,
) -> tuple[list[keras.Variable], list[keras.Variable]]:
    """Returns the variables of the posteriors, and what else a prediction may read."""
    posterior = [
        variable
        for place in program.structure.places
        for weight in place.layer.variational_weights
        for variable in weight.all_variables
    ]
    known = {id(variable) for variable in posterior}
    others = [*program.model.variables]
    for likelihood in program.likelihoods:
        others += likelihood.variables
    found = {
        id(variable): variable
        for variable in others
        if id(variable) not in known and variable.name not in _OF_TRAINING
    }
    return posterior, list(found.values())


def _program(
    model: keras.Model, likelihoods: Sequence[Likelihood], plan: Plan, inputs: Any
) -> Program:
    kind = PropagatedProgram if plan.propagated else Program
    return kind(model, likelihoods, plan, inputs)


def _key(likelihood: Likelihood, structure: Structure) -> Any:
    if id(likelihood) in structure.indices:
        return id(likelihood)
    # Like ones share a computation, which a copy keeps as it is.
    config = {**likelihood.get_config(), "name": None}
    return type(likelihood), repr(config), repr(likelihood.get_weights())


def _copy(likelihood: Likelihood, output_shape: Any) -> Likelihood:
    copy = type(likelihood).from_config(likelihood.get_config())
    copy.build(tuple(output_shape))
    if likelihood.built:
        copy.set_weights(likelihood.get_weights())
    return copy
