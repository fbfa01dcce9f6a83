"""One ONNX file that answers with the moments of a predictive distribution."""

import contextlib
import json
import logging
import os
import secrets
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf
from keras import tree

from tfbbb.base.extras import import_extra
from tfbbb.base.files import check_free, flush
from tfbbb.base.numbers import int32
from tfbbb.base.private_apis import input_structure
from tfbbb.base.types import Structure, Tensor
from tfbbb.export.feature_tensors import features_of, packing, tensor_specs
from tfbbb.export.onnx_operations import HANDLERS, allow_texts
from tfbbb.export.writer import class_names, one_or_all
from tfbbb.prediction.answers import summary_outputs
from tfbbb.prediction.likelihood_model import LikelihoodModel
from tfbbb.prediction.mixture import Mixture
from tfbbb.prediction.plan import Plan
from tfbbb.prediction.program import Program
from tfbbb.prediction.questions import quantiles_of
from tfbbb.prediction.recalibration.recalibration import IDENTITY

if TYPE_CHECKING:
    from tfbbb.tables import Schema

_OPSET = 18
_METADATA = "tfbbb"
# Of single precision, whose sums are taken in another order.
_RELATIVE, _ABSOLUTE = 1e-4, 1e-5


def write_onnx(
    model: LikelihoodModel,
    path: str | os.PathLike[str],
    *,
    schema: "Schema | None" = None,
    feature_names: Sequence[str] | None = None,
    target: str | None = None,
    units: str = "as in the training table",
    classes: Sequence[str] | None = None,
    num_samples: int = 100,
    seed: int = 0,
) -> None:
    """Writes the moments of the posterior predictive as one ONNX file at `path`.

    The file needs an ONNX runtime and nothing of Python: browsers, phones and other
    languages have one. It takes and gives raw units, as the signature `serving_default`
    of a SavedModel: the features, and for n rows, k targets, c classes `mean`,
    `variance`, `epistemic` and `aleatoric` [n, k]; for classes `probabilities` [n, c],
    `entropy` and `mutual_information` [n]; of several members also `between_members`.

    The weights are frozen: the file has the draws of `model.predictive(x, num_samples,
    "weight", seed)`, and gives the same answers but for rounding. Its memory grows with
    rows × draws × units, so many rows are best asked for in parts.

    Rows are not compared with the training rows: a file has no familiarity, and does
    not widen predictions by the model's extrapolation, which a warning says.

    The file's metadata have an entry `tfbbb`: features, target, units, classes, number
    of draws and seed as JSON.

    Args:
        model: The model.
        path: Where to write; nothing may be there yet. The file appears whole or not at
            all.
        schema: Schema of the training table, which gives the names of features, target
            and classes.
        feature_names: Names of the features without a schema; `x0`, `x1`, ... by
            default.
        target: Name of the target without a schema.
        units: Units of inputs and outputs, in words.
        classes: Names of the classes without a schema; their indices by default.
        num_samples: Number K of draws of the weights, at least two.
        seed: Seed of the draws.

    Raises:
        FileExistsError: Where there is something at `path` already.
        ImportError: A library of `pip install 'tfbbb[onnx]'` is missing.
        OSError: The disk is full, or refuses the file; nothing is left of it.
        ValueError: An operation of the model has no counterpart in ONNX, such as the
            hash of a text; the message names it.

    Example:

    >>> import os, tempfile, keras, numpy as np, onnxruntime, tfbbb
    >>> inputs = keras.Input((3,))
    >>> model = tfbbb.BayesianModel(inputs, tfbbb.layers.DenseVariational(1)(inputs))
    >>> path = os.path.join(tempfile.mkdtemp(), "model.onnx")
    >>> model.export_predictive(path, format="onnx")
    >>> session = onnxruntime.InferenceSession(path)
    >>> x = np.ones((2, 3), "float32")
    >>> (mean,) = session.run(["mean"], {"inputs": x})
    >>> bool(np.allclose(mean, model.predictive(x, method="weight").mean, 1e-5))
    True
    """
    num_samples = int32("num_samples", num_samples, least=2)
    seed = int32("seed", seed)
    check_free(path)
    if model.extrapolation is not None:
        warnings.warn(
            "An ONNX file does not widen predictions of rows beyond the training rows; "
            "a SavedModel does. Set `model.extrapolation = None` to have the same "
            f"answers everywhere. Received: extrapolation={model.extrapolation!r}",
            stacklevel=3,
        )
    # tf2onnx imports the others.
    libraries = ("onnx", "requests", "onnxruntime", "tf2onnx")
    *_, onnxruntime, tf2onnx = import_extra("onnx", *libraries)
    features = features_of(model, schema, feature_names)
    specs = tensor_specs(model, features)
    dtype = "float32"
    if schema and not schema.classes:
        dtype = np.result_type(*(x.dtype for x in schema.target_columns)).name
    pack = packing(model, features)
    answer = _frozen_answer(model, pack, num_samples, seed, dtype)
    function = tf.function(answer, input_signature=specs, autograph=False)
    proto = _converted(function, specs, tf2onnx)
    description = {
        "features": [
            {"name": feature.name, "kind": feature.kind, "tensor": feature.tensor}
            for feature in features
        ],
        "target": one_or_all(schema.target_names) if schema else target,
        "units": units,
        "classes": class_names(model.likelihood, schema.classes if schema else classes),
        "num_samples": num_samples,
        "seed": seed,
    }
    proto.metadata_props.add(key=_METADATA, value=json.dumps(description))
    content = proto.SerializeToString()
    _check(content, function, specs, onnxruntime)
    _write(Path(path), content)


def _frozen_answer(
    model: LikelihoodModel,
    pack: Callable[[Sequence[Tensor]], Structure],
    num_samples: int,
    seed: int,
    dtype: str,
) -> Callable[..., dict[str, tf.Tensor]]:
    """Returns the summary as a function of feature tensors, with draws as constants."""
    recalibration = model.recalibration or IDENTITY
    # New noise for each row, or derivatives, have no counterpart in ONNX.
    program = Program(
        model, [model.likelihood], Plan(), input_structure(model), recalibration.density
    )
    rounds = program.sizes.num_rounds(num_samples)
    drawn = program.draws(tf.constant([0, seed]), tf.constant(0), tf.constant(rounds))
    moments, draws = (
        tree.map_structure(np.asarray, part) for part in (program.moments(), drawn)
    )
    density = recalibration.of_answers

    def answer(*features: Tensor) -> dict[str, tf.Tensor]:
        constants = [tree.map_structure(tf.constant, x) for x in (moments, draws)]
        (summary,), (outputs,) = program.answer(pack(features), *constants)
        mixture = Mixture(model.likelihood, outputs)
        found = density.summary(
            summary, lambda levels: quantiles_of(density, mixture, levels)
        )
        names = summary_outputs(found)
        return {name: tf.cast(found[name], dtype) for name in names}

    return answer


def _converted(
    function: tf.types.experimental.GenericFunction,
    specs: Sequence[tf.TensorSpec],
    tf2onnx: ModuleType,
) -> Any:
    """Returns the ONNX model of a function of tensors."""
    with _quiet(tf2onnx.__name__):
        try:
            proto, _ = tf2onnx.convert.from_function(
                function,
                input_signature=specs,
                opset=_OPSET,
                custom_op_handlers=dict(HANDLERS),
            )
        except Exception as error:
            raise ValueError(_explain(str(error))) from error
    _embed(proto, function.get_concrete_function().graph.captures)
    if any(spec.dtype == tf.string for spec in specs):
        allow_texts(proto)
    return proto


def _embed(proto: Any, captures: Sequence[tuple[tf.Tensor, tf.Tensor]]) -> None:
    """Makes constants of captured tensors, such as those of a normalisation layer."""
    (helper,) = import_extra("onnx", "onnx.numpy_helper")
    held = {inner.name: outer for outer, inner in captures}
    for place in reversed(range(len(proto.graph.input))):
        name = proto.graph.input[place].name
        if name in held:
            constant = helper.from_array(held[name].numpy(), name)
            proto.graph.initializer.append(constant)
            del proto.graph.input[place]


def _explain(cause: str) -> str:
    return (
        "An operation of the model has no counterpart in ONNX: replace the layer that "
        "has it, leave out the column that it reads, or export a SavedModel. "
        f"Received: {cause:.500}"
    )


def _check(
    content: bytes,
    function: tf.types.experimental.GenericFunction,
    specs: Sequence[tf.TensorSpec],
    runtime: ModuleType,
) -> None:
    """Raises ValueError unless the file answers as the function does."""
    one_row = {spec.name: _row(spec) for spec in specs}
    wanted = function(*map(tf.constant, one_row.values()))
    try:
        session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        found = session.run(names, one_row)
    except Exception as error:
        raise ValueError(_explain(str(error))) from error
    for name, values in zip(names, found, strict=True):
        if not np.allclose(values, wanted[name], _RELATIVE, _ABSOLUTE, equal_nan=True):
            raise ValueError(
                "ONNX Runtime computes other answers than the model does. Received: "
                f"{name} {values[0]} where the model has {wanted[name].numpy()[0]}"
            )


def _row(spec: tf.TensorSpec) -> np.ndarray:
    """Returns one row of ones, or of one text."""
    shape = [1, *spec.shape[1:]]
    if spec.dtype == tf.string:
        return np.full(shape, "1", dtype=object)
    return np.ones(shape, spec.dtype.as_numpy_dtype)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    staging = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        staging.write_bytes(content)
        flush(staging)
        # Unlike a renaming, a link never replaces a file that has appeared meanwhile.
        os.link(staging, path)
    finally:
        staging.unlink(missing_ok=True)
    flush(path.parent)


@contextlib.contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Keeps what a library logs about each graph from the terminal."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
