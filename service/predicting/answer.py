"""Checks a prediction request against a model, and computes its answer."""

import itertools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from service.predicting.query import Query
from service.predicting.table import from_columns, from_rows
from service.predicting.targets import fill_targets, read_targets
from service.shared.errors import InvalidRequest, RequestTooLarge
from service.shared.settings import Settings
from tfbbb.base.types import JsonList, JsonObject
from tfbbb.export.inputs import Tensors, find_faults, to_tensors
from tfbbb.export.manifest import InputError, Manifest
from tfbbb.prediction import questions
from tfbbb.prediction.answer_table import answer_table
from tfbbb.prediction.questions import Question
from tfbbb.tables.row_warnings import ColumnFaults
from tfbbb.tables.target import KnownTargets

if TYPE_CHECKING:
    from tfbbb.export.exported_model import ExportedModel

FAMILIARITY = "familiarity"
# In the order of the response.
_MOMENTS = (
    *("mean", "variance", "std", "epistemic", "aleatoric"),
    *("probabilities", "entropy", "mutual_information"),
    *("between_members", "mean_standard_error", FAMILIARITY),
)
# Sentences about each row, of which those of an answer are part.
_UNLIKE = "unlike"
# Whether all numbers about a row are finite.
_FINITE = "finite"

# Each array has one entry per row.
Arrays = dict[str, np.ndarray]
Outputs = dict[str, np.ndarray | JsonList]


# Parameters that do not change what is computed for a row, and those that `batch_key`
# knows by their effect.
_NOT_IN_KEY = {"deadline_ms", "num_samples", "seed", "method"}


class VersionName(NamedTuple):
    """The name of a model and the number of a version."""

    name: str
    number: int


@dataclass(frozen=True)
class Request:
    """A prediction request that fits the version that predicts."""

    version: VersionName
    manifest: Manifest
    query: Query
    # The questions that it asks beside the moments.
    asked: Sequence[Question]
    inputs: Tensors
    num_rows: int
    num_samples: int
    # How much computing it costs.
    work: int
    targets: KnownTargets | None
    # The sentences about each row.
    warnings: list[list[str]]
    # What is not as in training in each column.
    faults: ColumnFaults

    @property
    def seed(self) -> int:
        """The seed of the draws."""
        seed = self.query.parameters.seed
        return self.manifest.default_seed if seed is None else seed

    @property
    def kind(self) -> tuple[str, ...]:
        """What is asked, on which the time of a prediction depends."""
        return ("predict", *(question.name for question in self.asked))

    @property
    def batch_key(self) -> Hashable | None:
        """Equal for requests of one version whose rows may be computed together.

        None if the rows of the request must be computed at once and alone: by another
        method than that of the export rows do not share the draws of the weights, and
        the noise of samples depends on the place of the row.
        """
        parameters = self.query.parameters
        is_own = parameters.method in (None, "auto", self.manifest.method)
        if not is_own or any("noise" in x.arguments for x in self.asked):
            return None
        # A parameter that is not known to be without effect keeps requests apart.
        others = sorted(parameters.model_fields_set - _NOT_IN_KEY)
        given = (getattr(parameters, name) for name in others)
        values = (tuple(x) if isinstance(x, list) else x for x in given)
        return self.kind, self.num_samples, self.seed, *others, *values


class Block(NamedTuple):
    """Some rows of a request."""

    request: Request
    rows: slice


@dataclass(frozen=True)
class Answer:
    """What a version predicts for a request."""

    request: Request
    # In the order of the response.
    outputs: Outputs
    # The sentences about each row.
    warnings: list[list[str]]

    @property
    def levels(self) -> dict[str, Sequence[float]]:
        """The levels that were asked for, by the name of their question."""
        parameters = self.request.query.parameters
        asked = self.request.asked
        return {question.name: parameters.levels(question) or () for question in asked}

    def table(self) -> pa.Table:
        """Returns the answer as a table with one column per number."""
        manifest, levels = self.request.manifest, self.levels
        names = manifest.target_names
        return answer_table(
            self.outputs, levels, manifest.classes, self.warnings, names
        )

    @property
    def description(self) -> JsonObject:
        """What the answer is of, beside its outputs."""
        request = self.request
        description: JsonObject = {
            "model_name": request.version.name,
            "model_version": str(request.version.number),
            "num_samples": request.num_samples,
        }
        if (classes := request.manifest.classes) is not None:
            description["classes"] = classes
        if len(names := request.manifest.target_names) > 1:
            description["targets"] = list(names)
        if calibration := self.calibration:
            description["calibration"] = calibration
        return description

    @property
    def calibration(self) -> dict[str, str]:
        """What calibrates each answer at levels, by the name of its question."""
        manifest = self.request.manifest
        return {
            question.name: manifest.describe_calibration(question)
            for question in self.request.asked
            if question.takes_levels
        }


def prepare(
    version: VersionName, manifest: Manifest, query: Query, settings: Settings
) -> Request:
    """Checks a request against a version of a model, and reads its table."""
    asked = [x for x in questions.served_questions() if query.asks(x)]
    _check_questions(asked, manifest)
    num_samples = (
        query.parameters.num_samples
        or settings.default_num_samples
        or manifest.default_num_samples
    )
    per_draw = _answers_per_draw(asked, query, manifest)
    _check_work(query.num_rows, num_samples, per_draw, settings.max_work)
    if query.by_rows:
        table = from_rows(query.rows, manifest, "instances")
    else:
        table = from_columns(query.columns, manifest)
    inputs = to_tensors(table, manifest)
    num_rows = len(next(iter(inputs.values())))
    targets = None
    faults = find_faults(inputs, manifest)
    warnings = faults.by_row()
    if query.targets is not None:
        targets = read_targets(query.targets, manifest, num_rows)
        for row, target in targets.unusable.items():
            warnings[row] = [*warnings[row], target.warning]
    return Request(
        version=version,
        manifest=manifest,
        # The arrays hold the table now.
        query=replace(
            query, rows=None, columns=None if query.by_rows else {}, targets=targets
        ),
        asked=asked,
        inputs=inputs,
        num_rows=num_rows,
        num_samples=num_samples,
        work=num_rows * num_samples * per_draw,
        targets=targets,
        warnings=warnings,
        faults=faults.by_column(),
    )


def compute(model: "ExportedModel", blocks: Sequence[Block]) -> list[Arrays]:
    """Predicts blocks with one batch key together; one without a key comes alone."""
    request = blocks[0].request
    tensors = Tensors(
        {
            name: _joined([each.inputs[name][rows] for each, rows in blocks])
            for name in request.inputs
        }
    )
    known = [x.targets.values[rows] for x, rows in blocks if x.targets is not None]
    # `finish` empties the densities of rows without a target to use.
    targets = fill_targets(_joined(known), request.manifest) if known else None
    found = _predict(model, request, tensors, targets)
    ends = itertools.accumulate(block.rows.stop - block.rows.start for block in blocks)
    return [
        {name: values[begin:end] for name, values in found.items()}
        for begin, end in itertools.pairwise((0, *ends))
    ]


def finish(request: Request, blocks: Sequence[Arrays]) -> Answer:
    """Makes the answer of a request from what was predicted for its blocks of rows."""
    arrays = {name: _joined([block[name] for block in blocks]) for name in blocks[0]}
    classes = request.manifest.classes
    outputs: Outputs = {name: arrays[name] for name in _MOMENTS if name in arrays}
    if classes is not None and "probabilities" in arrays:
        best = np.argmax(arrays["probabilities"], axis=1)
        outputs["class"] = [classes[index] for index in best]
    for question in request.asked:
        outputs |= {name: arrays[name] for name in question.outputs}
        if question.needs_classes:
            names = np.asarray(classes, dtype=object)
            for name in question.outputs:
                sets = arrays[name]
                outputs[name] = [[names[x].tolist() for x in row] for row in sets]
    if not arrays[_FINITE].all():
        check_finite(outputs, request)
    if request.targets is not None and "log_prob" in outputs:
        known = request.targets.known
        if not known.all():
            outputs["log_prob"] = np.where(known, outputs["log_prob"], np.nan)
    warnings = request.warnings
    if _UNLIKE in arrays:
        pairs = zip(warnings, arrays[_UNLIKE], strict=True)
        warnings = [[*sentences, *unlike] for sentences, unlike in pairs]
    return Answer(request, outputs, warnings)


def _check_questions(asked: Sequence[Question], manifest: Manifest) -> None:
    for question in asked:
        if not manifest.answers(question):
            given = "numbers, which have"
            if manifest.task == "classification":
                given = "classes, which have no order and thus"
            raise InvalidRequest(f"The model predicts {given} no {question.text}.")


def _answers_per_draw(
    asked: Sequence[Question], query: Query, manifest: Manifest
) -> int:
    """Returns how many numbers a request asks for per row and draw, moments as one."""
    count = 1
    width = max((1, *(k or 1 for k in manifest.targets.shape)))
    for question in asked:
        levels = query.parameters.levels(question)
        ordered = question.needs_order or question.draws_first
        count += (len(levels) if levels else 1) * (width if ordered else 1)
    return count


def _check_work(num_rows: int, num_samples: int, per_draw: int, most: int) -> None:
    """Refuses a request that costs too much, before anything is allocated for it."""
    if num_rows * num_samples * per_draw > most:
        raise RequestTooLarge(
            f"A request may have at most {most} units of work (TFBBB_MAX_WORK), which "
            "are rows × draws × answers: the moments, and each level or sample of each "
            "target. Send fewer rows at a time, lower `num_samples` or ask for fewer "
            f"levels. Received: {num_rows} rows × {num_samples} draws × {per_draw} "
            "answers"
        )


def _joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _predict(
    model: "ExportedModel",
    request: Request,
    tensors: Tensors,
    targets: np.ndarray | None,
) -> Arrays:
    """Returns all outputs for the rows of some tensors, rows first."""
    parameters = request.query.parameters
    draws, method = (request.num_samples, request.seed), parameters.method
    try:
        arrays: Arrays = model.predict(tensors, *draws, method)
        for question in request.asked:
            levels = parameters.levels(question)
            found = model.ask(question.name, tensors, levels, *draws, targets, method)
            if question.draws_first:
                found = found.swapaxes(0, 1)
            parts = np.moveaxis(found, 1, 0) if question.parts else [found]
            arrays |= zip(
                question.outputs, map(np.ascontiguousarray, parts), strict=True
            )
    except InputError:
        raise
    except ValueError as error:
        # Such as a level that conformal intervals had too few rows for.
        raise InvalidRequest(str(error)) from None
    if "variance" in arrays:
        arrays["std"] = np.sqrt(arrays["variance"])
    numbers = [values.reshape(len(values), -1) for values in arrays.values()]
    arrays[_FINITE] = np.isfinite(np.concatenate(numbers, axis=1)).all(axis=1)
    if FAMILIARITY in arrays:
        unlike = model.describe_unlike(tensors, arrays[FAMILIARITY])
        arrays[_UNLIKE] = np.empty(len(unlike), object)
        arrays[_UNLIKE][:] = unlike
    return arrays


def check_finite(
    outputs: Mapping[str, np.ndarray | JsonList], request: Request
) -> None:
    """Checks that all numbers about the rows are finite: extreme values overflow."""
    version = request.version
    for name, values in outputs.items():
        if isinstance(values, np.ndarray) and not np.isfinite(values).all():
            row = np.argwhere(~np.isfinite(values))[0][0]
            said = [
                f"Version {version.number} of the model {version.name!r} has no finite "
                f"`{name}` for row {row + 1}: its values are too far from those the "
                "model was trained on.",
                *request.warnings[row],
            ]
            raise InvalidRequest(" ".join(said))
