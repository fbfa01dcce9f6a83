"""All functions and signatures of a SavedModel."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from tfbbb.base.private_apis import input_structure, sublayers
from tfbbb.base.types import Structure, Tensor
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.export.feature_tensors import packing, tensor_specs
from tfbbb.export.manifest import DrawingMethod, Feature, Targets
from tfbbb.prediction.answers import summary_outputs
from tfbbb.prediction.blocks import MAX_FLOATS, Sizes
from tfbbb.prediction.compiled import to_specs, traced
from tfbbb.prediction.draws import Tensors
from tfbbb.prediction.extrapolation import Extrapolation
from tfbbb.prediction.familiarity import Familiarity
from tfbbb.prediction.likelihood_model import LikelihoodModel
from tfbbb.prediction.mixture import Mixture
from tfbbb.prediction.plan import Plan, plan_for
from tfbbb.prediction.program import Program
from tfbbb.prediction.questions import quantiles_of
from tfbbb.prediction.recalibration.recalibration import IDENTITY, Recalibration
from tfbbb.prediction.structure import Structure as NetworkStructure
from tfbbb.prediction.summary import summary

ConcreteFunction: TypeAlias = tf.types.experimental.ConcreteFunction
_FAMILIARITY = "familiarity"
_NUM_SAMPLES = tf.TensorSpec([], tf.int32, name="num_samples")
_SEED = tf.TensorSpec([], tf.int32, name="seed")


def trace_functions(
    model: LikelihoodModel,
    features: Sequence[Feature],
    method: DrawingMethod,
    num_samples: int,
    seed: int,
    dtype: str = "float32",
) -> tuple[tf.Module, dict[str, ConcreteFunction], dict[str, Any]]:
    """Traces all functions of an export."""
    likelihood = model.likelihood
    recalibration = model.recalibration or IDENTITY
    density = recalibration.density
    specs = tensor_specs(model, features)
    pack = packing(model, features)
    familiarity, extrapolation = model.familiarity, model.extrapolation
    num_beyond = 0 if extrapolation is None else len(extrapolation.amplitudes)
    programs, moments = _programs(model, density, method, num_samples, num_beyond)
    # Without the names of the signatures' inputs.
    unnamed = [tf.TensorSpec(spec.shape, spec.dtype) for spec in specs]
    # The deviations of an extrapolation follow the features.
    beyond = [tf.TensorSpec([None, num_beyond])] if num_beyond else []
    given = [*unnamed, *beyond]

    def pack_rows(tensors: Sequence[Tensor]) -> Structure:
        packed = pack(tensors[: len(unnamed)])
        return [packed, tensors[-1]] if beyond else packed

    root = tf.Module()
    if familiarity is not None:
        root.familiarity = _trace_familiarity(familiarity, extrapolation, pack, unnamed)
    methods = {
        name: _trace_program(program, moments[name], given, pack_rows)
        for name, program in programs.items()
    }
    moments_of = methods[method].answer.structured_outputs["summary"]
    targets = _describe_targets(likelihood, moments_of["mean"].shape[1:])
    signatures = _trace_signatures(
        methods[method],
        programs[method].sizes,
        likelihood,
        recalibration.of_answers,
        specs,
        root.familiarity.of_rows if familiarity is not None else None,
        num_samples,
        seed,
        tf.as_dtype(dtype),
    )
    root.methods = methods
    root.read = _variables_read(root, signatures)
    # Layers with resources that are not variables, such as lookup tables.
    root.tables = [layer for layer in sublayers(model) if not layer.variables]
    described = {
        "passes": {name: program.sizes for name, program in programs.items()},
        "targets": targets,
    }
    return root, signatures, described


def _trace_familiarity(
    familiarity: Familiarity,
    extrapolation: Extrapolation | None,
    pack: Callable[[Sequence[Tensor]], Structure],
    features: list[tf.TensorSpec],
) -> tf.Module:
    """Returns a module with functions of feature tensors.

    `of_rows` returns the familiarity, [n], in a list, and with an extrapolation the
    deviations, [n, k]; `differences` what makes rows unlike.
    """

    def of_rows(tensors: Sequence[Tensor]) -> list[tf.Tensor]:
        if extrapolation is None:
            return [familiarity(pack(tensors))]
        return list(extrapolation.compare(pack(tensors)))

    module = tf.Module()
    module.of_rows = traced(of_rows, features)
    module.differences = traced(lambda x: familiarity.differences(pack(x)), features)
    return module


def _trace_program(
    program: Program,
    moments: Tensors,
    features: Sequence[tf.TensorSpec],
    pack: Callable[[Sequence[Tensor]], Any],
) -> tf.Module:
    """Returns a module with the functions of a program, which the signatures call.

    - `draw` takes seed [2], first and number of rounds, and returns noise and weights
      as a list.
    - `outputs` takes feature tensors and what `draw` returned, and returns the outputs,
      [rows, S, ..., P].
    - `answer` takes the same, and returns the `summary` and the `outputs`.
    """
    module = tf.Module()
    form: Tensors = {}

    def draw(seed: Tensor, first: int | Tensor, count: int | Tensor) -> list[tf.Tensor]:
        nonlocal form
        form = program.draws(seed, first, count)
        return tf.nest.map_structure(tf.identity, tf.nest.flatten(form))

    def outputs(features: list[Tensor], draws: list[Tensor]) -> tf.Tensor:
        drawn = tf.nest.pack_sequence_as(form, draws)
        weights = tf.nest.map_structure(tf.convert_to_tensor, moments)
        (found,) = program.outputs(pack(features), weights, drawn)
        return found

    def answer(features: list[Tensor], draws: list[Tensor]) -> dict[str, Any]:
        found = module.outputs(features, draws)
        (likelihood,) = program.likelihoods
        return {
            "summary": summary(likelihood, found, program.members),
            "outputs": found,
        }

    integer = tf.TensorSpec([], tf.int32)
    module.draw = traced(draw, tf.TensorSpec([2], tf.int32), integer, integer)
    drawn = to_specs(module.draw.structured_outputs)
    module.outputs = traced(outputs, features, drawn)
    module.answer = traced(answer, features, drawn)
    return module


def _trace_signatures(
    passes: tf.Module,
    sizes: Sizes,
    likelihood: Likelihood,
    recalibration: Recalibration,
    features: Sequence[tf.TensorSpec],
    familiarity: Any,
    num_samples: int,
    seed: int,
    dtype: tf.DType,
) -> dict[str, ConcreteFunction]:
    """Returns the signatures by name: pure functions of rows and arguments.

    `passes` are the functions of one method.
    `familiarity` takes feature tensors, and returns a list of the familiarity of each
    row and of the deviations of an extrapolation, if any. The default signature has its
    own number of samples and seed; answers are of `dtype`.
    """
    names = summary_outputs(passes.answer.structured_outputs["summary"])

    def draw(number: Tensor, seed: Tensor) -> list[Tensor]:
        rounds = sizes.num_rounds(_at_least_two(number), tf.maximum)
        # As in `tfbbb.predictive`: the same seed gives the same draws.
        return passes.draw(tf.stack([0, seed]), tf.constant(0), rounds)

    def compare(
        given: Sequence[Tensor],
    ) -> tuple[list[Tensor], dict[str, tf.Tensor]]:
        if familiarity is None:
            return list(given), {}
        found, *deviations = familiarity(list(given))
        return [*given, *deviations], {_FAMILIARITY: found}

    def predict(*arguments: Tensor) -> dict[str, tf.Tensor]:
        *given, number, seed = arguments
        rows, compared = compare(given)
        found = passes.answer(rows, draw(number, seed))
        summary, outputs = found["summary"], found["outputs"]
        mixture = Mixture(likelihood, outputs)
        summary = recalibration.summary(
            summary, lambda levels: quantiles_of(recalibration, mixture, levels)
        )
        answered = {
            name: tf.cast(summary[name], dtype)
            for name in (*names, "mean_standard_error")
        }
        return answered | compared

    def draws(*arguments: Tensor) -> dict[str, tf.Tensor]:
        *given, number, seed = arguments
        rows, _ = compare(given)
        return {"outputs": passes.outputs(rows, draw(number, seed))}

    drawn = [*features, _NUM_SAMPLES, _SEED]
    traced_predict = traced(predict, *drawn)

    def serving_default(*given: Tensor) -> dict[str, tf.Tensor]:
        found = traced_predict(*given, tf.constant(num_samples), tf.constant(seed))
        return {name: x for name, x in found.items() if name != "mean_standard_error"}

    return {
        "serving_default": traced(serving_default, *features),
        "predict": traced_predict,
        "draws": traced(draws, *drawn),
    }


def _at_least_two(num_samples: Tensor) -> tf.Tensor:
    enough = tf.debugging.assert_greater_equal(
        num_samples, 2, "num_samples must be at least 2."
    )
    with tf.control_dependencies([enough]):
        return tf.identity(num_samples)


def _describe_targets(
    likelihood: Likelihood, mean_shape: Sequence[int | None]
) -> Targets:
    """Describes the targets of one row."""
    shape = tuple(mean_shape)
    if likelihood.task == "classification":
        shape = shape[:-1]
    elif likelihood.support is None:
        raise ValueError(
            "The likelihood of a regression must say which numbers its targets may be: "
            "set its attribute `support` to a `tfbbb.bayes.families.support.Support`. "
            f"Received: likelihood={type(likelihood).__name__}"
        )
    return Targets(
        shape,
        likelihood.support,
        likelihood.ordered,
        likelihood.discrete,
    )


def _programs(
    model: LikelihoodModel,
    recalibration: Recalibration,
    method: str,
    num_samples: int,
    num_beyond: int,
) -> tuple[dict[str, Program], dict[str, Any]]:
    """Returns programs for the method and for `weight`, and the moments of each."""
    likelihoods, inputs = [model.likelihood], input_structure(model)
    plan = plan_for(
        NetworkStructure.of(model), method, 1, num_samples, MAX_FLOATS, likelihoods
    )
    common: dict[str, Any] = {"recalibration": recalibration, "num_beyond": num_beyond}
    main = Program(model, likelihoods, plan, inputs, **common)
    if main.axes.mixes_rows:
        raise ValueError(
            "An output of the model for one row depends on the rows beside it, and a "
            "file answers rows in blocks of any size. Predict with the model itself. "
            f"Received: {model!r}"
        )
    programs = {method: main}
    moments: dict[str, Any] = {method: _as_variables(main.moments())}
    if method != "weight":
        # Those of a linearised network are means alone.
        held = None if plan.linearised else moments[method]
        programs["weight"] = Program(
            model, likelihoods, Plan(), inputs, held_moments=held, **common
        )
        moments["weight"] = {}
    return programs, moments


def _as_variables(tensors: Any) -> Any:
    return tf.nest.map_structure(lambda x: tf.Variable(x, trainable=False), tensors)


def _variables_read(
    root: tf.Module, signatures: dict[str, ConcreteFunction]
) -> list[tf.Variable]:
    """Returns the variables that the functions read, few of the posteriors'."""
    modules = root.methods.values()
    functions = [
        *signatures.values(),
        *(function for module in modules for function in vars(module).values()),
    ]
    concrete = [f for f in functions if hasattr(f, "captured_inputs")]
    read = {id(v): v for function in concrete for v in function.variables}
    return list(read.values())
