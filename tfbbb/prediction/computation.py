"""The compiled prediction of one model by one plan, and its passes."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf
from keras import tree

from tfbbb.base.types import (
    ArrayLike,
    Shape,
    Tensor,
)
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.prediction.compiled import fast_call, to_specs, traced
from tfbbb.prediction.draws import Tensors
from tfbbb.prediction.live_answers import live_answers
from tfbbb.prediction.passes import Passes
from tfbbb.prediction.plan import Plan
from tfbbb.prediction.program import Program, structure_of_outputs
from tfbbb.prediction.recalibration.recalibration import IDENTITY, Recalibration
from tfbbb.prediction.snapshot import Snapshot
from tfbbb.prediction.structure import Structure
from tfbbb.prediction.summary import merged

_INTEGER = tf.TensorSpec([], tf.int32)
_SEED = tf.TensorSpec([2], tf.int32)
# The number of kinds of predictions that keep their draws for the next one.
_MOST_KEPT = 4
# Names of variables of training, which no prediction reads.
_OF_TRAINING = ("kl_weight", "num_rows", "seed_generator_state")


# Passes, the recalibration of their answers, and the values of the variables of the
# posteriors and of all others.
BoundPasses = tuple[Passes, Recalibration, Snapshot, Snapshot]


class Computation:
    """Computes a model's posterior predictive, traced once for any number of rows.

    Its functions take the values of the variables; `passes` reads the present values.
    The passes keep the moments of weights, the noise and the drawn weights for the next
    prediction, until the variables change.

    Args:
        program: The functions to compile.
    """

    def __init__(self, program: Program):
        self.program = program
        self._posterior, self._others = _variables(program)
        # Kept until the values change.
        self._bound: BoundPasses | None = None

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
        # Other parts change answers, which are not compiled.
        recalibration = recalibration.density
        if not recalibration.acts_on_outputs:
            recalibration = IDENTITY
        structure = Structure.of(model)
        kinds = tree.map_structure(lambda x: (*x.shape[1:], x.dtype.name), inputs)
        keys = [_key(x, structure) for x in likelihoods]
        key = (plan, repr(kinds), recalibration, *keys)
        known = structure.computations.get(key)
        if known is None:
            outputs = tree.flatten(structure_of_outputs(model, inputs))
            # One likelihood may be that of all outputs.
            outputs = outputs[:: len(outputs) // len(likelihoods)]
            own = [
                likelihood
                if id(likelihood) in structure.indices
                else _copy(likelihood, output.shape)
                for likelihood, output in zip(likelihoods, outputs, strict=True)
            ]
            known = cls(Program(model, own, plan, inputs, recalibration))
            structure.computations.keep(key, known)
        return known

    def passes(self, recalibration: Recalibration = IDENTITY) -> Passes:
        """Returns the passes with the present values of the variables."""
        values = Snapshot(self._posterior), Snapshot(self._others)
        bound = self._bound
        if (
            bound is None
            or bound[1] is not recalibration
            or not _has_values(bound, *values)
        ):
            passes = self._bind(*values, recalibration)
            self._bound = bound = passes, recalibration, *values
            self._drop_others()
        return bound[0]

    def _bind(
        self, posterior: Snapshot, others: Snapshot, recalibration: Recalibration
    ) -> Passes:
        """Returns passes with the values that the variables had at one moment.

        The passes hold the values because the result of a prediction can be asked
        later.

        Args:
            posterior: Values of the variables of posteriors and priors.
            others: Values of all other variables that a prediction reads.
            recalibration: The recalibration of the answers.
        """
        program = self.program
        state = list(zip(self._others, others.values, strict=True))
        moments: Any = None

        def arguments(inputs: Tensor, draws: Tensors) -> tuple[Any, ...]:
            nonlocal moments
            if moments is None:
                moments = self._moments(posterior.values)
            return others.values, inputs, moments, draws

        def coherent() -> Passes:
            computation = Computation.of(
                program.model,
                program.likelihoods,
                Plan(dropout=program.plan.dropout, linearised=program.plan.linearised),
                program.input_specs,
                recalibration,
            )
            return computation._bind(posterior, others, recalibration)

        return Passes(
            draw=lambda *rounds: self._draws(posterior.values, *rounds),
            summaries=lambda *given: self._summaries(*arguments(*given)),
            sums=lambda *given: self._sums(*arguments(*given)),
            outputs=lambda *given: self._outputs(*arguments(*given)),
            merge=merged,
            summarize=program.summary,
            coherent=coherent,
            sizes=program.sizes,
            answers=[
                live_answers(likelihood, recalibration, state)
                for likelihood in program.likelihoods
            ],
            operations=program.operations,
            is_compiled="_traced_draws" in self.__dict__,
            groups=recalibration.groups,
        )

    def _drop_others(self) -> None:
        """Drops the draws of other computations that are old or from old weights."""
        computations = self.program.structure.computations.values()
        for place, other in enumerate(reversed(computations)):
            bound = other._bound
            if bound is not None and not (
                place < _MOST_KEPT
                and _has_values(
                    bound, Snapshot(other._posterior), Snapshot(other._others)
                )
            ):
                other._bound = None

    @functools.cached_property
    def _traced_moments(self) -> Any:
        return traced(self._with_posterior(self.program.moments), self._specs)

    @functools.cached_property
    def _traced_draws(self) -> Any:
        draws = self._with_posterior(self.program.draws)
        return traced(draws, self._specs, _SEED, _INTEGER, _INTEGER)

    @functools.cached_property
    def _moments(self) -> Callable[..., Any]:
        return fast_call(self._traced_moments)

    @functools.cached_property
    def _draws(self) -> Callable[..., Any]:
        return fast_call(self._traced_draws)

    @functools.cached_property
    def _summaries(self) -> Callable[..., Any]:
        def summaries(*arguments: Any) -> Any:
            found, outputs = self.program.sums(*arguments)
            return [self.program.summary(x) for x in found], outputs

        return self._compile(summaries)

    @functools.cached_property
    def _sums(self) -> Callable[..., Any]:
        return self._compile(self.program.sums)

    @functools.cached_property
    def _outputs(self) -> Callable[..., Any]:
        return self._compile(self.program.outputs)

    @property
    def _specs(self) -> Any:
        return [tf.TensorSpec(v.shape, v.dtype) for v in self._posterior]

    def _with_posterior(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def pure(values: ArrayLike, *arguments: Any) -> Any:
            state = zip(self._posterior, values, strict=True)
            with keras.StatelessScope(state_mapping=state):
                return function(*arguments)

        return pure

    def _compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Compiles a function of inputs, moments and draws."""

        def pure(values: ArrayLike, *arguments: Any) -> Any:
            state = zip(self._others, values, strict=True)
            with keras.StatelessScope(state_mapping=state):
                return function(*arguments)

        concrete = traced(
            pure,
            [tf.TensorSpec(v.shape, v.dtype) for v in self._others],
            self.program.input_specs,
            to_specs(self._traced_moments.structured_outputs),
            to_specs(self._traced_draws.structured_outputs),
        )
        return fast_call(concrete)


def _has_values(bound: BoundPasses, posterior: Snapshot, others: Snapshot) -> bool:
    """Whether passes have the values of these snapshots."""
    return bound[2].is_same(posterior) and bound[3].is_same(others)


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


def _key(likelihood: Likelihood, structure: Structure) -> Any:
    if id(likelihood) in structure.indices:
        return id(likelihood)
    # Equal likelihoods share a computation, which copies the likelihood.
    config = {**likelihood.get_config(), "name": None}
    return type(likelihood), repr(config), repr(likelihood.get_weights())


def _copy(likelihood: Likelihood, output_shape: Shape) -> Likelihood:
    copy = type(likelihood).from_config(likelihood.get_config())
    copy.build(tuple(output_shape))
    if likelihood.built:
        copy.set_weights(likelihood.get_weights())
    return copy
