"""Checks a prediction request against a model, and computes its answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

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


@dataclass(frozen=True)
class Request:
    """A prediction request that fits its model.

    Args:
        version: The version that predicts.
        model: Its model, loaded.
        query: The request as it was sent.
        inputs: The table.
        num_rows: Number of rows.
        num_samples: Number of draws.
        targets: The targets of the rows, or None.
    """

    version: ServedVersion
    model: "ExportedModel"
    query: Query
    inputs: Inputs
    num_rows: int
    num_samples: int
    targets: npt.NDArray[Any] | None


@dataclass(frozen=True)
class Answer:
    """What a version predicts for a request.

    Args:
        request: The request.
        outputs: The arrays, in the order of the response.
        warnings: The sentences about each row.
        prediction_id: The id by which the rows are recorded; None if they are not.
    """

    request: Request
    outputs: Outputs
    warnings: list[list[str]]
    prediction_id: str | None = None


def prepare(version: ServedVersion, query: Query, settings: Settings) -> Request:
    """Checks a request against a version of a model.

    Args:
        version: The version that is to predict.
        query: The request.
        settings: Limits and defaults.

    Raises:
        InputError: If the table does not fit the model; names the row.
        InvalidRequest: If the model lacks the signature.
        RequestTooLarge: If rows × samples is over the limit.
        Unavailable: If the version cannot be loaded.
    """
    model = version.load()
    manifest = model.manifest
    query = query.move_tensor_parameters(manifest.features)
    _check_signature(query, model)
    inputs = _read_table(query, manifest)
    num_rows = _count_rows(inputs)
    num_samples = (
        query.parameters.num_samples
        or settings.default_num_samples
        or manifest.default_num_samples
    )
    _check_size(num_rows, num_samples, settings.max_rows_times_samples)
    targets = None
    if query.targets is not None:
        targets = read_targets(query.targets, manifest, num_rows)
    return Request(version, model, query, inputs, num_rows, num_samples, targets)


def compute(request: Request) -> Answer:
    """Predicts.

    Raises:
        InputError: If a value does not fit the model; names the row.
        InvalidRequest: If the prediction is not finite; names the row.
    """
    outputs = _predict(request)
    _check_finite(outputs, request.version)
    manifest = request.model.manifest
    warnings = find_warnings(to_tensors(request.inputs, manifest), manifest)
    return Answer(request, outputs, warnings)


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


def _predict(request: Request) -> Outputs:
    model, query, inputs = request.model, request.query, request.inputs
    parameters, outputs = query.parameters, Outputs()
    draws = (request.num_samples, parameters.seed)
    moments = query.signature in ("serving_default", "predict")
    if moments:
        answers = model.predict(inputs, *draws)
        outputs |= {name: answers[name] for name in _MOMENTS if name in answers}
        if (classes := model.manifest.classes) is not None:
            best = np.argmax(outputs["probabilities"], axis=1)
            outputs["class"] = [classes[index] for index in best]
    for question in questions.served_questions():
        chosen = query.signature == question.name
        if not (chosen or (moments and query.asks(question))):
            continue
        levels = parameters.levels(question)
        try:
            found = model.ask(question.name, inputs, levels, *draws, request.targets)
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
            outputs[question.output] = swap_draws(found, question)
    return outputs


def _name_classes(sets: npt.NDArray[Any], manifest: Manifest) -> list[list[list[str]]]:
    """Returns the names of the classes in sets [n, q, c]."""
    names = np.asarray(manifest.classes, dtype=object)
    return [[names[inside].tolist() for inside in row] for row in sets]


def swap_draws(values: Any, question: Question) -> Any:
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
