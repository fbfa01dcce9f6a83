"""The compiled prediction of one model by one plan, and its passes."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf
from keras import tree

from tfbbb.likelihoods import Likelihood
from tfbbb.prediction.compiled import Compiled, spec_of, traced
from tfbbb.prediction.draws import Tensors
from tfbbb.prediction.kept_draws import KeptDraws
from tfbbb.prediction.live_answers import live_answers
from tfbbb.prediction.passes import Passes
from tfbbb.prediction.plan import Plan
from tfbbb.prediction.program import Program, structure_of_outputs
from tfbbb.prediction.propagated import PropagatedProgram
from tfbbb.prediction.snapshot import Snapshot
from tfbbb.prediction.structure import Structure
from tfbbb.prediction.summary import merged
from tfbbb.recalibration.recalibration import IDENTITY, Recalibration
from tfbbb.types import ArrayLike, Shape, Tensor

_INTEGER = tf.TensorSpec([], tf.int32)
_SEED = tf.TensorSpec([2], tf.int32)
# The number of kinds of predictions that keep their draws for the next one.
_MOST_KEPT = 4
# Names of variables of training, which no prediction reads.
_OF_TRAINING = ("kl_weight", "num_rows", "seed_generator_state")


class Computation:
    """Computes a model's posterior predictive, traced once for any number of rows.

    Its functions take the values of the variables; `passes` reads the present values.

    Args:
        program: The functions to compile.
    """

    def __init__(self, program: Program):
        self.program = program
        self._posterior, self._others = _variables(program)
        self._passes: LivePasses | None = None

    @classmethod
    def of(
        cls,
        model: keras.Model,
        likelihoods: Sequence[Likelihood],
        plan: Plan,
        inputs: Tensor,
        recalibration: Recalibration = IDENTITY,
    ) -> "Computation":
        """Returns the model's computation, which the first call of its kind makes."""
        if not recalibration.acts_on_outputs:
            # It changes answers, which are not compiled.
            recalibration = IDENTITY
        structure = Structure.of(model)
        kinds = tree.map_structure(lambda x: (*x.shape[1:], x.dtype.name), inputs)
        keys = [_key(x, structure) for x in likelihoods]
        key = (plan, repr(kinds), recalibration, *keys)
        known = structure.computations.get(key)
        if known is None:
            outputs = tree.flatten(structure_of_outputs(model, inputs))
            own = [
                likelihood
                if id(likelihood) in structure.indices
                else _copy(likelihood, output.shape)
                for likelihood, output in zip(likelihoods, outputs, strict=True)
            ]
            known = cls(_program(model, own, plan, inputs, recalibration))
            structure.computations.keep(key, known)
        return known

    def passes(self, recalibration: Recalibration = IDENTITY) -> "LivePasses":
        """Returns the passes with the present values of the variables."""
        posterior, others = Snapshot(self._posterior), Snapshot(self._others)
        passes = self._passes
        if (
            passes is None
            or passes.recalibration is not recalibration
            or not passes.have_values(posterior, others)
        ):
            passes = LivePasses(self, posterior, others, recalibration)
            self._passes = passes
            self._drop_others()
        return passes

    def _drop_others(self) -> None:
        """Drops the draws of other computations that are old or from old weights."""
        computations = self.program.structure.computations.values()
        for place, other in enumerate(reversed(computations)):
            passes = other._passes
            if passes is not None and not (
                place < _MOST_KEPT
                and passes.have_values(
                    Snapshot(other._posterior), Snapshot(other._others)
                )
            ):
                other._passes = None

    @property
    def is_compiled(self) -> bool:
        """Whether a prediction has compiled the functions."""
        return "moments" in self.__dict__

    def state(self, values: Sequence[Any]) -> list[tuple[keras.Variable, Any]]:
        """Pairs the variables outside the posteriors with the values."""
        return list(zip(self._others, values, strict=True))

    @functools.cached_property
    def moments(self) -> Compiled:
        of_weights = self._with_posterior(self.program.moments)
        return Compiled(traced(of_weights, self._specs))

    @functools.cached_property
    def draws(self) -> Compiled:
        of_rounds = self._with_posterior(self.program.draws)
        return Compiled(traced(of_rounds, self._specs, _SEED, _INTEGER, _INTEGER))

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
        def pure(values: ArrayLike, *arguments: Any) -> Any:
            state = zip(self._posterior, values, strict=True)
            with keras.StatelessScope(state_mapping=state):
                return function(*arguments)

        return pure

    def _of_rows(self, function: Callable[..., Any]) -> Compiled:
        def pure(values: ArrayLike, *arguments: Any) -> Any:
            state = zip(self._others, values, strict=True)
            with keras.StatelessScope(state_mapping=state):
                return function(*arguments)

        concrete = traced(
            pure,
            [tf.TensorSpec(v.shape, v.dtype) for v in self._others],
            self.program.input_specs,
            spec_of(self.moments.structure),
            spec_of(self.draws.structure),
        )
        return Compiled(concrete)


class LivePasses(Passes):
    """Passes with the values that a model's variables had at one moment.

    It holds the values because the result of a prediction can be asked later. It keeps
    the moments of weights, the noise and the drawn weights for the next prediction,
    until the variables change.

    Args:
        computation: The compiled functions.
        posterior: Values of the variables of posteriors and priors.
        others: Values of all other variables that a prediction reads.
        recalibration: The recalibration of the answers.
    """

    def __init__(
        self,
        computation: Computation,
        posterior: Snapshot,
        others: Snapshot,
        recalibration: Recalibration,
    ):
        self._computation = computation
        self._program = program = computation.program
        self._posterior = posterior
        self._others = others
        state = computation.state(others.values)
        self.recalibration = recalibration
        self.answers = [
            live_answers(likelihood, recalibration, state)
            for likelihood in program.likelihoods
        ]
        self.sizes = program.sizes
        self.operations = program.operations
        self._moments: Tensors | None = None
        self._kept = KeptDraws()

    def have_values(self, posterior: Snapshot, others: Snapshot) -> bool:
        """Whether the passes have the values of these snapshots."""
        return self._posterior.is_same(posterior) and self._others.is_same(others)

    @property
    def is_compiled(self) -> bool:
        return self._computation.is_compiled

    def draws(
        self, key: tuple[int, int], first: int, count: int, keep: bool
    ) -> Tensors:
        compute = functools.partial(self._computation.draws, self._posterior.values)
        return self._kept.draws(compute, key, first, count, keep)

    def summaries(self, inputs: Tensor, draws: Tensors) -> tuple[list[Any], list[Any]]:
        return self._computation.summaries(*self._arguments(inputs, draws))

    def sums(self, inputs: Tensor, draws: Tensors) -> tuple[list[Any], list[Any]]:
        return self._computation.sums(*self._arguments(inputs, draws))

    def merged(self, one: Any, other: Any) -> Any:
        return merged(one, other)

    def summary(self, found: Any) -> dict[str, tf.Tensor]:
        return self._program.summary(found)

    def outputs(self, inputs: Tensor, draws: Tensors) -> list[Any]:
        return self._computation.outputs(*self._arguments(inputs, draws))

    def of_functions(self) -> "LivePasses":
        program = self._program
        plan = Plan(dropout=program.plan.dropout)
        computation = Computation.of(
            program.model,
            program.likelihoods,
            plan,
            program.input_specs,
            self.recalibration,
        )
        return LivePasses(
            computation, self._posterior, self._others, self.recalibration
        )

    def _arguments(self, inputs: Tensor, draws: Tensors) -> tuple[Any, ...]:
        if self._moments is None:
            self._moments = self._computation.moments(self._posterior.values)
        return self._others.values, inputs, self._moments, draws


def _variables(
    program: Program,
) -> tuple[list[keras.Variable], list[keras.Variable]]:
    """Returns the variables of the posteriors, and all others a prediction may read."""
    posterior = [
        variable
        for info in program.structure.layer_infos
        for weight in info.layer.variational_weights
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
    model: keras.Model,
    likelihoods: Sequence[Likelihood],
    plan: Plan,
    inputs: Tensor,
    recalibration: Recalibration,
) -> Program:
    kind = PropagatedProgram if plan.propagated else Program
    return kind(model, likelihoods, plan, inputs, recalibration)


def _key(likelihood: Likelihood, structure: Structure) -> Any:
    if id(likelihood) in structure.indices:
        return id(likelihood)
    # Equal likelihoods share a computation, which has a copy of its own.
    config = {**likelihood.get_config(), "name": None}
    return type(likelihood), repr(config), repr(likelihood.get_weights())


def _copy(likelihood: Likelihood, output_shape: Shape) -> Likelihood:
    copy = type(likelihood).from_config(likelihood.get_config())
    copy.build(tuple(output_shape))
    if likelihood.built:
        copy.set_weights(likelihood.get_weights())
    return copy
