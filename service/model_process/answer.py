"""Computes the response to a prediction request."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import orjson

from service.model_process.metrics import UncertaintyMetrics
from service.model_process.query import Query
from service.model_process.table import from_columns, from_rows
from service.model_process.targets import read_targets
from service.model_process.version import ServedVersion
from service.shared.errors import InvalidRequest, RequestTooLarge
from service.shared.settings import Settings
from tfbbb.export.inputs import Inputs, find_warnings, to_tensors
from tfbbb.export.manifest import InputError, Manifest
from tfbbb.prediction import questions
from tfbbb.prediction.questions import Question

if TYPE_CHECKING:
    from tfbbb.export.exported_model import ExportedModel

# In the order of the response.
_MOMENTS = (
    *("mean", "variance", "epistemic", "aleatoric"),
    *("probabilities", "entropy", "mutual_information"),
    *("between_members", "mean_standard_error"),
)

# Each array has one entry per row.
Outputs = dict[str, npt.NDArray[Any] | list[str] | list[list[list[str]]]]


def answer(
    version: ServedVersion,
    query: Query,
    settings: Settings,
    uncertainty: UncertaintyMetrics,
) -> bytes:
    """Computes the response of one version of a model, and records its uncertainty.

    Args:
        version: The version that predicts.
        query: The request.
        settings: Limits and defaults.
        uncertainty: Metrics of the uncertainty, which this function updates.

    Returns:
        The JSON body of the response.

    Raises:
        InputError: If the table does not fit the model; names the row.
        InvalidRequest: If the model lacks the signature, or its prediction is not
            finite; names the row.
        RequestTooLarge: If rows × samples is over the limit.
        Unavailable: If the version cannot be loaded.
    """
    model = version.load()
    manifest = model.manifest
    query = query.move_tensor_parameters(manifest.features)
    _check_signature(query, model)
    inputs = _read_table(query, manifest)
    num_samples = (
        query.parameters.num_samples
        or settings.default_num_samples
        or manifest.default_num_samples
    )
    _check_size(_count_rows(inputs), num_samples, settings.max_rows_times_samples)
    targets = None
    if query.targets is not None:
        targets = read_targets(query.targets, manifest, _count_rows(inputs))
    outputs = _compute(model, inputs, query, num_samples, targets)
    _check_finite(outputs, version)
    uncertainty.observe(version.name, outputs)
    warnings = find_warnings(to_tensors(inputs, manifest), manifest)
    if query.by_rows:
        body = _by_rows(outputs, warnings)
    else:
        body = _by_columns(outputs, warnings)
    body |= {
        "model_name": version.name,
        "model_version": str(version.number),
        "num_samples": num_samples,
    }
    if manifest.classes is not None:
        body["classes"] = manifest.classes
    return orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY)


def _check_signature(query: Query, model: "ExportedModel") -> None:
    for question in questions.served_questions():
        chosen = query.signature == question.name
        if not (chosen or query.asks(question)):
            continue
        if not model.answers(question):
            raise InvalidRequest(_explain_missing(question, model.manifest))
        if chosen and question.takes_levels and not query.parameters.asks(question):
            raise InvalidRequest(
                f"The signature `{question.name}` needs levels: give "
                f"`parameters.{question.parameter}`."
            )
        if chosen and question.takes_targets and query.targets is None:
            raise InvalidRequest(
                f"The signature `{question.name}` needs the targets of the rows: give "
                "`targets`."
            )


def _explain_missing(question: Question, manifest: Manifest) -> str:
    if question.needs_order and manifest.task == "classification":
        return (
            "The model predicts classes, which have no order and thus no "
            f"{question.text}."
        )
    if question.needs_classes and manifest.task == "regression":
        return f"The model predicts numbers, which have no {question.text}."
    return (
        f"The model was exported without the signature `{question.name}`: export the "
        "model again."
    )


def _read_table(query: Query, manifest: Manifest) -> Inputs:
    if query.by_rows:
        inputs = from_rows(query.rows, manifest, "instances")
    else:
        inputs = from_columns(query.columns, manifest)
    if query.fault is not None:
        to_tensors(
            inputs, manifest
        )  # Raises a better error if the mistake is in the table.
        raise query.fault
    return inputs


def _count_rows(inputs: Inputs) -> int:
    table = inputs.values() if isinstance(inputs, Mapping) else (inputs,)
    # A value without length is not a column; reading it raises an error later.
    lengths = (len(part) for part in table if isinstance(part, Sequence | np.ndarray))
    return max(lengths, default=0)


def _check_size(rows: int, num_samples: int, most: int) -> None:
    if rows * num_samples > most:
        raise RequestTooLarge(
            f"A request may have at most {most} rows × samples "
            "(TFBBB_MAX_ROWS_TIMES_SAMPLES); send fewer rows at a time or lower "
            f"`num_samples`. Received: {rows} rows × {num_samples} samples"
        )


def _compute(
    model: "ExportedModel",
    inputs: Inputs,
    query: Query,
    num_samples: int,
    targets: npt.NDArray[Any] | None,
) -> Outputs:
    parameters, outputs = query.parameters, Outputs()
    moments = query.signature in ("serving_default", "predict")
    if moments:
        answers = model.predict(inputs, num_samples, parameters.seed)
        outputs |= {name: answers[name] for name in _MOMENTS if name in answers}
        if (classes := model.manifest.classes) is not None:
            best = np.argmax(outputs["probabilities"], axis=1)
            outputs["class"] = [classes[index] for index in best]
    for question in questions.served_questions():
        chosen = query.signature == question.name
        if not (chosen or (moments and query.asks(question))):
            continue
        levels = parameters.levels(question)
        draws = (num_samples, parameters.seed)
        try:
            found = model.ask(question.name, inputs, levels, *draws, targets)
        except InputError:
            raise
        except ValueError as error:
            # Such as a level that conformal intervals had too few rows for.
            raise InvalidRequest(str(error)) from None
        if question.parts:
            for place, part in enumerate(question.parts):
                outputs[part] = np.ascontiguousarray(found[:, place])
        elif question.needs_classes:
            outputs[question.output] = _name_classes(found, model.manifest)
        else:
            outputs[question.output] = _swap_draws(found, question)
    return outputs


def _name_classes(sets: npt.NDArray[Any], manifest: Manifest) -> list[list[list[str]]]:
    """Returns the names of the classes in sets [n, q, c]."""
    names = np.asarray(manifest.classes, dtype=object)
    return [[names[inside].tolist() for inside in row] for row in sets]


def _swap_draws(values: Any, question: Question) -> Any:
    """Exchanges the axes of rows and draws, if the answer has draws."""
    if not (question.draws_first and isinstance(values, np.ndarray)):
        return values
    return np.ascontiguousarray(values.swapaxes(0, 1))


def _check_finite(outputs: Outputs, version: ServedVersion) -> None:
    # Inputs and weights are finite, so only extreme values can overflow.
    for name, values in outputs.items():
        if isinstance(values, np.ndarray) and not np.isfinite(values).all():
            row = np.argwhere(~np.isfinite(values))[0][0] + 1
            raise InvalidRequest(
                f"Version {version.number} of the model {version.name!r} has no finite "
                f"`{name}` for row {row}: its values are too far from those the model "
                "was trained on."
            )


def _by_rows(outputs: Outputs, warnings: Sequence[list[str]]) -> dict[str, Any]:
    """Formats rows as TensorFlow Serving: bare values if there is one output.

    Only rows with warnings have them, and bare values have none.
    """
    if len(outputs) == 1:
        return {"predictions": list(*outputs.values())}
    names = list(outputs)
    rows = [
        dict(zip(names, row, strict=True))
        for row in zip(*outputs.values(), strict=True)
    ]
    for row, sentences in zip(rows, warnings, strict=True):
        if sentences:
            row["warnings"] = sentences
    return {"predictions": rows}


def _by_columns(outputs: Outputs, warnings: list[list[str]]) -> dict[str, Any]:
    """Formats columns as TensorFlow Serving, with draws before rows.

    If any row has warnings, they are a column too, beside several others.
    """
    for question in questions.served_questions():
        for name in question.outputs:
            if (values := outputs.get(name)) is not None:
                outputs = outputs | {name: _swap_draws(values, question)}
    if len(outputs) == 1:
        return {"outputs": next(iter(outputs.values()))}
    if any(warnings):
        return {"outputs": {**outputs, "warnings": warnings}}
    return {"outputs": outputs}
